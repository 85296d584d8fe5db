"""Likelihoods of numbers and of classes, for `BayesianMLP(likelihood=...)`."""

from tfbnn.spec.likelihoods import (
    Bernoulli,
    Categorical,
    Gaussian,
    HeteroscedasticGaussian,
    StudentT,
)

__all__ = ["Bernoulli", "Categorical", "Gaussian", "HeteroscedasticGaussian", "StudentT"]
