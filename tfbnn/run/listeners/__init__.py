"""The history of a run, and callbacks of Keras."""
