"""Targets of many sizes are modelled by their logarithms, unless rounding or a pilot speaks against it."""

import numpy as np
import pytest

from tfbnn.fit.choices.pilot import Misfits, failed_rows, misfits_of, y_transform

LOG, PLAIN = ("log10", "standardize"), ("standardize",)
POSITIVE = np.array([1.0, 30.0, 99.0, 101.0])


def relative(size):
    """Misfits of so many decades, and of anything without the logarithm."""
    return lambda: Misfits(np.full(2, np.inf), np.full(2, size))


@pytest.mark.parametrize(
    "targets, expected, words",
    [
        ([POSITIVE], LOG, "span a factor of 101"),
        ([POSITIVE[:3]], PLAIN, "span a factor of 99"),
        ([POSITIVE - 1.0], PLAIN, "not all targets are positive"),
        ([POSITIVE, POSITIVE[::-1]], LOG, "101"),
        ([POSITIVE, np.ones(4)], PLAIN, "span a factor of 1,"),
        ([POSITIVE, -POSITIVE], PLAIN, "not all targets"),
        ([np.array([1e-300, 1.0, 1.0, 1e300])], LOG, "inf"),
    ],
)
def test_the_logarithm_is_for_targets_of_many_sizes(targets, expected, words):
    names, why = y_transform(np.column_stack(targets), relative(0.0))
    assert names == expected and words in why


def test_rounded_targets_keep_their_scale_where_rounding_is_more_than_the_misfit():
    """Like yacht: two digits after the point, from 0.01 on."""
    rounded = np.round(np.geomspace(0.01, 50.0, 200), 2)[:, None]
    blur = 0.01 / np.sqrt(12.0) / (0.01 * np.log(10.0))
    assert y_transform(rounded, relative(1.1 * blur))[0] == LOG
    names, why = y_transform(rounded, relative(0.9 * blur))
    assert names == PLAIN and "rounding to 0.01" in why
    assert y_transform(np.geomspace(0.01, 50.0, 200)[:, None], relative(0.0))[0] == LOG


def test_the_scale_with_the_higher_density_decides():
    """A relative error of 2 % has the density of 2 % of each target: of their geometric mean."""
    targets = np.geomspace(0.1, 1000.0, 50)[:, None]
    decades = np.array([np.log10(1.02)])
    equal = decades * np.log(10.0) * np.exp(np.mean(np.log(targets)))
    assert y_transform(targets, lambda: Misfits(1.1 * equal, decades))[0] == LOG
    names, why = y_transform(targets, lambda: Misfits(equal / np.exp(0.5), decades))
    assert names == PLAIN and "0.5 higher without the logarithm" in why


def test_a_function_with_pits_in_its_logarithm_keeps_its_scale():
    """Friedman's second: |x1 x2 - 1 / (x1 x3)| and so nearly 0 in places, smooth without noise."""
    x = np.random.default_rng(0).uniform(size=(300, 3))
    smooth = np.hypot(x[:, 0], 100.0 * (x[:, 1] - 0.5) * x[:, 2])[:, None]
    relative_noise = smooth * 10.0 ** np.random.default_rng(1).normal(0.0, 0.2, (300, 1))

    def chosen(y):
        return y_transform(y, lambda: misfits_of(x, y))

    assert smooth.max() > 100.0 * smooth.min() and chosen(smooth)[0] == PLAIN
    grown = np.exp(6.0 * x[:, :1]) * relative_noise / smooth
    assert chosen(grown)[0] == LOG


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_a_unit_decides_nothing(unit):
    targets, decades = np.geomspace(0.1, 1000.0, 50)[:, None], np.array([0.01])

    def chosen(scale, size):
        return y_transform(scale * targets, lambda: Misfits(np.array([scale * size]), decades))[0]

    for size in (0.01, 10.0):
        assert chosen(unit, size) == chosen(1.0, size)
    assert chosen(1.0, 0.01) != chosen(1.0, 10.0)


DECADES = np.geomspace(0.01, 1000.0, 100)


def with_codes(*codes):
    targets = DECADES.copy()
    targets[[20, 40, 60, 80][: len(codes)]] = codes
    return targets[:, None]


@pytest.mark.parametrize("codes", [(-1.0,), (0.0,), (-999.0, 0.0), (-9999.0,) * 4])
def test_rows_of_a_failed_calculation_are_found(codes):
    found = np.flatnonzero(failed_rows(with_codes(*codes)))
    assert found.tolist() == [20, 40, 60, 80][: len(codes)]


@pytest.mark.parametrize(
    "targets",
    [
        DECADES,
        np.where(np.arange(100) < 6, 0.0, DECADES),  # zeros are part of them
        np.where(np.arange(100) < 3, -DECADES, DECADES),  # they have signs
        np.where(np.arange(100) == 3, -1.5, with_codes(-1.0)[:, 0]),
        DECADES - DECADES.mean(),
    ],
)
def test_targets_with_zeros_or_signs_of_their_own_have_none(targets):
    assert not failed_rows(targets[:, None]).any()
