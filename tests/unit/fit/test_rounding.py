"""The advice of float64, where rounding changes the log density."""

from types import SimpleNamespace

import numpy as np

from tests.support.builders import make_rows
from tests.support.builders import synthetic_ensemble as build
from tfbnn.fit.job import _rounding_note
from tfbnn.likelihoods import Gaussian, HeteroscedasticGaussian
from tfbnn.spec.rows import NetworkRows


def synthetic_ensemble(*arguments, **settings):
    return build(*arguments, **{"dtype": "float32"} | settings)


def note(ensemble, noise=None):
    """The note on 400 rows of order one."""
    x, y = make_rows(400, 2, ensemble.spec.num_targets)
    rows = NetworkRows(x, y, noise)
    config = SimpleNamespace(spec=ensemble.spec, transformed=SimpleNamespace(train=rows))
    return _rounding_note(SimpleNamespace(config=config), ensemble)


def test_small_noise_of_any_kind_is_told_of():
    assert note(synthetic_ensemble(likelihood=Gaussian(0.1))) is None
    assert "use dtype='float64'" in note(synthetic_ensemble(likelihood=Gaussian(1e-6)))
    assert note(synthetic_ensemble(likelihood=Gaussian(1e-6), dtype="float64")) is None
    by_rows = np.where(np.arange(400) % 3, 1.0, 1e-6)[:, None]
    assert note(synthetic_ensemble(likelihood=Gaussian(1.0), row_noise=True), by_rows) is not None
    one_of_three = synthetic_ensemble((2, 5, 3), likelihood=Gaussian("learned"))
    draws = one_of_three.draws.copy()
    draws[..., one_of_three.spec.layout.num_weights :] = np.log([1e-6, 0.5, 0.5])
    assert note(one_of_three) is None and note(one_of_three.with_draws(draws)) is not None
    by_inputs = synthetic_ensemble((2, 5, 2), likelihood=HeteroscedasticGaussian())
    draws = by_inputs.draws.copy()
    assert note(by_inputs) is None
    draws[..., by_inputs.spec.layout.num_weights - 1] = -16.0
    draws[..., by_inputs.spec.layout.num_weights - 12 : by_inputs.spec.layout.num_weights - 2] = 0.0
    assert note(by_inputs.with_draws(draws)) is not None
