"""Class labels without sampling: predictions, scores, files and refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

import tfbnn
from tests.support.builders import make_rows
from tests.support.model_file_edits import refused_after, rewrite
from tfbnn import BayesianMLP, plots
from tfbnn.likelihoods import Bernoulli, Categorical, Gaussian
from tfbnn.posterior.checks import checked_rows
from tfbnn.posterior.metrics import expected_calibration_error
from tfbnn.posterior.stacking import chain_log_densities

SPECIES = ("setosa", "versicolor", "virginica")
CASES = {
    "categorical": {"layer_sizes": (2, 5, 3), "likelihood": Categorical(), "classes": SPECIES},
    "bernoulli": {"likelihood": Bernoulli(), "classes": ("no", "yes")},
    "bernoulli, two targets": {"layer_sizes": (2, 5, 2), "likelihood": Bernoulli()},
    "weighted": {"layer_sizes": (2, 5, 3), "likelihood": Categorical()}
    | {"num_chains": 3, "chain_weights": [0.0, 0.3, 0.7]},
}
each_case = pytest.mark.parametrize("settings", CASES.values(), ids=CASES)


class Case:
    """A classifier of random networks, rows with labels, and probabilities by SciPy."""

    def __init__(self, ensemble, num_rows=40):
        self.ensemble, self.model = ensemble, BayesianMLP.from_ensemble(ensemble)
        spec = ensemble.spec
        self.x = make_rows(num_rows, spec.num_inputs, 1, seed=8)[0]
        shape = (num_rows, spec.num_targets)
        self.numbers = np.random.default_rng(9).integers(spec.num_classes, size=shape)
        self.labels = np.array(ensemble.classes)[self.numbers]
        logits = self.model.predict_draws(self.x, space="transformed")
        if isinstance(spec.likelihood, Categorical):
            self.draws = special.softmax(logits, axis=-1)
            chances = self.draws[:, :, None, :]
        else:
            self.draws = special.expit(logits)
            chances = np.stack([1 - self.draws, self.draws], axis=-1)
        weights = ensemble.draw_weights
        self.chances = np.einsum("s,snkm->nkm", weights, chances)
        self.true = np.take_along_axis(chances, self.numbers[None, ..., None], axis=-1)[..., 0]
        self.mixture = weights @ self.true.prod(axis=-1)


@pytest.fixture
def case(synthetic_ensemble, settings):
    return Case(synthetic_ensemble(**settings))


@pytest.fixture
def categorical(synthetic_ensemble):
    return Case(synthetic_ensemble(**CASES["categorical"]))


@pytest.fixture
def bernoulli(synthetic_ensemble):
    return Case(synthetic_ensemble(**CASES["bernoulli"]))


# ----------------------------------------------------------------------------------------
# Predictions.
# ----------------------------------------------------------------------------------------


@each_case
def test_predictions_are_averaged_probabilities(case):
    found, weights = case.model.predict(case.x, quantiles=[0.1, 0.9]), case.ensemble.draw_weights
    mean = np.einsum("s,snk->nk", weights, case.draws)
    variance = np.einsum("s,snk->nk", weights, (case.draws - mean) ** 2)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(found.stddev, np.sqrt(variance), rtol=1e-8)
    np.testing.assert_allclose(case.model.predict_draws(case.x), case.draws, rtol=1e-10)
    low, high = found.quantiles
    assert np.all((low >= 0) & (low <= high) & (high <= 1))
    if isinstance(case.ensemble.spec.likelihood, Categorical):
        np.testing.assert_allclose(found.mean.sum(axis=1), 1.0, rtol=1e-12)
    # Transformed space holds logits; a shift that softmax does not see is taken off.
    found = case.model.predict(case.x, space="transformed").mean
    if isinstance(case.ensemble.spec.likelihood, Categorical):
        np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-12)
    assert case.model.diagnose().rhat_function.shape == (10, found.shape[1])
    # Predicted classes are labels.
    found = case.model.predict_classes(case.x)
    expected = np.array(case.ensemble.classes)[case.chances.argmax(axis=-1)]
    expected = expected[:, 0] if expected.shape[1] == 1 else expected
    assert found.dtype == expected.dtype and found.tolist() == expected.tolist()


def test_extreme_logits_stay_exact():
    one, many = Bernoulli(), Categorical()
    logits, target = np.array([[[-800.0], [800.0]]]), np.array([[1.0], [1.0]])
    assert one.log_density(target, logits).tolist() == [[-800.0, 0.0]]
    assert one.inverse_link(np.array([-100.0])) == pytest.approx(np.exp(-100.0), rel=1e-12)
    logits = np.array([[[-800.0, 0.0, 900.0]]])
    assert many.log_density(np.array([[0.0]]), logits).tolist() == [[-1700.0]]
    assert np.isfinite(many.inverse_link(logits)).all()


# ----------------------------------------------------------------------------------------
# Scores.
# ----------------------------------------------------------------------------------------


@each_case
def test_scores(case):
    scores = case.model.evaluate(case.x, case.labels)
    one_hot = np.eye(case.ensemble.spec.num_classes)[case.numbers]
    correct = case.chances.argmax(axis=-1) == case.numbers
    np.testing.assert_allclose(scores["accuracy"], correct.mean(axis=0).squeeze())
    brier = ((case.chances - one_hot) ** 2).sum(axis=-1).mean(axis=0)
    np.testing.assert_allclose(scores["brier"], brier.squeeze(), rtol=1e-10)
    log_density = np.log(case.mixture).mean()
    np.testing.assert_allclose(scores["log_predictive_density"], log_density, rtol=1e-10)
    assert scores["num_rows"] == 40
    assert np.shape(scores["accuracy"]) == (() if correct.shape[1] == 1 else (2,))
    json.dumps({name: np.asarray(value).tolist() for name, value in scores.items()})


def test_calibration_error_by_hand():
    """Three of the 15 bins hold rows; a bin is open below and closed above."""
    confidence = np.array([[1 / 15, 0.05, 0.5, 0.51, 1.0]]).T
    correct = np.array([[True, False, True, False, True]]).T
    expected = (abs(1 - 1 / 15 - 0.05) + abs(1 - 1.01) + 0.0) / 5
    np.testing.assert_allclose(expected_calibration_error(confidence, correct), [expected])


@each_case
def test_stacking(case):
    model, rows = case.model, (case.x, case.labels)
    stacking = model.stack_chains(*rows)
    chains = case.true.prod(axis=-1).reshape(case.ensemble.num_chains, -1, 40).mean(axis=1)
    _, checked = checked_rows(case.ensemble, *rows, None, "stack_chains")
    found = chain_log_densities(case.ensemble, checked)
    np.testing.assert_allclose(found, np.log(chains), rtol=1e-10)
    score = model.evaluate(*rows)["log_predictive_density"]
    assert score == pytest.approx(stacking.log_score_stacked, rel=1e-6)


# ----------------------------------------------------------------------------------------
# Files.
# ----------------------------------------------------------------------------------------


@each_case
def test_file_round_trip(case, tmp_path):
    case.model.save(tmp_path / "model.h5")
    loaded = tfbnn.load(tmp_path / "model.h5")
    assert loaded.classes == case.ensemble.classes and loaded.spec == case.ensemble.spec
    assert [type(label) for label in loaded.classes] == list(map(type, case.ensemble.classes))
    np.testing.assert_array_equal(loaded.predict(case.x).mean, case.model.predict(case.x).mean)
    rows = case.x, case.labels
    assert str(loaded.evaluate(*rows)) == str(case.model.evaluate(*rows))


@pytest.mark.parametrize("classes", [None, ["a", "b"], ["a", "b", "b"], ["a", 1, 2], [["a"], 2, 3]])
def test_unsound_classes_are_refused_before_they_are_saved_and_in_files(
    categorical, classes, tmp_path
):
    path = tmp_path / "model.h5"
    unsound = replace(categorical.ensemble, classes=classes and tuple(classes))
    with pytest.raises(tfbnn.ModelFileError, match="not saved.*classes must be 3 different"):
        BayesianMLP.from_ensemble(unsound).save(path)
    assert list(tmp_path.iterdir()) == []
    categorical.model.save(path)
    refused_after(rewrite("classes", value=classes), path, "classes must be 3 different")


# ----------------------------------------------------------------------------------------
# Labels and refusals.
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer_sizes", "likelihood", "y", "classes"),
    [
        ([1, 3], Categorical(), ["b", "a", "c", "a"], ("a", "b", "c")),
        ([1, 3], Categorical(), [2, 0, 0, 2], (0, 1, 2)),
        ([1, 3], Categorical(), [[7.0], [-1.0], [3.0], [3.0]], (-1, 3, 7)),
        ([1, 2], Categorical(), np.array([True, False, True, True]), (False, True)),
        ([1, 3], Categorical(), np.array(["b", "a", "c", "a"], object), ("a", "b", "c")),
        ([1, 1], Bernoulli(), [0, 0, 0, 0], (0, 1)),
        ([1, 1], Bernoulli(), ["yes", "no", "no", "no"], ("no", "yes")),
        ([1, 2], Bernoulli(), [[True, False]] * 4, (False, True)),
        ([1, 2], Bernoulli(), [[0, 1]] * 4, (0, 1)),
    ],
)
def test_labels(layer_sizes, likelihood, y, classes):
    from tfbnn.spec.rows import prepare_rows

    model = BayesianMLP(layer_sizes, likelihood=likelihood)
    rows = prepare_rows(model.spec, np.zeros((4, 1)), y, None)
    assert rows.classes == classes
    assert [type(label) for label in rows.classes] == [type(classes[0])] * len(classes)
    labels = np.array(classes)[rows.y.astype(int)]
    assert labels.ravel().tolist() == np.ravel(np.asarray(y)).tolist()


@pytest.mark.parametrize(
    ("layer_sizes", "likelihood", "y", "error", "words"),
    [
        ([1, 3], Categorical(), ["a", "b", "a"], ValueError, "3 different labels .*received 2"),
        ([1, 2], Categorical(), ["a", "b", "c"], ValueError, "2 different labels .*received 3"),
        ([1, 2], Categorical(), [0.5, 1.0, 0.0], ValueError, "whole numbers, received 0.5 in row"),
        ([1, 2], Categorical(), [0.0, np.nan, 1.0], ValueError, "received nan in row 1"),
        ([1, 2], Categorical(), ["a", None, "b"], TypeError, "one kind.*NoneType, str"),
        ([1, 2], Categorical(), [1j, 0, 1], TypeError, "labels, text or integers"),
        ([1, 2], Categorical(), [[0, 1]] * 3, ValueError, r"shape \[N, 1\] or \[N\].*one-hot"),
        ([1, 2], Categorical(), [0, 1], ValueError, "same number of rows"),
        ([1, 2], Categorical(), [["a"], ["b", "c"], ["a"]], TypeError, "rectangular"),
        ([1, 2], Categorical(), None, TypeError, "y must be an array of labels"),
        ([1, 2], Bernoulli(), [["a", "b"]] * 3, ValueError, "several columns must hold 0 and 1"),
        ([1, 1], Bernoulli(), [0, 1, 2], ValueError, "2 different labels .*received 3"),
    ],
)
def test_bad_labels(layer_sizes, likelihood, y, error, words):
    model = BayesianMLP(layer_sizes, likelihood=likelihood)
    with pytest.raises(error, match=words):
        model.fit_posterior(np.zeros((3, 1)), y)


def test_unknown_labels_are_refused_with_the_known_ones(categorical, bernoulli):
    labels = ["setosa", "rosa", "virginica"]
    words = "y must hold the labels 'setosa', 'versicolor', 'virginica', received 'rosa' in row 1"
    with pytest.raises(ValueError, match=words):
        categorical.model.evaluate(categorical.x[:3], labels)
    with pytest.raises(ValueError, match="validation y must hold the labels 'no', 'yes'"):
        bernoulli.model.stack_chains(bernoulli.x[:3], [0, 1, 1])


def test_bad_settings():
    with pytest.raises(ValueError, match="y_transform must be None for Categorical.*'log10'"):
        BayesianMLP([2, 3], likelihood=Categorical(), y_transform="log10")
    with pytest.raises(ValueError, match="one output per class, at least 2.*received 1"):
        BayesianMLP([2, 4, 1], likelihood=Categorical())
    assert BayesianMLP([2, 1], likelihood=Bernoulli(), y_transform=None).spec.y_transform == ()
    assert BayesianMLP([2, 1], likelihood=Bernoulli()).spec.y_transform == ()
    assert BayesianMLP([2, 1]).spec.is_open


@each_case
def test_what_classes_do_not_have(case):
    model, rows, noise = case.model, (case.x, case.labels), np.ones(40)
    name = type(case.ensemble.spec.likelihood).__name__
    for call in (
        lambda: model.evaluate(*rows, noise_scale=noise),
        lambda: model.predict(case.x, noise_scale=noise),
        lambda: model.fit_posterior(*rows, noise_scale=noise),
        lambda: model.stack_chains(*rows, noise_scale=noise),
    ):
        with pytest.raises(ValueError, match=f"noise_scale does not go with {name}"):
            call()
    with pytest.raises(ValueError, match=f"include_noise=True does not go with {name}"):
        model.predict(case.x, include_noise=True)


def test_classes_of_other_models(synthetic_ensemble):
    model = BayesianMLP.from_ensemble(synthetic_ensemble(likelihood=Gaussian()))
    assert model.classes is None
    with pytest.raises(ValueError, match="predict_classes needs .* received Gaussian"):
        model.predict_classes(np.zeros((1, 2)))
    with pytest.raises(tfbnn.NotFittedError):
        _ = BayesianMLP([2, 1], likelihood=Bernoulli()).classes


def test_figures(categorical):
    pytest.importorskip("matplotlib")
    plots.plot_convergence(categorical.model)
    for plot in (plots.plot_truth, plots.plot_pulls, plots.plot_coverage):
        with pytest.raises(ValueError, match=f"{plot.__name__}.*has the likelihood Categorical"):
            plot(categorical.model, categorical.x, categorical.labels)
