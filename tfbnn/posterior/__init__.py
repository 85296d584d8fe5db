"""Sampled networks and their use, with NumPy alone: predictions, scores, stacking, compression."""
