"""Sampled networks and their uses, with NumPy alone: predictions, scores, stacking, compression."""
