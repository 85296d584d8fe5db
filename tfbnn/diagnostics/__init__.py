"""Convergence diagnostics with NumPy: statistics of chains, and the diagnosis of a run."""
