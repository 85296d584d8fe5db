"""Networks of a posterior as TensorFlow programs and SavedModels."""
