"""Reliability, slices and relevance; and what figures say of what they leave out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.coded import COLOURS, FRAME, coded_ensemble
from tests.support.predictions import ARD_FIRST
from tfbnn import plots
from tfbnn.data.training_inputs import summarise_inputs
from tfbnn.fit.model import BayesianMLP
from tfbnn.likelihoods import Bernoulli, Categorical, HeteroscedasticGaussian, Poisson
from tfbnn.plots.canvas import styled_figure
from tfbnn.plots.classes import Forecasts, draw_reliability
from tfbnn.plots.page.content import WIDTH
from tfbnn.plots.page.sections import _draw
from tfbnn.plots.predictions import draw_truth, find_truths, wilson_interval
from tfbnn.plots.slices import draw_relevance
from tfbnn.plots.slicing import find_slices, why_no_slices
from tfbnn.priors import Normal

pytest.importorskip("matplotlib")
from matplotlib.legend import Legend  # noqa: E402
from matplotlib.text import Text  # noqa: E402


def model_of(**settings):
    return BayesianMLP.from_ensemble(synthetic_ensemble(**settings))


def noiseless(**settings):
    """A model of rows with noises of their own: elsewhere there is none to be sampled, which takes long."""
    return model_of(row_noise=True, **settings)


def draw(figure):
    """Lays the figure out, text by text; test_plots.py writes files, too."""
    figure.draw_without_rendering()


def check_labels_are_whole(figure):
    """No title, label or legend reaches beyond the figure."""
    figure.draw_without_rendering()
    texts = [text for legend in figure.findobj(Legend) for text in legend.findobj(Text)]
    for axis in figure.axes:
        texts += [axis.xaxis.label, axis.yaxis.label, axis.title, *axis.get_yticklabels()[1:-1]]
    outer = figure.bbox.padded(1)
    for text in texts:
        (x0, y0), (x1, y1) = text.get_window_extent().get_points()
        is_inside = outer.contains(x0, y0) and outer.contains(x1, y1)
        assert is_inside or not text.get_text(), text.get_text()


def labels(legend):
    return [text.get_text() for text in legend.get_texts()]


# ----------------------------------------------------------------------------------------
# Reliability.
# ----------------------------------------------------------------------------------------


def test_reliability_of_two_classes_is_that_of_the_second():
    model = model_of(likelihood=Bernoulli(), classes=("no", "yes"))
    x = make_rows(400, 2, 1)[0]
    given = model.predict(x).columns.mean[:, 0]
    came_true = np.random.default_rng(0).uniform(size=400) < given
    figure = plots.plot_reliability(model, x, np.array(["no", "yes"])[came_true.astype(int)])
    upper, lower = figure.axes
    assert lower.get_xlabel() == "probability of y = yes"
    bins = np.minimum((10 * given).astype(int), 9)
    positions, shares = upper.lines[1].get_data()
    for number, (position, share) in zip(np.unique(bins), zip(positions, shares)):
        inside = bins == number
        assert position == pytest.approx(given[inside].mean())
        assert share == pytest.approx(came_true[inside].mean())
    assert sum(bar.get_height() for bar in lower.patches) == 400
    first = bins == bins.min()
    bar = upper.collections[0].get_segments()[0][:, 1]
    assert bar == pytest.approx(wilson_interval(shares[0], np.sum(first)), abs=1e-12)
    draw(figure)


def test_bins_of_few_rows_are_told_apart():
    given = np.concatenate([np.full(20, 0.05), np.full(4, 0.55), np.full(5, 0.95)])
    with styled_figure(2, 1, (4.6, 2.8)) as (_, axes):
        draw_reliability(axes[0, 0], Forecasts("p", given, given > 0.5, 0.9))
    _, few, many = axes[0, 0].lines
    assert few.get_color() != many.get_color() and few.get_linestyle() == "None"
    assert few.get_markersize() < many.get_markersize() / 2
    assert few.get_xdata() == pytest.approx([0.55])
    assert many.get_xdata() == pytest.approx([0.05, 0.95]) and many.get_linestyle() == "-"


def test_reliability_of_more_classes_is_that_of_the_predicted_one():
    model = model_of(layer_sizes=(2, 4, 3), likelihood=Categorical(), classes=("a", "b", "c"))
    x = make_rows(90, 2, 1)[0]
    y = model.predict_classes(x)
    figure = plots.plot_reliability(model, x, y)
    upper, lower = figure.axes
    assert lower.get_xlabel() == "probability of the predicted y"
    assert set(upper.lines[1].get_ydata()) == {1.0} and "accuracy 1" in upper.get_title()
    assert min(upper.lines[1].get_xdata()) > 1 / 3


def test_slices_show_ten_of_many_classes():
    classes = tuple(f"class {number:02}" for number in range(12))
    model = model_of(layer_sizes=(2, 4, 12), likelihood=Categorical(), classes=classes)
    mean = model.predict(model.posterior.x_reference).mean.mean(axis=0)
    least = {classes[index] for index in np.argsort(mean)[:2]}
    for axis in plots.plot_slices(model).axes:
        assert "(10 of 12" in axis.get_ylabel()
        assert set(classes) - set(axis.get_legend_handles_labels()[1]) == least


def test_reliability_of_several_targets_and_what_it_is_not_for():
    model = model_of(layer_sizes=(2, 4, 2), likelihood=Bernoulli())
    x, y = make_rows(40, 2, 2)
    figure = plots.plot_reliability(model, x, (y > 3).astype(int))
    assert [axis.get_xlabel() for axis in figure.axes[2:]] == [
        "probability of y1 = 1",
        "probability of y2 = 1",
    ]
    with pytest.raises(ValueError, match="plot_pulls"):
        plots.plot_reliability(model_of(), x, y[:, 0])
    with pytest.raises(ValueError, match="plot_reliability"):
        plots.plot_truth(model, x, y)


# ----------------------------------------------------------------------------------------
# Slices.
# ----------------------------------------------------------------------------------------


def test_one_input_has_its_rows_and_both_bands():
    model = model_of(layer_sizes=(1, 5, 1), num_results=60)
    x, y = make_rows(50, 1, 1)
    figure = plots.plot_slices(model, x, y)
    (axis,) = figure.axes
    rows, median = axis.lines
    np.testing.assert_array_equal(rows.get_xydata(), np.column_stack([x, y]))
    bands = {"function, 68 %", "new observation, 68 %", "beyond the rows of the fit"}
    assert set(labels(figure.legends[0])) == {"rows", "median"} | bands
    grid = median.get_xdata()[:, None]
    expected = model.predict(grid, quantiles=[0.5]).quantiles[0]
    np.testing.assert_allclose(median.get_ydata(), np.ravel(expected), rtol=1e-9)
    # A little beyond the rows, which were standardised.
    assert grid.min() < x.min() and grid.max() > x.max()
    noisy, function = (band.get_datalim(axis.transData).height for band in axis.collections[:2])
    assert noisy > function


def test_other_inputs_are_at_their_medians():
    names = {"feature_names": ("a_GeV", "b", "c"), "provenance": {"target_names": ["y_fb", "z"]}}
    model = noiseless(layer_sizes=(3, 5, 2), **names)
    x = make_rows(31, 3, 2)[0]
    figure = plots.plot_slices(model, x)
    assert len(figure.axes) == 6
    second = figure.axes[1]
    assert (second.get_xlabel(), second.get_ylabel()) == ("b", "y_fb")
    assert figure.axes[0].get_xlabel() == "a_GeV"
    line = second.lines[0]
    rows = np.repeat(np.median(x, axis=0)[None], len(line.get_xdata()), axis=0)
    rows[:, 1] = line.get_xdata()
    expected = model.predict(rows, quantiles=[0.5]).quantiles[0, :, 0]
    np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-6)
    draw(figure)


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({"likelihood": Categorical(), "layer_sizes": (2, 4, 3), "classes": tuple("abc")}, 3),
        ({"likelihood": Bernoulli(), "classes": ("no", "yes")}, 1),
    ],
)
def test_slices_of_classes_are_their_probabilities(settings, expected):
    figure = plots.plot_slices(model_of(**settings))
    axis = figure.axes[0]
    assert len(axis.lines) == expected and axis.get_ylabel().startswith("probability of y")
    total = sum(line.get_ydata() for line in axis.lines)
    assert expected == 1 or total == pytest.approx(1.0)
    assert all(0 <= line.get_ydata().min() <= line.get_ydata().max() <= 1 for line in axis.lines)


def test_logarithms_have_logarithmic_axes():
    figure = plots.plot_slices(model_of(y_transform=("log10", "standardize")))
    axis = figure.axes[0]
    assert (axis.get_xscale(), axis.get_yscale()) == ("linear", "log")
    draw(figure)


def test_known_noise_of_rows_is_known_nowhere_else():
    model = model_of(layer_sizes=(1, 4, 1), row_noise=True)
    (legend,) = plots.plot_slices(model).legends
    assert "new observation, 68 %" not in labels(legend)


def test_six_inputs_are_shown_the_most_relevant_ones():
    prior = [ARD_FIRST, Normal(0.7)]
    names = tuple("abcdefgh")
    model = noiseless(layer_sizes=(8, 4, 1), prior=prior, feature_names=names)
    best = np.argsort(-model.relevance().median)[:6]
    shown = [axis.get_xlabel() for axis in plots.plot_slices(model).axes]
    assert shown == [names[index] for index in sorted(best)]
    plain = plots.plot_slices(noiseless(layer_sizes=(8, 4, 1), feature_names=names))
    assert [axis.get_xlabel() for axis in plain.axes] == list("abcdef")


UNEVEN = FRAME.assign(
    colour=["green"] * 9 + ["blue"] * 8 + ["naïve λ"] * 7, kind=["right"] * 13 + ["left"] * 11
)
USUAL = {"mass": UNEVEN["mass"].median(), "colour": "green", "ok": False, "kind": "right"}
USUAL["mix"] = UNEVEN["mix"].median()


def rows_around(name, values):
    """A frame at the medians and most frequent values, but for one column."""
    return pd.DataFrame([USUAL | {name: value} for value in values])


@pytest.fixture(scope="module")
def coded():
    """A model of columns of text and flags, and its slices."""
    model = BayesianMLP.from_ensemble(coded_ensemble(UNEVEN))
    return model, plots.plot_slices(model, UNEVEN)


def test_columns_of_text_are_at_their_most_frequent_value(coded):
    model, figure = coded
    assert [axis.get_xlabel() for axis in figure.axes] == ["mass", "colour", "ok", "kind", "mix"]
    for axis, name in zip(figure.axes[::4], ("mass", "mix")):
        positions, middle = axis.lines[0].get_data()
        expected = model.predict(rows_around(name, positions), quantiles=[0.5]).quantiles[0, :, 0]
        np.testing.assert_allclose(middle, expected, rtol=1e-6)


def test_text_and_flags_have_a_point_with_bars_for_every_value(coded):
    model, figure = coded
    values = {"colour": COLOURS, "ok": (False, True), "kind": ("left", "right")}
    for axis, (name, words) in zip(figure.axes[1:], values.items()):
        assert [text.get_text() for text in axis.get_xticklabels()] == list(map(str, words))
        (points,), (noisy, function) = axis.lines, axis.collections
        frame = rows_around(name, words)
        low, middle, high = model.predict(frame, quantiles=[0.16, 0.5, 0.84]).quantiles[..., 0]
        np.testing.assert_array_equal(points.get_xdata(), np.arange(len(words)))
        np.testing.assert_allclose(points.get_ydata(), middle, rtol=1e-6)
        bars = np.array([segment[:, 1] for segment in function.get_segments()])
        np.testing.assert_allclose(bars, np.column_stack([low, high]), rtol=1e-6)
        wide = np.array([segment[:, 1] for segment in noisy.get_segments()])
        assert (np.ptp(wide, axis=1) > np.ptp(bars, axis=1)).all()
    assert labels(figure.legends[0])[:3] == ["new observation, 68 %", "function, 68 %", "median"]
    draw(figure)


def test_coded_numbers_that_are_no_value_count_for_the_next_one(coded):
    model, _ = coded
    x = np.tile([2.0, 0.1, 0.2, 0.6, 0.4, 0.7, 0.0], (5, 1))
    middle = plots.plot_slices(model, x).axes[1].lines[0].get_ydata()
    frame = rows_around("colour", COLOURS).assign(mass=2.0, mix=0.0)
    expected = model.predict(frame, quantiles=[0.5]).quantiles[0, :, 0]
    np.testing.assert_allclose(middle, expected, rtol=1e-6)


def test_of_very_many_values_the_most_frequent_ones_are_shown():
    words = [f"v{number:02}" for number in range(25)]
    repeated = [word for word in words for _ in range(2 + (word >= "v05"))]
    frame = pd.DataFrame({"a": np.arange(70.0), "name": repeated})
    ensemble = coded_ensemble(frame, np.arange(70.0))
    axis = plots.plot_slices(BayesianMLP.from_ensemble(ensemble), frame).axes[1]
    assert axis.get_xlabel() == "name (20 of 25 values)"
    assert [text.get_text() for text in axis.get_xticklabels()] == words[5:]


def test_long_values_leave_the_panels_their_height():
    words = [f"$\\frac${letter}{'long' * 30}\x1b{number}" for number, letter in enumerate("ab")]
    frame = FRAME.assign(colour=[words[number % 2] for number in range(len(FRAME))])
    figure = plots.plot_slices(BayesianMLP.from_ensemble(coded_ensemble(frame)))
    draw(figure)
    axis = figure.axes[1]
    first, second = [text.get_text() for text in axis.get_xticklabels()]
    assert first != second and len(first) < 25 and "\x1b" not in first
    assert axis.get_position().height > 0.15


def test_classes_of_a_value_stand_side_by_side():
    targets = np.arange(len(FRAME)) % 3
    ensemble = coded_ensemble(targets=targets, num_outputs=3, likelihood=Categorical())
    model = BayesianMLP.from_ensemble(replace(ensemble, classes=("a", "b", "c")))
    axis = plots.plot_slices(model).axes[1]
    positions = np.array([line.get_xdata() for line in axis.lines])
    assert (np.diff(positions, axis=0) > 0.1).all() and np.ptp(positions - np.arange(3)) < 1
    assert sum(line.get_ydata() for line in axis.lines) == pytest.approx(1.0)


# ----------------------------------------------------------------------------------------
# Others.
# ----------------------------------------------------------------------------------------


def test_rows_of_counts_are_drawn_as_rates():
    ensemble = synthetic_ensemble((1, 5, 1), likelihood=Poisson(), y_transform=None, row_noise=True)
    model, x = BayesianMLP.from_ensemble(ensemble), np.linspace(1.5, 2.5, 50)[:, None]
    y = np.round(1000.0 * model.predict(x, quantiles=[0.5]).quantiles[0])
    ((piece,),) = find_slices(model, x, y, np.full((50, 1), np.log(1000.0)))
    curve = np.interp(x[:, 0], piece.line.values, piece.curves[0].function[1])
    np.testing.assert_allclose(piece.points[1], curve, rtol=0.05)


def test_a_value_along_a_column_with_gaps_is_not_missing():
    frame = FRAME.assign(mass=FRAME["mass"].where(np.arange(len(FRAME)) % 5 == 0))
    model = BayesianMLP.from_ensemble(coded_ensemble(frame, missing="indicator"))
    found = find_slices(model, frame, None, None)[0]
    (line,) = [piece.line for piece in found if piece.line.input == "mass"]
    np.testing.assert_array_equal(line.x[:, 1], np.zeros(len(line.x)))


@pytest.mark.filterwarnings("ignore:Columns .* are constant")
def test_a_column_that_varies_only_by_gaps_has_no_slice():
    frame = pd.DataFrame({"a": np.where(np.arange(len(FRAME)) % 5 == 0, np.nan, 1.0)})
    assert "constant" in why_no_slices(coded_ensemble(frame, missing="indicator"))


def test_numbers_of_words_have_no_slices():
    ensemble = synthetic_ensemble()
    spec = replace(ensemble.spec)
    vars(spec)["network"] = replace(spec.network, num_words=10)  # a cached property
    assert "numbers of words" in why_no_slices(replace(ensemble, spec=spec))


def test_slices_through_what_the_rows_cannot_be_say_so():
    """Mixings whose squares have the sum one are not all at their medians, which are about zero."""
    generator = np.random.default_rng(0)
    mixings = generator.normal(size=(100, 3))
    mixings /= np.linalg.norm(mixings, axis=1)[:, None]
    rows = np.column_stack([mixings, generator.uniform(100.0, 900.0, size=100)])
    ensemble = synthetic_ensemble((4, 5, 1), x_transform=None, row_noise=True)
    ensemble = replace(ensemble, training_inputs=summarise_inputs(rows), x_reference=rows)
    (legend,) = plots.plot_slices(BayesianMLP.from_ensemble(ensemble)).legends
    assert "outside the training inputs" in labels(legend)
    assert "row nearest to their medians" in legend.get_title().get_text()
    mixed, *_, mass = find_slices(BayesianMLP.from_ensemble(ensemble), None, None, None)[0]
    assert 0.5 < mixed.share_outside < 1 and mass.share_outside == 0
    assert np.isclose(mass.line.x[0, :3], rows[:, :3]).all(axis=1).any()
    free = generator.uniform(-1.0, 1.0, size=(100, 4))
    ensemble = replace(ensemble, training_inputs=summarise_inputs(free), x_reference=free)
    figure = plots.plot_slices(BayesianMLP.from_ensemble(ensemble))
    assert "outside the training inputs" not in labels(figure.legends[0])
    assert figure.legends[0].get_title().get_text() == "other inputs at their medians"


@pytest.fixture(scope="module")
def long_names():
    names = ("m_chi10_GeV", "m_chi20_GeV", "N11", "N12", "N13", "a_long_name_of_a_column_" * 3)
    named = {"feature_names": names, "provenance": {"target_names": [names[-1]]}}
    return noiseless(layer_sizes=(6, 5, 1), prior=[ARD_FIRST, Normal(0.7)], **named)


@pytest.mark.statistics
def test_no_label_is_cut(long_names):
    rows, known = make_rows(30, 6, 1), {"noise_scale": np.full(30, 0.1)}
    for plot in (plots.plot_slices, plots.plot_relevance):
        check_labels_are_whole(plot(long_names))
    for plot in (plots.plot_truth, plots.plot_pulls, plots.plot_coverage):
        check_labels_are_whole(plot(long_names, *rows, **known))


def test_no_label_of_a_page_is_cut(long_names):
    model, rows = long_names, make_rows(30, 6, 1)
    (truth,) = find_truths(model, *rows, np.full((30, 1), 0.1))
    piece = find_slices(model, None, None, None)[0][-1]
    for draw_it, content in (
        (draw_relevance, (model.relevance(),)),
        (draw_truth, (truth,)),
        (draw_truth, (truth, True)),
        (_draw, (piece,)),
    ):
        with styled_figure(1, 1, (WIDTH, 3.0)) as (figure, axes):  # as in a page
            draw_it(axes[0, 0], *content)
            check_labels_are_whole(figure)


def test_relevance_has_the_most_relevant_input_on_top():
    model = model_of(layer_sizes=(3, 4, 1), prior=[ARD_FIRST, Normal(0.7)])
    (axis,) = plots.plot_relevance(model).axes
    median = model.relevance().median
    np.testing.assert_array_equal(axis.lines[0].get_xdata(), np.sort(median)[::-1])
    assert axis.get_yticklabels()[0].get_text() == f"column {median.argmax()}"
    assert axis.yaxis_inverted()
    with pytest.raises(ValueError, match="scale for every input"):
        plots.plot_relevance(model_of())


def test_pulls_say_how_many_are_beyond():
    model = model_of()
    x, y = make_rows(50, 2, 1)
    y[:3] = 1e6
    axis = plots.plot_pulls(model, x, y).axes[0]
    beyond, heights = labels(axis.get_legend())[0], [bar.get_height() for bar in axis.patches]
    assert heights[-1] > 0 and sum(heights) * 0.5 == pytest.approx(1.0)
    assert "in the outermost bins" in beyond and int(beyond.split("(")[1].split()[0]) >= 3
    quiet = model.predict(x).mean
    assert labels(plots.plot_pulls(model, x, quiet).axes[0].get_legend())[0] == "these rows"


def test_convergence_tells_bulk_and_tail_by_lines():
    sizes = plots.plot_convergence(model_of(num_results=100)).axes[1]
    bulk, tail = sizes.patches
    assert not bulk.get_fill() and not tail.get_fill()
    assert bulk.get_linestyle() != tail.get_linestyle()


def test_coverage_is_the_share_of_rows_in_central_intervals():
    model = model_of(layer_sizes=(2, 4, 4), likelihood=HeteroscedasticGaussian(), num_results=80)
    x, y = make_rows(60, 2, 2)
    figure = plots.plot_coverage(model, x, y)
    found = model.predict(x, include_noise=True, quantiles=[0.25, 0.75]).quantiles
    inside = np.mean((found[0] <= y) & (y <= found[1]), axis=0)
    lines = figure.axes[0].lines[1:]
    shares = [line.get_ydata()[np.isclose(line.get_xdata(), 0.5)].item() for line in lines]
    assert shares == pytest.approx(inside, abs=0.04)
    assert labels(figure.axes[0].get_legend())[-2:] == ["y1", "y2"]


def test_targets_need_their_inputs():
    with pytest.raises(ValueError, match="plot_slices needs x and y together"):
        plots.plot_slices(model_of(), y=[1.0])
