"""Fits on a cluster with Dask (the extra `cluster`)."""

from tfbnn.cluster.cluster_fit import fit

__all__ = ["fit"]
