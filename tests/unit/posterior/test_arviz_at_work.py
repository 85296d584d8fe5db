"""ArviZ at work on what `to_arviz` gives, and on model files as they are."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support.builders import synthetic_ensemble
from tests.support.predictions import rows_for
from tfbnn.spec.rows import prepare_rows, row_digests


@pytest.fixture(scope="module")
def az():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ tells of its next version
        return pytest.importorskip("arviz")


@pytest.fixture(scope="module")
def fitted(az):
    """(ensemble, data, x, y): draws that scatter a little around one network, and its rows."""
    ensemble = synthetic_ensemble(
        (2, 3, 1), num_chains=4, num_results=100, feature_names=("mass", "mix")
    )
    generator = np.random.default_rng(0)
    noise = 0.02 * generator.normal(size=ensemble.draws.shape)
    ensemble = replace(ensemble, draws=(ensemble.draws[:1, :1] + noise))
    x, _ = rows_for(ensemble, 40)
    y = tfbnn.BayesianMLP.from_ensemble(ensemble).predict(x).mean
    y = y + y.std() * 0.3 * generator.normal(size=y.shape)
    digests = row_digests(prepare_rows(ensemble.spec, x, y, None))
    ensemble = replace(ensemble, row_digests=digests)
    return ensemble, ensemble.to_arviz(x, y), x, y


def test_leave_one_out_is_what_it_should_be(az, fitted):
    """Against the harmonic mean of densities, which these calm draws allow."""
    _, data, _, _ = fitted
    found = az.loo(data)
    values = data["log_likelihood"]["y"].values.reshape(400, 40)
    exact = np.log(400) - np.logaddexp.reduce(-values, axis=0)
    elpd = found["elpd_loo"] if hasattr(found, "elpd_loo") else found.elpd
    assert float(elpd) == pytest.approx(exact.sum(), abs=0.02)


def test_it_goes_to_a_file_and_back(az, fitted, tmp_path):
    _, data, _, _ = fitted
    data.to_netcdf(str(tmp_path / "draws.nc"))
    again = az.from_netcdf(str(tmp_path / "draws.nc"))
    np.testing.assert_array_equal(again["posterior"]["f"], data["posterior"]["f"])


@pytest.mark.filterwarnings("ignore:The 'phony_dims' kwarg")
def test_a_model_file_opens_as_it_is(az, fitted, tmp_path):
    """All that it lacks are the names of dimensions, which the fence of the format keeps out."""
    ensemble = fitted[0]
    tfbnn.BayesianMLP.from_ensemble(ensemble).save(tmp_path / "model.h5")
    data = az.from_netcdf(str(tmp_path / "model.h5"))
    np.testing.assert_array_equal(data["posterior"]["theta"], ensemble.draws)
    np.testing.assert_array_equal(data["sample_stats"]["lp"], ensemble.sample_stats["lp"])
