"""Weights for chains that have not mixed."""
