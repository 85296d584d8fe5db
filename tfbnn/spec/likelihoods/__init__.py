"""All likelihoods; importing this registers them."""

from tfbnn.spec.likelihoods.base import OPTIONS, REGISTRY, Likelihood
from tfbnn.spec.likelihoods.classes import Bernoulli, Categorical, ClassLikelihood
from tfbnn.spec.likelihoods.regression import (
    LEARNED,
    Gaussian,
    HeteroscedasticGaussian,
    LocationScale,
    Regression,
    StudentT,
)

__all__ = [
    "LEARNED",
    "OPTIONS",
    "REGISTRY",
    "Bernoulli",
    "Categorical",
    "ClassLikelihood",
    "Gaussian",
    "HeteroscedasticGaussian",
    "Likelihood",
    "LocationScale",
    "Regression",
    "StudentT",
]
