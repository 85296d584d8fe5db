"""The pilot finds the noise of tables whose noise is known."""

import numpy as np
import pytest

from tfbnn.fit.choices.pilot import _held_out_error, pilot_misses, pilot_noise
from tfbnn.spec.rows import NetworkRows


def rows(noise, num_rows=400, num_inputs=3, seed=0):
    """A smooth function of mean 0 and variance 1, not linear, with noise of these sizes [K]."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2.0, 2.0, size=(num_rows, num_inputs))
    f = np.sin(1.5 * x[:, 0]) + 0.5 * x[:, 0] * x[:, 1] + 0.5 * np.cos(x[:, 2])
    f = (f - f.mean()) / f.std()
    noise = np.asarray(noise) * generator.standard_normal((num_rows, len(noise)))
    # In no unit that the pilot could rely on.
    return NetworkRows(1e3 * x + 5e4, f[:, None] + noise, None)


@pytest.mark.parametrize("num_rows", [150, 400, 2000])
def test_it_finds_the_noise_of_every_target(num_rows):
    noise = np.array([0.3, 0.01, 0.1])
    found = pilot_noise(rows(noise, num_rows))
    assert (found > noise / 1.5).all()
    # Few rows do not say where a function bends.
    assert (found < (3.0 if num_rows > 150 else 5.0) * noise).all()
    assert found[1] < found[2] < found[0]


def test_leave_one_out_is_what_leaving_out_says():
    """Ridge regression on the inputs, with each row left out in turn."""
    x, y, _ = rows([0.3], num_rows=40)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    errors = []
    for ridge in np.logspace(-12.0, 0.0, 25) * np.linalg.norm(x, 2) ** 2:
        off = []
        for row in range(len(x)):
            others = np.arange(len(x)) != row
            # The intercept is not shrunk.
            design = np.column_stack([np.ones(len(x)), x])
            gram = design[others].T @ design[others] + np.diag([0.0, ridge, ridge, ridge])
            off.append(y[row] - design[row] @ np.linalg.solve(gram, design[others].T @ y[others]))
        errors.append(np.sqrt(np.mean(np.square(off))))
    np.testing.assert_allclose(_held_out_error(x, y), min(errors), rtol=1e-6)


def test_more_inputs_than_rows_are_no_reason_to_see_no_noise():
    """Leave-one-out of the line through all rows: 0 / 0, unless what it leaves is told exactly."""
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((40, 100)), generator.standard_normal((40, 1))
    assert pilot_noise(NetworkRows(x, y, None)) > 0.8
    line = pilot_noise(NetworkRows(x, x[:, :1] * 3.0, None))
    assert 0.3 < line < 1.0  # most of it is out of sight


def test_the_same_rows_have_the_same_bits():
    first, second = (pilot_noise(rows([0.1], num_rows=300)) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("num_rows", [1, 2, 8, 9])
def test_few_rows_and_columns_that_say_nothing_are_taken(num_rows):
    x, y = np.ones((num_rows, 2)), np.arange(2.0 * num_rows).reshape(num_rows, 2)
    for targets in (y, np.zeros_like(y)):
        noise = pilot_noise(NetworkRows(x, targets, None))
        assert noise.shape == (2,)
        assert np.isfinite(noise).all() and (noise <= 2.0).all()


def test_what_it_misses_is_in_the_units_of_the_targets():
    x, y, _ = rows([0.3])
    noise = pilot_noise(NetworkRows(x, y, None))
    for unit in (1.0, 1e250):
        found = pilot_misses(NetworkRows(x, unit * y, None))
        np.testing.assert_allclose(found, noise * y.std(axis=0) * unit, rtol=1e-6)


def test_noise_is_in_standard_deviations_whatever_the_unit_and_the_mean():
    """Also of sizes whose squares no number can hold."""
    x, y, _ = rows([0.3])
    plain = pilot_noise(NetworkRows(x, y, None))
    np.testing.assert_allclose(
        pilot_noise(NetworkRows(x, 500.0 + 20.0 * y, None)), plain, rtol=1e-6
    )
    for unit in (1e200, 1e-200):
        found = pilot_noise(NetworkRows(unit * x, unit * y, None))
        np.testing.assert_allclose(found, plain, rtol=1e-3)
    constant = pilot_noise(NetworkRows(x, np.full_like(y, 7.0), None))
    np.testing.assert_array_equal(constant, 1.0)
