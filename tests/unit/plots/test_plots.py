"""Figures: they are drawn for every kind of model, show what they say, and open no window."""

import io
import sys
from itertools import product

import numpy as np
import pytest

from tests.support.builders import make_rows
from tests.support.marks import statistics_but
from tfbnn import plots
from tfbnn.fit.model import BayesianMLP
from tfbnn.likelihoods import HeteroscedasticGaussian, StudentT
from tfbnn.plots.canvas import plain
from tfbnn.plots.predictions import draw_tails, wilson_interval

matplotlib = pytest.importorskip("matplotlib")

WITH_ROWS = (plots.plot_truth, plots.plot_pulls, plots.plot_coverage)


@pytest.fixture
def model(synthetic_ensemble):
    return BayesianMLP.from_ensemble(synthetic_ensemble())


def draw(figure):
    """Renders the figure, which is when Matplotlib finds most errors; returns its size in bytes."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return len(stream.getvalue())


def lay_out(figure):
    """All that `draw` does but the pixels."""
    figure.draw_without_rendering()


KINDS = (
    {"y_transform": ("log10",), "likelihood": StudentT(), "vector_target": True},
    {"layer_sizes": (2, 5, 2), "y_transform": ()},
    {"layer_sizes": (1, 4, 2), "likelihood": HeteroscedasticGaussian(), "num_chains": 1},
)


@pytest.mark.parametrize(
    ("plot", "settings"),
    # Each kind and each figure once; the others are layouts that test_page.py has, too.
    statistics_but(list(zip(WITH_ROWS, KINDS)), list(product(WITH_ROWS, KINDS))),
)
def test_figures_of_every_kind_of_model(synthetic_ensemble, plot, settings):
    ensemble = synthetic_ensemble(**settings)
    x, y = make_rows(50, ensemble.spec.num_inputs, ensemble.spec.num_targets)
    figure = plot(BayesianMLP.from_ensemble(ensemble), x, y)
    assert isinstance(figure, matplotlib.figure.Figure)
    assert 5_000 < draw(figure) < 300_000


def test_nothing_touches_pyplot(model, monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    draw(plots.plot_convergence(model))
    assert "matplotlib.pyplot" not in sys.modules


def test_truth_has_log_axes_with_log10_and_names_targets(synthetic_ensemble):
    x, y = make_rows(50, 2, 1)
    ensemble = synthetic_ensemble(
        y_transform=("log10", "standardize"), provenance={"target_names": ["xsec_fb"]}
    )
    upper, lower = plots.plot_truth(BayesianMLP.from_ensemble(ensemble), x, y).axes
    assert upper.get_xscale() == upper.get_yscale() == "log"
    assert lower.get_yscale() == "linear"
    assert upper.get_ylabel() == "predicted xsec_fb"
    plain = plots.plot_truth(BayesianMLP.from_ensemble(synthetic_ensemble()), x, y[:, 0])
    assert plain.axes[0].get_xscale() == "linear"
    assert plain.axes[1].get_xlabel() == "true y"


def test_figures_of_the_function_alone(model):
    x, y = make_rows(50, 2, 1)
    pulls = model.evaluate(x, y, include_noise=False)["pull_width"]
    title = plots.plot_pulls(model, x, y, include_noise=False).axes[0].get_title()
    assert title.startswith("mean of the pull ") and f"width {pulls:.2f}" in title
    shares = [
        plots.plot_coverage(model, x, y, include_noise=noise).axes[0].lines[-1].get_ydata()
        for noise in (False, True)
    ]
    assert np.mean(shares[0]) < np.mean(shares[1])


def test_row_noise_is_asked_for(synthetic_ensemble):
    x, y = make_rows(50, 2, 1)
    model = BayesianMLP.from_ensemble(synthetic_ensemble(row_noise=True))
    for plot in WITH_ROWS:
        with pytest.raises(ValueError, match="noise"):
            plot(model, x, y)
        assert plot(model, x, y, noise_scale=np.full(50, 0.1)).axes


def test_many_rows_are_thinned(model):
    x, y = make_rows(1001, 2, 1)
    figure = plots.plot_truth(model, x, y)
    points = figure.axes[0].lines[-1].get_xdata()
    assert len(points) == 1000


def test_convergence(model, synthetic_ensemble):
    lay_out(plots.plot_convergence(model, x_reference=np.zeros((3, 2))))
    single = BayesianMLP.from_ensemble(synthetic_ensemble(num_chains=1, num_results=1))
    draw(plots.plot_convergence(single))  # all numbers are undefined: empty, not an error


def test_legends_of_convergence_cover_nothing(model):
    figure = plots.plot_convergence(model)
    lay_out(figure)
    for axis in figure.axes:
        inside = axis.get_window_extent()
        assert axis.get_legend().get_window_extent().y0 >= inside.y1


@pytest.mark.parametrize("share", [1 / 50, 0.3, 1.0])
def test_bars_of_shares_end_where_the_share_is_one_standard_deviation_off(share):
    low, high = wilson_interval(share, 50)
    assert 0.0 < low < share and high <= 1.0 + 1e-12
    for end in (low, high):
        spread = np.sqrt(max(end * (1.0 - end), 0.0) / 50)
        assert abs(end - share) == pytest.approx(spread, abs=1e-9)


def test_coverage_draws_these_bars(model):
    x, y = make_rows(50, 2, 1)
    y[:3] = 1e6
    bars = plots.plot_coverage(model, x, y).axes[1].collections[0].get_segments()
    outside = [np.mean([bar[0, 1], bar[1, 1]]) for bar in bars]
    assert len(bars) == 5 and all(bar[0, 1] > 0.01 for bar in bars)
    assert outside[-1] == pytest.approx(np.mean(wilson_interval(3 / 50, 50)), abs=0.02)


def test_shares_of_many_targets_stand_at_their_sigma():
    axis = matplotlib.figure.Figure().subplots()
    draw_tails(axis, np.random.default_rng(0).normal(size=(50, 20)), [str(k) for k in range(20)])
    at = np.concatenate([line.get_xdata() for line in axis.lines]).astype(float)
    assert np.abs(at - np.round(at)).max() <= 0.4


def test_labels_are_drawn_letter_by_letter():
    assert plain("a$b$") == r"a\$b\$"
    assert plain("_y") == " _y"
    assert plain("x" * 30 + "y" * 30) == "x" * 13 + "…" + "y" * 12
    assert plain("a\x1b[2J\u202e") == r"'a\x1b[2J\u202e'"
