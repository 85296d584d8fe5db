"""The generated set of neutralinos, beside the published one."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tfbnn.datasets import _pair_production as pair
from tfbnn.datasets import neutralino, neutralino_pairs


@pytest.fixture(scope="module")
def pairs():
    return neutralino_pairs()


def test_shapes_names_and_split(pairs):
    assert pairs.x.shape == (2000, 5) and pairs.y.shape == (2000,)
    assert pairs.x.dtype == np.float64 and pairs.y.dtype == np.float64
    assert pairs.feature_names == ("m_chi10_GeV", "N11", "N12", "N13", "N14")
    assert pairs.target_name == "lo_xsec_fb"
    assert len(pairs) == 2000
    parts = (pairs.train, pairs.validation, pairs.test)
    assert [len(part[1]) for part in parts] == [1600, 100, 300]
    np.testing.assert_array_equal(pairs.train[0], pairs.x[:1600])
    np.testing.assert_array_equal(pairs.test[1], pairs.y[1700:])


def test_rows_are_physical(pairs):
    mass, mixing = pairs.x[:, 0], pairs.x[:, 1:]
    np.testing.assert_allclose(np.sum(mixing**2, axis=1), 1.0, rtol=1e-12)
    assert np.all(np.abs(mass) >= neutralino.LIGHTEST_MASS_GEV)
    assert 0.2 < np.mean(mass > 0) < 0.8
    assert np.all(np.isfinite(pairs.y)) and np.all(pairs.y > 0.0)
    # Targets span many orders of magnitude.
    assert np.log10(pairs.y.max() / pairs.y.min()) > 4.0
    assert 0.01 < np.median(pairs.y) < 1.0


def test_same_seed_same_rows(pairs):
    again = neutralino_pairs(2000, seed=0)
    np.testing.assert_array_equal(again.x, pairs.x)
    np.testing.assert_array_equal(again.y, pairs.y)
    assert not np.array_equal(neutralino_pairs(100, seed=1).y, pairs.y[:100])
    # A smaller set is the beginning of a larger one, and one row is enough.
    for small in (neutralino_pairs(37), neutralino_pairs(1)):
        np.testing.assert_array_equal(small.x, pairs.x[: len(small)])
        np.testing.assert_allclose(small.y, pairs.y[: len(small)], rtol=1e-13)


@pytest.mark.parametrize("num_rows", [0, -5, 2.5])
def test_bad_number_of_rows(num_rows):
    with pytest.raises(ValueError, match="num_rows"):
        neutralino_pairs(num_rows)


@pytest.mark.realdata
def test_published_table():
    folder = os.environ.get("TFBNN_DATA")
    if not folder:
        pytest.skip("set TFBNN_DATA to the folder of the data")
    table = pd.read_csv(Path(folder) / "nlo_neutralino" / "chi10chi10.csv")
    x, y = table[[*neutralino.FEATURE_NAMES]].to_numpy(), table["nlo_alphas_up_fb"].to_numpy()
    assert x.shape == (13847, 5)
    assert np.bincount(table["split"]).tolist() == [11746, 535, 1566]
    np.testing.assert_allclose(np.sum(x[:, 1:] ** 2, axis=1), 1.0, atol=1e-4)
    # Not the same quantity as the generated one, but the same physics: their ratio stays
    # near one while the cross sections themselves span many orders of magnitude.
    usable = np.flatnonzero(np.abs(x[:, 0]) > 48.0)[::4]
    ratio = y[usable] / pair.pair_cross_section_fb(x[usable, 0], x[usable, 1:])
    low, high = np.quantile(ratio, [0.01, 0.99])
    assert 0.7 < low < high < 1.5
