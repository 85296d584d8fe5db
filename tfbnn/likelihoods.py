"""Likelihoods of numbers and of classes, for `BayesianMLP(likelihood=...)`."""

from tfbnn.spec.class_likelihoods import Bernoulli, Categorical
from tfbnn.spec.regression_likelihoods import Gaussian, HeteroscedasticGaussian, StudentT

__all__ = ["Bernoulli", "Categorical", "Gaussian", "HeteroscedasticGaussian", "StudentT"]
