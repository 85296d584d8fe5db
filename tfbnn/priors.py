"""Priors of weights and of scales, for `BayesianMLP(prior=...)`."""

from tfbnn.spec.priors import (
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
