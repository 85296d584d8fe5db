"""Likelihoods of numbers, counts and classes, for `BayesianMLP(likelihood=...)`."""

from tfbnn.fit.own_class_checks import check_noise
from tfbnn.spec.counts import NegativeBinomial, Poisson
from tfbnn.spec.likelihoods import (
    Bernoulli,
    Categorical,
    Gaussian,
    HeteroscedasticGaussian,
    StudentT,
)
from tfbnn.spec.own_densities import CustomNoise

__all__ = [
    "Bernoulli",
    "Categorical",
    "CustomNoise",
    "Gaussian",
    "HeteroscedasticGaussian",
    "NegativeBinomial",
    "Poisson",
    "StudentT",
    "check_noise",
]
