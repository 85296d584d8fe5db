"""Starts of chains: pretraining, Levenberg-Marquardt, and their check."""
