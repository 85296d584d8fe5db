"""Who passes on what events tell of a run: callbacks of Keras, loggers."""
