"""Bars in proportion to the local misfit: its formula, features, use, file and refusals."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support import model_file_edits as edits
from tests.support.builders import synthetic_ensemble
from tests.support.linearised import linearised_ensemble
from tests.support.marks import statistics_but
from tfbnn import BayesianMLP
from tfbnn.likelihoods import HeteroscedasticGaussian
from tfbnn.posterior.calibration import calibrating
from tfbnn.posterior.calibration.calibration import Misfit
from tfbnn.posterior.calibration.misfit_features import (
    misfit_features,
    misfit_networks,
    num_features,
    row_blocks,
    single_networks,
)
from tfbnn.posterior.calibration.misfit_fit import fit_misfit, misfit_axes
from tfbnn.posterior.forward import network_outputs
from tfbnn.spec.rows import NetworkRows, Rows
from tfbnn.storage.format import schema


def exact_changes(features, scores):
    """Smallest changes of the weights [n, P] that make each row of a linear model exact."""
    precision = features.T @ features + np.eye(features.shape[1])
    size, changes = len(precision), []
    for row, score in zip(features, scores):
        # Lagrange: the gradient of the norm is a multiple of the row.
        system = np.block([[precision, row[:, None]], [row[None], np.zeros((1, 1))]])
        changes.append(np.linalg.solve(system, np.r_[np.zeros(size), score])[:size])
    return precision, np.array(changes)


def linear_case(num_rows=40, size=5):
    generator = np.random.default_rng(2)
    features = generator.normal(size=(num_rows, size)) * np.geomspace(1.0, 20.0, size)
    return features, generator.standard_t(4, size=num_rows), generator.normal(size=(7, size))


def test_the_misfit_is_that_of_smallest_changes_that_make_rows_exact():
    features, scores, new = linear_case()
    precision, changes = exact_changes(features, scores)
    np.testing.assert_allclose(np.sum(features * changes, axis=1), scores, rtol=1e-9)
    leverage = np.einsum("np,pq,nq->n", features, np.linalg.inv(precision), features)
    moves = new @ changes.T
    above = np.sum(leverage * moves**2, axis=1)
    below = np.sum(leverage * (moves / scores) ** 2, axis=1)

    def blocks():
        for rows in (slice(0, 15), slice(15, 40)):
            yield rows, features[rows].T

    directions, squares, found, _ = misfit_axes(blocks, scores**2, np.ones(len(scores), bool))
    components = np.square(new @ directions)
    np.testing.assert_allclose(components @ squares, above, rtol=1e-8)
    np.testing.assert_allclose(components.sum(axis=1), below, rtol=1e-8)
    np.testing.assert_allclose(found, leverage, rtol=1e-9)


def test_rows_without_a_score_have_no_part():
    features, scores, new = linear_case()
    judged = np.arange(len(scores)) % 3 > 0

    def squares(values):
        blocks = [(slice(0, 40), features.T)]
        directions, means, *_ = misfit_axes(lambda: iter(blocks), values**2, judged)
        return np.square(new @ directions) @ means

    changed = np.where(judged, scores, 1e3)
    np.testing.assert_allclose(squares(scores), squares(changed), rtol=1e-9)


MODELS = {
    "ntk": {"layer_sizes": (2, 4, 3, 1), "parameterization": "ntk"},
    "two targets": {"layer_sizes": (2, 4, 2)},
    "heteroscedastic": {"layer_sizes": (2, 4, 2), "likelihood": HeteroscedasticGaussian()},
}


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_features_are_derivatives_in_theta(settings):
    ensemble = synthetic_ensemble(**settings)
    network = single_networks(misfit_networks(ensemble))[0]
    x = np.random.default_rng(3).normal(size=(5, 2))
    theta = network.draws[0, 0].astype(np.float64)

    def outputs(change):
        moved = network_outputs(network.with_draws((theta + change)[None, None]), x)
        return moved[0].astype(np.float64)

    step = 1e-5
    for target, features in enumerate(misfit_features(network, x)):
        found = [
            (outputs(step * unit) - outputs(-step * unit))[target] / (2 * step)
            for unit in np.eye(len(theta))[: ensemble.spec.layout.num_weights]
        ]
        expected = np.array([line for line in found if np.abs(line).max() > 0])
        assert features.shape == (num_features(ensemble.spec), 5)
        for column in range(5):
            np.testing.assert_allclose(
                np.sort(features[:, column]), np.sort(expected[:, column]), atol=1e-7
            )


def test_of_wide_networks_only_the_last_layers_are_features():
    assert num_features(synthetic_ensemble((2, 40, 30, 1), num_results=1).spec) == 31
    assert num_features(synthetic_ensemble((2, 40, 20, 1), num_results=1).spec) == 21 + 820 + 120


def test_networks_are_chosen_by_the_weight_of_their_chains():
    ensemble = synthetic_ensemble(num_chains=4)
    np.testing.assert_array_equal(misfit_networks(ensemble).draws[:, 0], ensemble.draws[:, -1])
    one = ensemble.with_chain_weights([0.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(
        misfit_networks(one).draws[:, 0], ensemble.draws[1, [3, 7, 11, 14]]
    )
    assert misfit_networks(synthetic_ensemble(num_chains=1, num_results=1)).num_draws == 1


class Case:
    """A model and rows of its fit, whose noise is five times as large where the first input is."""

    def __init__(self, num_rows=600, **settings):
        self.ensemble = synthetic_ensemble(**({"num_chains": 3, "num_results": 8} | settings))
        # Networks that agree: the noise is what bars are about.
        draws = self.ensemble.draws[:1, :1] + 0.01 * self.ensemble.draws
        self.ensemble = replace(self.ensemble, draws=draws.astype(draws.dtype))
        self.x, self.y = self.rows(num_rows, 1)
        matrix = self.y.reshape(num_rows, -1)
        self.model = BayesianMLP.from_ensemble(self.ensemble)
        self.model._keep(Rows(self.x, matrix, None, None), self.ensemble)

    def rows(self, count, seed):
        generator = np.random.default_rng(seed)
        inputs = self.ensemble.training_inputs
        middle = generator.uniform(-1.0, 1.0, size=(count, self.ensemble.spec.num_inputs))
        x = self.ensemble.x_pipeline.inverse(
            inputs.mean + middle * np.sqrt(np.diagonal(inputs.covariance))
        )
        predict = BayesianMLP.from_ensemble(self.ensemble).predict
        mean, stddev = predict(x, include_noise=True, space="transformed").columns
        wide = np.where(middle[:, :1] > 0, 5.0, 1.0)
        target = mean + stddev * wide * generator.normal(size=mean.shape)
        return x, self.ensemble.y_pipeline.inverse(target)


SHAPES = {
    "one": {},
    "two targets": {"layer_sizes": (2, 5, 2)},
    "log": {"y_transform": ["log10", "standardize"]},
}


@pytest.mark.parametrize("settings", statistics_but([SHAPES["log"]], SHAPES.values()), ids=SHAPES)
@pytest.mark.parametrize("method", statistics_but(["loo"], ["loo", "split"]))
def test_bars_grow_where_the_fit_is_bad(method, settings):
    case = Case(**settings)
    rows = case.rows(500, 2) if method == "split" else ()
    new = case.rows(600, 3)
    case.model.calibrate(*rows, method=method)
    plain = case.model.evaluate(*new)
    bars = case.model.predict(new[0], include_noise=True, space="transformed").columns.stddev
    record = case.model.calibrate(*rows, method=method, scale="misfit")
    found = case.model.evaluate(*new)
    scaled = case.model.predict(new[0], include_noise=True, space="transformed").columns.stddev
    assert record.scale == "misfit" and "scaled by the local misfit" in record.summary()
    wide = case.ensemble.x_pipeline.forward(new[0])[:, 0] > case.ensemble.training_inputs.mean[0]
    for column in range(bars.shape[1]):
        before, after = (
            np.median(one[wide, column]) / np.median(one[~wide, column]) for one in (bars, scaled)
        )
        assert before < 1.5 and after > 2.0
    assert found["log_predictive_density"] > plain["log_predictive_density"] + 0.1
    np.testing.assert_allclose(found["coverage"][1], 0.683, atol=0.06)
    np.testing.assert_array_equal(found["rmse"], plain["rmse"])


def test_rows_of_the_fit_have_no_part_in_their_own_scale():
    case = Case(80)
    generator = np.random.default_rng(0)
    rows = NetworkRows(case.ensemble.x_pipeline.forward(case.x), np.zeros((80, 1)), None)
    scores = generator.normal(size=(80, 1))
    judged = np.ones((80, 1), bool)
    _, factors = fit_misfit(case.ensemble, rows, scores, judged)
    scores[7] = 50.0
    misfit, changed = fit_misfit(case.ensemble, rows, scores, judged)
    others = np.arange(80) != 7
    assert np.all(changed[others] > factors[others])
    usual = np.sqrt(misfit.squares.mean(axis=(1, 2)) * 1e-3).max()
    assert abs(changed[7, 0] - factors[7, 0]) < usual


def test_where_no_row_is_near_the_misfit_is_the_usual_one():
    misfit = Misfit(np.zeros((1, 1, 3, 3)), np.full((1, 1, 3), 4.0))
    np.testing.assert_allclose(misfit.mean_square(np.ones((3, 2)), 0, 0), 4.0)
    nothing = Misfit(np.ones((1, 1, 3, 3)), np.zeros((1, 1, 3)))
    assert np.all(nothing.mean_square(np.ones((3, 2)), 0, 0) > 0)


def test_predictions_do_not_depend_on_how_rows_are_cut():
    case = Case()
    case.model.calibrate(method="loo", scale="misfit")
    x = np.resize(case.x, (2500, 2))
    whole = case.model.predict(x, include_noise=True, quantiles=[0.1, 0.9])
    parts = [case.model.predict(part, include_noise=True) for part in (x[:700], x[700:])]
    np.testing.assert_allclose(
        whole.stddev, np.concatenate([part.stddev for part in parts]), rtol=1e-9
    )
    assert [rows.stop for rows in row_blocks(2500)] == [1024, 2048, 2500]


def test_outside_the_training_inputs_the_wider_bars_hold():
    case = Case()
    x = np.array([[1e3, 1e3], [-1e3, 1e3]])
    plain = case.model.predict(x, include_noise=True)
    case.model.calibrate(method="loo", scale="misfit")
    assert np.all(case.model.predict(x, include_noise=True).stddev >= plain.stddev * (1 - 1e-12))


@pytest.mark.parametrize("by", [None, "stddev"])
def test_a_file_holds_the_misfit(by, tmp_path):
    case = Case(320 if by else 60, layer_sizes=(2, 5, 2), dtype="float32")
    record = case.model.calibrate(method="loo", scale="misfit", by=by)
    case.model.save(tmp_path / "model.h5")
    loaded = tfbnn.load(tmp_path / "model.h5")
    assert loaded.calibration.summary() == record.summary()
    expected, found = (
        one.predict(case.x[:50], include_noise=True, quantiles=[0.2])
        for one in (case.model, loaded)
    )
    np.testing.assert_array_equal(found.stddev, expected.stddev)
    np.testing.assert_array_equal(found.quantiles, expected.quantiles)


def each(edit, *more):
    """The edit of both arrays of the misfit."""
    both = [edit(name, *more) for name in schema.MISFIT.values()]
    return lambda file: [one(file) for one in both]


DIRECTIONS, SQUARES = schema.MISFIT["directions"], schema.MISFIT["squares"]
EDITS = {
    "nan": (edits.replace(DIRECTIONS, edits.set_one(np.nan)), "must be finite"),
    "negative": (edits.replace(SQUARES, edits.set_one(-1.0)), "must be >= 0"),
    "half": (edits.remove(SQUARES), "go together"),
    "gone": (each(edits.remove), "calibration.scale must be"),
    "fewer": (each(edits.replace, lambda values: values[:1]), "must be of 4 networks, found 1"),
    "without scores": (edits.remove(schema.SCORES), "go together"),
}


@pytest.fixture(scope="module")
def sound_file(tmp_path_factory):
    case, path = Case(60), tmp_path_factory.mktemp("misfit") / "model.h5"
    case.model.calibrate(method="loo", scale="misfit")
    case.model.save(path)
    return path


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_crafted_files_are_refused(edit, sound_file, tmp_path):
    change, message = edit
    edits.refused_after(change, shutil.copy(sound_file, tmp_path), message)


def test_what_has_no_misfit_is_refused(monkeypatch):
    case = Case(60)
    other = BayesianMLP.from_ensemble(case.ensemble)
    with pytest.raises(ValueError, match="scale='misfit' needs the training rows"):
        other.calibrate(*case.rows(50, 4), scale="misfit")
    with pytest.raises(ValueError, match="scale"):
        case.model.calibrate(method="loo", scale="pops")
    few = Case(15)
    with pytest.raises(ValueError, match="at least 20 rows of the fit .* found 15 of 15"):
        few.model.calibrate(*few.rows(50, 4), scale="misfit")
    monkeypatch.setattr(calibrating, "MOST_FEATURES", 3)
    with pytest.raises(ValueError, match="takes at most 3 weights per output in the last layer"):
        case.model.calibrate(method="loo", scale="misfit")


def test_of_draws_around_a_mode_it_is_the_network_there():
    ensemble = linearised_ensemble()
    networks = misfit_networks(ensemble)
    np.testing.assert_array_equal(networks.draws, ensemble.mode[None, None])
    x, y = np.random.default_rng(0).normal(size=(60, 2)), np.ones((60, 1))
    misfit, factors = fit_misfit(ensemble, NetworkRows(x, y, None), y, y > 0)
    np.testing.assert_allclose(factors, 1.0, rtol=1e-6)
    assert misfit.directions.shape == (1, 1, *[num_features(ensemble.spec)] * 2)


def test_exports_leave_out_the_bars_and_say_so(tmp_path):
    pytest.importorskip("onnx")
    case = Case(60)
    case.model.calibrate(method="loo", scale="misfit")
    with pytest.warns(UserWarning, match="scaled by the misfit"):
        case.model.to_onnx(tmp_path / "model.onnx")


def test_the_sums_are_about_one_at_the_rows_of_the_fit():
    case = Case(200)
    x = case.ensemble.x_pipeline.forward(case.x)
    scores = np.ones((200, 1))
    misfit, _ = fit_misfit(case.ensemble, NetworkRows(x, scores, None), scores, scores > 0)
    for number, network in enumerate(single_networks(misfit_networks(case.ensemble))):
        along = misfit.directions[number, 0].T @ misfit_features(network, x)[0]
        assert np.square(along).sum(axis=0).mean() == pytest.approx(1.0, rel=1e-6)
