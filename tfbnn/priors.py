"""Priors of weights and of scales, for `BayesianMLP(prior=...)`."""

from tfbnn.fit.from_posterior import FromPosterior
from tfbnn.spec.priors import (
    ARD,
    HalfCauchy,
    HalfNormal,
    HierarchicalNormal,
    InverseGamma,
    Laplace,
    LayerPrior,
    LogNormal,
    Normal,
    Uniform,
)

__all__ = [
    "ARD",
    "FromPosterior",
    "HalfCauchy",
    "HalfNormal",
    "HierarchicalNormal",
    "InverseGamma",
    "Laplace",
    "LayerPrior",
    "LogNormal",
    "Normal",
    "Uniform",
]
