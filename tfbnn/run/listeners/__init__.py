"""Who keeps or passes on what events tell of a run: its history, callbacks of Keras, loggers."""
