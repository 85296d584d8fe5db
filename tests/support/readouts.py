"""Models whose readouts are repriorised or collapsed, with rows."""

import numpy as np
import tensorflow as tf

from tests.support.builders import plain_spec
from tfbnn.engine.density.data import all_of
from tfbnn.engine.density.reparametrisation import RepriorisedPotential
from tfbnn.engine.starts.check import draw_prior
from tfbnn.likelihoods import (
    Bernoulli,
    Categorical,
    Gaussian,
    HeteroscedasticGaussian,
    StudentT,
)
from tfbnn.priors import ARD, HierarchicalNormal, Laplace, Normal, Uniform

__all__ = ["CONJUGATE", "OTHERS", "build", "with_padding"]


def make_model(
    num_outputs=1,
    likelihood=Gaussian(0.3),
    prior=Normal(0.7),
    parameterization="standard",
    dtype="float64",
    hidden=(4, 5),
):
    return plain_spec(
        [2, *hidden, num_outputs],
        prior=prior,
        likelihood=likelihood,
        parameterization=parameterization,
        dtype=dtype,
    )


def make_rows(spec, num_rows, row_noise=False, seed=0):
    """Data of so many rows; of classes their numbers."""
    generator = np.random.default_rng(seed)
    shape = (spec.num_targets, num_rows)
    y = generator.normal(size=shape)
    if spec.has_classes:
        y = generator.integers(0, 2, size=shape).astype(float)
    noise = generator.uniform(0.2, 0.6, size=shape) if row_noise else None
    x = generator.normal(size=(2, num_rows))
    return all_of(x, y, noise).map(lambda array: tf.constant(array, spec.dtype))


CONJUGATE = {
    "learned": dict(likelihood=Gaussian("learned")),
    "two outputs": dict(num_outputs=2),
    "two learned": dict(num_outputs=2, likelihood=Gaussian("learned")),
    "per output": dict(num_outputs=2, likelihood=Gaussian([0.3, 0.5])),
    "per row": dict(num_outputs=2, row_noise=True),
    "hierarchical": dict(prior=HierarchicalNormal(), likelihood=Gaussian("learned")),
    "ntk": dict(num_outputs=2, parameterization="ntk"),
    # Without hidden layers the first kernel is the readout's.
    "ARD": dict(prior=[{"kernel": ARD(), "bias": Normal(0.7)}], hidden=[], num_outputs=2),
    "ntk ARD": dict(
        prior=[{"kernel": ARD(), "bias": HierarchicalNormal()}],
        hidden=[],
        likelihood=Gaussian("learned"),
        parameterization="ntk",
    ),
    "ntk hierarchical": dict(prior=HierarchicalNormal(), parameterization="ntk"),
}
OTHERS = {
    "laplace": dict(prior=Laplace(0.5)),
    "uniform": dict(prior=Uniform(-3.0, 3.0)),
    "student": dict(likelihood=StudentT(df=4.0), regulariser=0.2),
    "two scales": dict(likelihood=Gaussian("learned"), row_noise=True),
    "heteroscedastic": dict(num_outputs=4, likelihood=HeteroscedasticGaussian(), regulariser=0.3),
    "bernoulli": dict(num_outputs=2, likelihood=Bernoulli(), regulariser=0.5),
    "categorical": dict(num_outputs=3, likelihood=Categorical(), regulariser=0.5),
    "regularised": dict(num_outputs=2, likelihood=Gaussian("learned"), regulariser=0.4),
}


def build(num_rows, row_noise=False, regulariser=None, **model):
    """(Repriorised, Data, theta [3, P])."""
    spec = make_model(**model)
    data = make_rows(spec, num_rows, row_noise)
    return RepriorisedPotential(spec, regulariser), data, draw_prior(spec, 1, 3)


def with_padding(data):
    """The same rows behind two and before three that must not count."""

    def padded(array):
        return tf.concat([array[..., :2] + 5.0, array, array[..., :3] + 7.0], axis=-1)

    return data.map(padded)._replace(first=data.first + 2, last=data.last + 2)
