"""Where chains start: pretraining, Levenberg-Marquardt, and the check of the starts."""
