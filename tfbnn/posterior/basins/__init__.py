"""Basins of chains: groups that represent the same functions, and the posterior mass of each group."""
