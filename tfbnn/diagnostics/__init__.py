"""Convergence diagnostics with NumPy: statistics of chains, and the diagnosis of one run."""
