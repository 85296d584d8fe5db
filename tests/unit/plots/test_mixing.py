"""Running means and autocorrelations: they show the numbers that they name."""

import io

import numpy as np
import pytest

from tests.support.builders import synthetic_ensemble
from tfbnn import plots
from tfbnn.diagnostics.statistics import autocorrelation
from tfbnn.fit.model import BayesianMLP

pytest.importorskip("matplotlib")


@pytest.fixture
def model():
    return BayesianMLP.from_ensemble(synthetic_ensemble(num_results=200))


def lines(axis, count):
    return [line.get_xydata() for line in axis.lines[:count]]


def names(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_running_means_are_the_means_so_far(model):
    figure = plots.plot_running_means(model, weights=[0, 7])
    draws = model.posterior.draws
    assert [axis.get_ylabel() for axis in figure.axes[:3]] == [
        "log density",
        "layer 1 kernel[0, 0]",
        model.posterior.spec.parameter_name(7),
    ]
    assert not figure.axes[3].axison and names(figure) == ["chain 0", "chain 1"]
    for axis, place in zip(figure.axes[1:], (0, 7)):
        for chain, line in enumerate(lines(axis, 2)):
            for count, mean in line[[0, 10, -1]]:
                assert mean == pytest.approx(draws[chain, : int(count), place].mean())
        assert line[-1, 0] == 200
        low, high = np.sort(
            axis.patches[0].get_extents().transformed(axis.transData.inverted()).intervaly
        )
        assert high - low == pytest.approx(2.0 * draws[..., place].std())
    figure.savefig(io.BytesIO(), format="png")


def test_autocorrelations_are_those_of_each_chain(model):
    figure = plots.plot_autocorrelation(model, max_lag=12)
    found = autocorrelation(model.posterior.sample_stats["lp"], 12)
    for chain, line in enumerate(lines(figure.axes[0], 2)):
        np.testing.assert_allclose(line, np.column_stack([np.arange(13), found[chain]]))
    with pytest.raises(ValueError, match="max_lag must be at most 199.*received 200"):
        plots.plot_autocorrelation(model, max_lag=200)


def test_lags_go_on_until_chains_have_forgotten():
    generator = np.random.default_rng(0)
    ensemble = synthetic_ensemble(num_results=4000)
    noise = generator.standard_normal((2, 4000))
    slow = np.zeros((2, 4000))
    for step in range(1, 4000):
        slow[:, step] = 0.9 * slow[:, step - 1] + noise[:, step]
    ensemble.draws.flags.writeable = True
    ensemble.draws[:] = noise[..., None]
    ensemble.draws[..., 0], ensemble.draws[..., 1] = slow, 1.0
    figure = plots.plot_autocorrelation(BayesianMLP.from_ensemble(ensemble), weights=[0, 1])
    lags = lines(figure.axes[1], 2)[0][:, 0]
    # .9^22 is .1.
    assert 30 < lags[-1] < 70
    assert np.isnan(lines(figure.axes[2], 2)[0][:, 1]).all()
    figure.savefig(io.BytesIO(), format="png")


@pytest.mark.parametrize("plot", [plots.plot_running_means, plots.plot_traces])
def test_what_is_no_weight(model, plot):
    size = model.posterior.draws.shape[-1]
    with pytest.raises(ValueError, match=f"theta, which has {size} of them.*{size}"):
        plot(model, weights=[0, size])
    with pytest.raises(ValueError, match="received \\[\\]"):
        plot(model, weights=[])
    with pytest.raises(TypeError, match="integer"):
        plot(model, weights=["kernel"])
    with pytest.raises(ValueError, match="give one of them"):
        plot(model, [[0.0, 0.0]], weights=[0])
