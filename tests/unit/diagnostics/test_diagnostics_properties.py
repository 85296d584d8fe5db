"""Invariances of the chain diagnostics, on draws made by hypothesis."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tfbnn.diagnostics import statistics as diagnostics

UNITLESS = [
    getattr(diagnostics, name) for name in "rhat split_rhat bulk_ess tail_ess geyer_ess".split()
]
# Whole numbers have ties, and stay apart under the maps below.
whole_draws = arrays(np.float64, (3, 16), elements=st.integers(-50, 50).map(float))
some_examples = settings(max_examples=40, deadline=None)


@some_examples
@given(whole_draws, st.sampled_from([0.25, 3.0, 1e4]), st.integers(-9, 9))
def test_increasing_affine_maps_do_not_matter(draws, slope, intercept):
    moved = slope * draws + intercept
    for function in UNITLESS:
        np.testing.assert_allclose(function(moved), function(draws), rtol=1e-6)
    scaled = slope * diagnostics.mcse_mean(draws)
    np.testing.assert_allclose(diagnostics.mcse_mean(moved), scaled, rtol=1e-6)


@some_examples
@given(whole_draws)
def test_numbers_stay_in_their_ranges(draws):
    size = draws.size
    for function in (diagnostics.bulk_ess, diagnostics.tail_ess):
        assert not function(draws) <= 0 and not function(draws) > 1.001 * size * np.log10(size)
