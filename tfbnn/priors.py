"""Priors of weights and of scales, for `BayesianMLP(prior=...)`."""

from tfbnn.fit.handing_on import FromPosterior
from tfbnn.fit.own_class_checks import check_prior
from tfbnn.spec.own_densities import CustomPrior
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
    "CustomPrior",
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
    "check_prior",
]
