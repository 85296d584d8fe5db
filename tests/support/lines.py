"""Ensembles of straight lines through rows with a little noise, and quiet statistics of their draws."""

import numpy as np

from tests.support.builders import make_ensemble, plain_spec, random_statistics
from tfbnn.spec.rows import Rows

NOISE = 0.1


def quiet_statistics(shape):
    """Sample statistics without divergences."""
    return random_statistics(shape, np.random.default_rng(3)) | {"diverging": np.zeros(shape, bool)}


def lines_through(x, y, weight, spread, *, row_noise=None, scale=None, **settings):
    """(Ensemble of straight lines with weights N(weight, spread^2), training rows)."""
    spec = plain_spec([1, 1], **settings)
    generator = np.random.default_rng(4)
    draws = (
        generator.normal(size=(4, 300, spec.layout.num_parameters))
        * [spread, spread, 0.01][: spec.layout.num_parameters]
    )
    draws[..., 0] += weight
    if scale is not None:
        draws[..., spec.layout.log_noise_scale] += np.log(scale)
    noise = None if row_noise is None else np.full(y.shape, row_noise)
    statistics = quiet_statistics(draws.shape[:2])
    ensemble = make_ensemble(spec, draws, x, y, statistics, row_noise=noise is not None)
    return ensemble, ensemble.transform(Rows(x, y, noise, None))


def rows(count=200):
    generator = np.random.default_rng(8)
    x = generator.normal(size=(count, 1))
    return x, x + NOISE * generator.normal(size=(count, 1))


X, Y = rows()
