"""The lists of likelihoods, priors and transforms, which a test may add to for its own time."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from tfbnn.data import transforms
from tfbnn.spec import likelihoods, priors

FAMILIES = {
    likelihoods.Likelihood: likelihoods.REGISTRY,
    priors.WeightPrior: priors.WEIGHT_PRIORS,
    priors.ScalePrior: priors.SCALE_PRIORS,
    transforms.Transform: transforms.TRANSFORMS,
}


@contextmanager
def kept_registries():
    """Leaves all lists as they were."""
    with ExitStack() as stack:
        for registry in (*FAMILIES.values(), likelihoods.OPTIONS, priors.REGISTRY):
            stack.enter_context(patch.dict(registry))
        yield
