"""Fits and predictions on a cluster, by Dask (the extra `cluster`)."""

from tfbnn.cluster.fitting import fit
from tfbnn.cluster.prediction import predict

__all__ = ["fit", "predict"]
