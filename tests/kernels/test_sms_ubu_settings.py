"""Which derivatives of batches are compared, and what that costs: told before anything is compiled."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from tests.support.builders import plain_spec
from tests.support.keras_models import KINDS
from tfbnn.engine.kernels.batch_sweeps import Correction
from tfbnn.exceptions import StartError
from tfbnn.kernels import HMC, SMSUBU
from tfbnn.run.cost import estimated_seconds, estimated_seconds_of_starts
from tfbnn.run.plan import make_legs
from tfbnn.spec.priors import EarlierRows


def after_earlier_rows():
    spec = plain_spec([2, 4, 1])
    rows = {"x": np.zeros((9, 2)), "y": np.zeros((9, 1)), "weights": np.ones(9)}
    networks = np.zeros((1, spec.num_parameters))
    return spec.after(EarlierRows.of(**rows, noise=None, num_rows=9, networks=networks))


@pytest.mark.parametrize(
    "layers, num_batches, expected",
    [([5, 20, 1], 32, "hessian"), ([5, 60, 1], 32, "gradient"), ([5, 60, 1], 16, "hessian")],
)
def test_second_derivatives_are_compared_where_they_are_few(layers, num_batches, expected):
    settings, _ = SMSUBU(num_batches=num_batches).resolve(plain_spec(layers), 1000)
    assert settings.control_variates == expected


@pytest.mark.parametrize("asked", ["hessian", "gradient", "none"])
def test_what_is_asked_for_is_compared(asked):
    kernel = SMSUBU(control_variates=asked)
    settings, _ = kernel.resolve(plain_spec([5, 60, 1]), 1000)
    assert settings == replace(kernel, preconditioner=settings.preconditioner)


@pytest.mark.parametrize(
    "make_spec, match",
    [
        (lambda: plain_spec([5, 250, 1]), "would keep 9.82e.07 for num_batches=32 and P = 1752"),
        (lambda: KINDS["subclassed"].model().spec, "received another model"),
        (after_earlier_rows, "all copies of the rows of earlier fits"),
    ],
    ids=["wide", "keras", "earlier"],
)
def test_second_derivatives_that_take_too_much_memory_are_refused(make_spec, match):
    spec = make_spec()
    with pytest.raises(ValueError, match=f"{match}.* Use control_variates='gradient'"):
        SMSUBU(control_variates="hessian").resolve(spec, 1000)
    assert SMSUBU().resolve(spec, 1000)[0].control_variates == "gradient"


@pytest.mark.parametrize("name", ["shift", "bend"])
def test_batches_that_can_not_be_compared_are_refused(name):
    parts = {
        "centre": np.zeros((2, 3)),
        "shift": np.zeros((4, 2, 3)),
        "bend": np.zeros((4, 2, 3, 3)),
    }
    results = SimpleNamespace(
        correction=Correction(**{k: tf.constant(v) for k, v in parts.items()})
    )
    SMSUBU().check_start(results, [3, 7])
    parts[name][2, 1] = np.inf
    results.correction = Correction(**{k: tf.constant(v) for k, v in parts.items()})
    with pytest.raises(StartError, match="not finite where chain 7 compares them"):
        SMSUBU().check_start(results, [3, 7])


def test_second_derivatives_are_in_the_estimate():
    """Of 2 P + 1 gradients at the start and after every window; a transition has three."""
    spec = plain_spec([5, 20, 1])
    settings, _ = SMSUBU().resolve(spec, 10**5)
    starts = 1 + sum(leg.renew for leg in make_legs(settings, 400, 10, 1))
    assert starts > 3
    found = estimated_seconds_of_starts(spec, settings, 10**5, 400)
    sweep = estimated_seconds(spec, settings, 10**5, 1)
    assert found / sweep == pytest.approx(starts * (2 * spec.num_parameters + 1) / 3)
    assert estimated_seconds_of_starts(spec, HMC(), 10**5, 400) == 0.0
