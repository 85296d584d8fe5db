"""Layers and noise are chosen by held-out rows, the same for the same rows."""

from dataclasses import replace
from functools import partial
from zlib import crc32

import numpy as np
import pytest

import tfbnn
from tests.support.builders import config_of_run
from tfbnn.fit.choices import compare_networks as module
from tfbnn.fit.choices.choose import as_begun
from tfbnn.fit.choices.compare_networks import choose_network
from tfbnn.fit.choices.infinite import infinite_trial
from tfbnn.fit.choices.trials import Trial
from tfbnn.likelihoods import Categorical, Gaussian, HeteroscedasticGaussian, StudentT
from tfbnn.posterior.provenance import Provenance
from tfbnn.run.options import FitOptions
from tfbnn.run.until import Until
from tfbnn.spec.choices import Choice
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.limit_kernels import covariance
from tfbnn.spec.rows import learn_transforms, rows_to_fit

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 2))
Y = X[:, 0]


def asked(model, x=X, y=Y, groups=None):
    """(Spec, TransformedRows) as `choose` has them."""
    spec = model.asked.for_rows(x, y, "refuse")
    rows, _ = rows_to_fit(spec, x, y, None, None, groups=groups)
    spec = spec.closed(("standardize",), "as the tests want it") if spec.is_open else spec
    return spec, learn_transforms(spec, rows, None)


@pytest.fixture
def trials(monkeypatch):
    """Stands for `fit_trial`: scores by the name of a network; a list of what was tried."""
    tried, tried_infinite = [], []

    def fit_trial(spec, rows, folds, num_steps, jit_compile, before=None):
        """From several threads, in any order."""
        name = "-".join(map(str, spec.layer_sizes[1:-1])), type(spec.likelihood)
        tried.append((*name, num_steps, folds, before))
        return scored(spec, name, folds)

    def infinite_trial(spec, rows, folds):
        tried_infinite.append(spec)
        return scored(spec, "inf", folds)

    def scored(spec, name, folds):
        level, error = fit_trial.scores.get(name, (0.5, 1.0))
        seed = crc32(repr(name).encode())
        noise = np.random.default_rng(seed).normal(size=len(folds)) * fit_trial.blur
        density = level + noise - noise.mean()
        return Trial(spec, np.zeros((5, 1)), density, 0 * density + error)

    fit_trial.scores, fit_trial.blur = {}, 1e-6
    fit_trial.tried, fit_trial.tried_infinite = tried, tried_infinite
    monkeypatch.setattr(module, "fit_trial", fit_trial)
    monkeypatch.setattr(module, "infinite_trial", infinite_trial)
    return fit_trial


def chosen(model=None, options=FitOptions(verbose=0), **rows):
    spec = choose_network(*asked(model or tfbnn.BayesianMLP(), **rows), options)
    assert not spec.others
    return spec, spec.choices[0]


def test_the_best_layers_are_taken_and_then_the_best_noise(trials):
    trials.scores = {
        ("20-20", Gaussian): (1.0, 1.0),
        ("20-20", StudentT): (1.5, 1.0),
        ("20-20", HeteroscedasticGaussian): (2.0, 1.0),
        ("50", HeteroscedasticGaussian): (9.0, 1.0),
    }
    spec, choice = chosen()
    assert spec.layer_sizes == (2, 20, 20, 2)
    assert spec.likelihood == HeteroscedasticGaussian()
    assert choice.what == "network" and choice.chosen == "2-20-20-2, tanh, HeteroscedasticGaussian"
    assert choice.why == (
        "held-out log density per row 2; hidden layers 50 0.5, 20-20 1, 50-50 0.5; the best of these after "
        "more steps: Gaussian 1, HeteroscedasticGaussian 2, StudentT 1.5; infinite width 0.5, taken if better by 0.5"
    )
    # All layers with one noise, which goes on as the others do.
    steps = [(*name, count) for *name, count, _, _ in trials.tried]
    assert set(steps[:3]) == {(name, Gaussian, 4000) for name in ("50", "20-20", "50-50")}
    kinds = (Gaussian, HeteroscedasticGaussian, StudentT)
    assert set(steps[3:]) == {("20-20", kind, 2000) for kind in kinds} and len(steps) == 6


def test_other_noise_needs_a_gain_and_a_mean_that_is_no_worse(trials):
    trials.scores = {("50", HeteroscedasticGaussian): (2.0, 1.5), ("50", StudentT): (0.59, 1.0)}
    likelihood = chosen()[0].likelihood
    assert likelihood.noise_scale == "learned" and isinstance(likelihood, Gaussian)


def test_no_trial_begins_after_a_third_of_a_time_limit(trials):
    late = FitOptions(verbose=0, until=Until(max_seconds=60.0), began=-1e9)
    spec, choice = chosen(options=late)
    assert [name for name, *_ in trials.tried] == ["50"] and not trials.tried_infinite
    assert spec.layer_sizes == (2, 50, 1)
    assert choice.why.endswith(
        "50 0.5; others left out, as a third of the time limit is for comparisons"
    )


@pytest.mark.parametrize("score, is_taken", [(1.6, True), (1.4, False)])
def test_infinite_width_is_taken_where_it_is_clearly_better(trials, score, is_taken):
    trials.scores = {("20-20", StudentT): (1.0, 1.0), "inf": (score, 9.0)}
    spec, choice = chosen()
    assert (spec.architecture_text == "2-inf-1, tanh") == is_taken
    assert f"infinite width {score}" in choice.why


@pytest.mark.parametrize(
    "settings, options, is_tried",
    [
        ({}, {}, True),
        ({"likelihood": Gaussian()}, {"max_seconds": 60}, True),
        ({"likelihood": StudentT()}, {}, False),
        ({"activation": "swish"}, {}, False),
        ({"parameterization": "standard"}, {}, False),
        ({}, {"kernel": "nuts"}, False),
        ({}, {"max_seconds": 59}, False),
        ({}, {"likelihood_power": 0.5}, False),
        ({}, {"effort": 0.5}, False),
        ({}, {"pretraining": tfbnn.Pretraining()}, False),
    ],
)
def test_infinite_width_is_tried_where_nothing_asks_for_weights(
    trials, settings, options, is_tried
):
    chosen(tfbnn.BayesianMLP(**settings), FitOptions(verbose=0, **options))
    assert len(trials.tried_infinite) == is_tried and trials.tried


@pytest.mark.parametrize("num_rows, is_tried", [(151, True), (152, False)])
def test_infinite_width_is_tried_with_no_more_rows_than_weights(trials, num_rows, is_tried):
    x = np.linspace(-1.0, 1.0, num_rows)[:, None]
    chosen(x=x, y=x[:, 0])  # the first network is 1-50-1, of 151 weights
    assert len(trials.tried_infinite) == is_tried


@pytest.mark.statistics
@pytest.mark.tensorflow
def test_the_trial_of_infinite_width_scores_rows_that_it_has_not_seen():
    spec, rows = asked(tfbnn.BayesianMLP(x_transform=None, y_transform=None), y=np.sin(X[:, 0]))
    (infinite,) = (one for one in spec.others if isinstance(one, InfiniteSpec))
    folds = np.arange(60) % 5
    trial = infinite_trial(infinite, rows.train, folds)
    assert trial.squares.mean() < 1e-4 and trial.theta.shape == (5, infinite.num_parameters)
    # Of the first fold, from its own scales, in NumPy alone.
    x, y, held = rows.train.x, rows.train.y, folds == 0
    layers = infinite.layer_variances(trial.theta[0])
    of = partial(covariance, infinite.activations, layers)
    noise = np.exp(2.0 * trial.theta[0, infinite.layout.log_noise_scale]) + 1e-8
    noisy = of(x[~held], x[~held]).c + noise * np.eye(48)
    across = of(x[~held], x[held])
    mean = across.c.T @ np.linalg.solve(noisy, y[~held])
    assert trial.squares[held] == pytest.approx(((mean - y[held]) ** 2)[:, 0], abs=1e-9)


def test_among_level_layers_the_fewest_units_are_taken(trials):
    trials.blur = 1.0
    trials.scores = {("50-50", Gaussian): (0.55, 1.0), ("20-20", Gaussian): (0.5, 1.0)}
    assert chosen()[0].layer_sizes[1:-1] == (20, 20)
    trials.scores = {("50-50", Gaussian): (5.0, 1.0), ("20-20", Gaussian): (0.0, 1.0)}
    assert chosen()[0].layer_sizes[1:-1] == (50, 50)


@pytest.mark.parametrize(
    "options, count",
    [({}, 4000), ({"effort": 0.5}, 2000), ({"effort": 0.01}, 400), ({"max_seconds": 30}, 2000)],
)
def test_trials_shrink_with_the_time_there_is(trials, options, count):
    chosen(options=FitOptions(verbose=0, **options))
    assert trials.tried[0][2] == count


@pytest.mark.parametrize(
    "options, rows, why",
    [
        ({"max_seconds": 10}, {}, "max_seconds=10 leaves no time"),
        ({}, {"x": X[:15], "y": Y[:15]}, "15 rows in 15 groups are too few"),
        ({}, {"groups": np.arange(60) // 20}, "60 rows in 3 groups are too few"),
        ({}, {"x": X[np.arange(60) // 20]}, "60 rows in 3 groups are too few"),
    ],
)
def test_where_nothing_can_be_compared_the_first_network_is_taken(trials, options, rows, why):
    spec, choice = chosen(options=FitOptions(verbose=0, **options), **rows)
    assert spec.layer_sizes == (2, 50, 1) and why in choice.why
    assert not trials.tried


def test_only_what_the_kernel_and_the_budget_can_do_is_tried(trials, monkeypatch):
    chosen(options=FitOptions(verbose=0, kernel="repriorised"))
    assert {kind for _, kind, *_ in trials.tried} == {Gaussian}
    with pytest.raises(ValueError, match="Gaussian"):
        options = FitOptions(kernel="repriorised")
        chosen(tfbnn.BayesianMLP(likelihood=Categorical()), options, y=np.arange(60) % 3)
    trials.tried.clear()
    monkeypatch.setattr(module, "affords_polish", lambda spec, *_: spec.num_parameters < 1000)
    chosen()
    assert {name for name, *_ in trials.tried} == {"50", "20-20"}


def test_a_mean_that_would_not_exist_is_not_tried(trials):
    model = tfbnn.BayesianMLP(y_transform=["log10", "standardize"])
    chosen(model, y=np.exp(Y))
    assert {kind for _, kind, *_ in trials.tried} == {Gaussian, HeteroscedasticGaussian}


def test_large_groups_are_compared_by_some_of_their_rows(trials, monkeypatch):
    monkeypatch.setattr(module, "_MOST_ROWS", 40)
    chosen(groups=np.arange(60) // 10)
    assert trials.tried and all(
        len(folds) == 40 and len(set(folds)) == 5 for *_, folds, _ in trials.tried
    )


@pytest.mark.parametrize("by_groups", [False, True])
def test_rows_that_belong_together_are_in_one_fold(trials, by_groups):
    labels = np.arange(60) // 3
    rows = {"groups": labels} if by_groups else {"x": X[labels]}
    chosen(**rows)
    folds = trials.tried[0][3]
    assert sorted(set(folds)) == [0, 1, 2, 3, 4]
    assert all(len(set(folds[labels == label])) == 1 for label in range(20))


def test_a_run_that_goes_on_has_the_network_that_it_was_begun_with():
    spec = tfbnn.BayesianMLP().asked.for_rows(X, Y, "refuse")
    begun = tfbnn.BayesianMLP([2, 20, 20, 2], likelihood=HeteroscedasticGaussian()).spec
    choices = (Choice("network", "2-20-20-2", "it was best"),)
    config = replace(config_of_run(begun, X, Y[:, None]), provenance=Provenance(choices=choices))
    found, _ = as_begun(spec, FitOptions(), config)
    assert (found.layer_sizes, found.likelihood) == (begun.layer_sizes, begun.likelihood)
    assert not found.others and found.is_open
    other = replace(begun, layer_sizes=(2, 7, 2), activations=("tanh",), priors=begun.priors[:2])
    found, _ = as_begun(spec, FitOptions(), replace(config, spec=other))
    assert found.layer_sizes == (2, 7, 2)


@pytest.mark.statistics
def test_noise_by_the_inputs_is_found_where_it_is():
    """Seeds decide nothing: rows choose the same whatever that of the fit is."""
    generator = np.random.default_rng(1)
    x = generator.uniform(-1.0, 1.0, size=(400, 1))
    noise = np.where(x > 0.0, 0.5, 0.02) * generator.normal(size=x.shape)
    found = [
        choose_network(*asked(tfbnn.BayesianMLP(), x, np.sin(2.0 * x) + noise), FitOptions(**given))
        for given in ({"verbose": 0}, {"verbose": 0, "seed": 5})
    ]
    assert found[0] == found[1] and found[0].choices == found[1].choices
    assert isinstance(found[0].likelihood, HeteroscedasticGaussian)
