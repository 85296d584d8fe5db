"""Basins of chains: which represent the same functions, and how much of the posterior is there."""
