"""Export of a posterior's networks as TensorFlow programs and SavedModels."""
