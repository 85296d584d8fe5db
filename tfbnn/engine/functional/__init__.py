"""Samples of any log density, drawn by the engine without a network."""
