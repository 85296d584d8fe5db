"""Settings of "auto" are settled before a fit begins; those that are given keep their meaning."""

import time
from dataclasses import replace

import numpy as np
import pytest

from tests.support.builders import config_of_run, plain_spec, synthetic_ensemble
from tfbnn.data.bad_rows import BadRowError
from tfbnn.engine.kernels.hmc import HMC
from tfbnn.engine.kernels.registry import kernel_to_json
from tfbnn.fit.choices import by_clock, pilot, rules
from tfbnn.fit.choices import choose as module
from tfbnn.fit.choices.choose import as_begun, choose, settle_calibration, sizes_of
from tfbnn.fit.choices.rules import FitSizes
from tfbnn.fit.job import _about, estimated_fit_seconds
from tfbnn.fit.model import BayesianMLP
from tfbnn.likelihoods import Bernoulli, Gaussian, StudentT
from tfbnn.posterior.provenance import Provenance
from tfbnn.priors import HalfCauchy, HalfNormal, HierarchicalNormal, Laplace, Normal, Uniform
from tfbnn.run.options import FitOptions, Sampling
from tfbnn.run.until import Until
from tfbnn.spec.choices import Choice
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.priors import EarlierRows
from tfbnn.spec.rows import NetworkRows, Rows
from tfbnn.spec.settings_json import Pretraining

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 2))
WIDE = np.exp(3.0 * X[:, :1])
ALL = {"y_transform", "kernel", "num_burnin_steps", "pretraining", "calibrate"}


def rows(y=WIDE):
    return Rows(X[: len(y)], y, None, None)


def chosen(spec, options=FitOptions(), y=WIDE, validation=None):
    return choose(spec, options, rows(y), None if validation is None else rows(validation))


def names(choices):
    return {choice.what for choice in choices}


@pytest.mark.parametrize("given, row_noise", [(0.001, None), ("learned", None), (0.5, 0.001)])
def test_known_noise_counts_where_it_is_less_than_what_a_pilot_finds(given, row_noise):
    x = np.linspace(-1.0, 1.0, 60)[:, None]
    y = 3.0 * np.sin(20.0 * x)
    spec = BayesianMLP([1, 3, 1], likelihood=Gaussian(given)).spec
    noise = None if row_noise is None else np.full_like(y, row_noise)
    found = module.pilot_of(spec, NetworkRows(x, y, noise))
    (alone,) = module.pilot_noise(NetworkRows(x, y, noise))
    assert found == pytest.approx(alone if given == "learned" else 0.001 / y.std())


def test_all_that_is_open_is_settled_and_told():
    spec = BayesianMLP([2, 50, 1]).spec
    assert spec.is_open and names(spec.choices) == {"prior", "parameterization", "scale_prior"}
    found = chosen(spec)
    assert found.spec.y_transform == ("log10", "standardize")
    assert found.transformed.y_pipeline.names == ("log10", "standardize")
    noise = module.pilot_of(spec, found.transformed.train)
    assert found.options.kernel == rules.kernel(sizes_of(spec, len(X), FitOptions()), noise)[0]
    assert found.options.num_burnin_steps == found.options.sampling(1).num_burnin_steps == 1000
    assert isinstance(found.options.pretraining, Pretraining)
    assert names(found.choices) == ALL | names(spec.choices)
    assert all(choice.chosen and choice.why for choice in found.choices)
    assert str(Choice("kernel", "HMC()", "N P = 3")) == "kernel HMC(): N P = 3"
    # And is the same the next time.
    again = chosen(spec)
    assert (again.options, again.choices) == (found.options, found.choices)


def test_rules_know_of_the_rows_that_are_kept_of_earlier_fits():
    spec = plain_spec([2, 4, 1])
    networks, weights = np.zeros((1, spec.num_parameters)), np.full(60, 2.0)
    kept = EarlierRows.of(x=X, y=WIDE, noise=None, weights=weights, num_rows=120, networks=networks)
    sizes = [sizes_of(one, 30, FitOptions()).num_rows for one in (spec, spec.after(kept))]
    assert sizes == [30, 90]
    config = config_of_run(spec.after(kept), X, WIDE)
    assert (spec.num_earlier, config.num_rows) == (0, 60 + len(X))


def test_what_is_given_keeps_its_meaning_and_no_pilot_flies(monkeypatch):
    for one in (module, pilot):
        monkeypatch.setattr(one, "pilot_noise", None)
    spec = plain_spec([2, 4, 1], likelihood=Gaussian("learned", HalfCauchy(2.0)))
    kernel, pretraining = HMC(num_leapfrog_steps=3), Pretraining(epochs=5)
    given = {"num_burnin_steps": 7, "pretraining": pretraining, "calibrate": False}
    options = FitOptions(kernel=kernel, **given)
    found = chosen(spec, options)
    assert found.choices == () and found.options == options and found.spec == spec


@pytest.mark.parametrize(
    "prior", [Normal(0.5), Laplace(2.0), Uniform(-1.0, 1.0), HierarchicalNormal()]
)
def test_a_prior_that_is_given_is_one_of_the_weights_themselves(prior):
    model = BayesianMLP([2, 4, 1], prior=prior)
    assert model.spec.parameterization == "standard"
    assert not BayesianMLP([2, 4, 1], parameterization="standard").spec.is_ntk
    assert {layer.kernel for layer in model.spec.priors} == {prior}
    assert "prior" not in names(model.spec.choices)


@pytest.mark.parametrize("likelihood", [Gaussian(), StudentT(), Gaussian(0.1), StudentT(4.0, 0.1)])
def test_the_prior_of_the_noise_is_definite_in_a_model(likelihood):
    spec = BayesianMLP([2, 4, 1], likelihood=likelihood).spec
    assert likelihood.scale_prior == "auto" and spec.noise_prior == HalfNormal(1.0)
    assert ("scale_prior" in names(spec.choices)) == (likelihood.noise_scale == "learned")


@pytest.mark.parametrize(
    "likelihood, expected", [(Bernoulli(), ()), (Gaussian(0.1), ("standardize",))]
)
def test_the_transform_is_no_choice_of_rows_where_it_gives_units_or_labels(likelihood, expected):
    spec = BayesianMLP([2, 4, 1], likelihood=likelihood).spec
    assert spec.y_transform == expected and "y_transform" in names(spec.choices)


def test_validation_rows_must_have_a_logarithm_too():
    spec = BayesianMLP([2, 4, 1]).spec
    assert chosen(spec, validation=0.0 * WIDE).spec.y_transform == ("standardize",)
    assert chosen(spec, validation=WIDE).spec.y_transform == ("log10", "standardize")


def test_a_file_says_what_was_chosen_and_never_auto():
    spec = BayesianMLP([2, 4, 1]).spec
    with pytest.raises(ValueError, match="auto"):
        ModelSpec.from_json(spec.to_json())
    definite = chosen(spec).spec
    assert ModelSpec.from_json(definite.to_json()) == definite
    for name in ("parameterization", "y_transform"):
        with pytest.raises(ValueError, match="'auto'"):
            ModelSpec.from_json(definite.to_json() | {name: "auto"})


def test_provenance_keeps_the_choices_and_refuses_what_are_none():
    choices = chosen(BayesianMLP([2, 4, 1]).spec).choices
    said = Provenance().stating(choices=choices).to_json()
    assert said["choices"]["kernel"]["chosen"].startswith("NUTS")
    assert Provenance.from_json(said).choices == choices
    for bad in ([], "kernel", {"kernel": "hmc"}, {"kernel": {"chosen": "HMC()"}}):
        with pytest.raises(TypeError, match="choices"):
            Provenance.from_json({"choices": bad})


def test_a_summary_names_what_was_chosen():
    told = []
    BayesianMLP([2, 4, 1]).summary(told.append)
    BayesianMLP([2, 4, 1], prior=Normal(), likelihood=Gaussian(0.1)).summary(told.append)
    assert "y auto, which the targets decide" in told[0]
    assert "Chosen: prior, parameterization, scale_prior" in told[0]
    assert "Chosen: parameterization, y_transform" in told[1]


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0.2, "1 second"),
        (23.0, "20 seconds"),
        (180.0, "3 minutes"),
        (9000.0, "2.5 hours"),
        (5.4e5, "150 hours"),
    ],
)
def test_a_time_is_told_in_words(seconds, words):
    assert _about(seconds) == words


@pytest.mark.parametrize(
    "likelihood, num_rows, wanted",
    [(Gaussian(), 150, True), (Gaussian(), 149, False), (Gaussian(0.1), 1000, False)],
)
def test_a_fit_ends_with_a_calibration_where_the_noise_is_learned(likelihood, num_rows, wanted):
    spec = BayesianMLP([2, 4, 1], likelihood=likelihood).spec
    options, (choice,) = settle_calibration(FitOptions(), spec, num_rows)
    assert options.calibrate is wanted and choice.what == "calibrate"
    # What is given keeps its meaning.
    given = FitOptions(calibrate=not wanted)
    assert settle_calibration(given, spec, num_rows) == (given, ())


def test_class_labels_have_no_error_bars_to_calibrate():
    spec = BayesianMLP([2, 4, 1], likelihood=Bernoulli()).spec
    options, choices = settle_calibration(FitOptions(), spec, 1000)
    assert options.calibrate is False and choices == ()
    with pytest.raises(ValueError, match="received Bernoulli"):
        settle_calibration(FitOptions(calibrate=True), spec, 1000)


@pytest.mark.parametrize("name", ["num_burnin_steps", "kernel", "pretraining", "calibrate"])
def test_only_auto_is_auto(name):
    with pytest.raises((TypeError, ValueError), match=name):
        chosen(BayesianMLP([2, 4, 1]).spec, FitOptions(**{name: "automatic"}))
    with pytest.raises(TypeError, match="num_burnin_steps"):
        Sampling(num_burnin_steps="auto")
    with pytest.raises(TypeError, match="settle the options"):
        _ = FitOptions().settled_pretraining


def test_a_run_that_goes_on_keeps_what_was_chosen_for_it_and_no_more():
    """A clock or a pilot may choose otherwise; what the user gave is compared, not taken."""
    asked = BayesianMLP([2, 4, 1], x_transform=None).spec, FitOptions()
    begun = config_of_run(asked[0].closed(("log10",), ""), X, WIDE, num_burnin_steps=77)
    said = [Choice(name, "", "") for name in ALL]
    begun = replace(begun, kernel=kernel_to_json(HMC(num_leapfrog_steps=3)))
    everything = replace(begun, provenance=Provenance().stating(choices=tuple(said)))
    spec, options = as_begun(*asked, everything)
    assert spec == begun.spec
    assert (options.kernel, options.num_burnin_steps) == (HMC(num_leapfrog_steps=3), 77)
    assert options.pretraining is None
    # What is given here stays what it is.
    options = FitOptions(kernel="mala", num_burnin_steps=5, pretraining=None, calibrate=True)
    given = plain_spec([2, 4, 1], likelihood=Gaussian(0.1)), options
    assert as_begun(*given, everything) == given
    # What was given there is chosen here, and compared.
    assert as_begun(*asked, begun) == asked


def test_a_model_with_open_layers_starts_from_draws_of_its_own():
    """Those of another network are no parameters of the one that would be chosen."""
    spec = BayesianMLP().asked.for_rows(X, WIDE, "refuse")
    there = synthetic_ensemble((2, 20, 20, 1), parameterization="ntk")
    options = FitOptions(initial_state=there, pretraining=None, kernel=HMC(), num_burnin_steps=5)
    found = choose(spec, options, rows(), None).spec
    assert found.layer_sizes == (2, 20, 20, 1) and not found.others
    other = replace(options, initial_state=synthetic_ensemble((2, 7, 1)))
    with pytest.raises(
        ValueError, match="one of the networks that this model may have, received 2-7-1"
    ):
        choose(spec, other, rows(), None)


def test_all_candidates_have_the_power_of_the_likelihood(monkeypatch):
    monkeypatch.setattr(
        module, "choose_network", lambda spec, *_: replace(spec.others[0], others=())
    )
    spec = BayesianMLP().asked.for_rows(X, WIDE, "refuse")
    options = FitOptions(likelihood_power=0.5, pretraining=None, kernel=HMC(), num_burnin_steps=5)
    assert choose(spec, options, rows(), None).spec.likelihood_power == 0.5


FAILED = np.where(np.arange(60)[:, None] == 7, -1.0, WIDE)


def test_a_failed_row_does_not_switch_the_scale_of_all():
    spec = BayesianMLP([2, 50, 1]).spec
    with pytest.raises(BadRowError, match=r"which 1 of 60 rows have, the first \(-1\) in row 7"):
        chosen(spec, y=FAILED)
    with pytest.raises(BadRowError, match="validation y .* 1 of 120 rows .* row 7.*'standardize'"):
        chosen(spec, validation=FAILED)
    given = BayesianMLP([2, 50, 1], y_transform="standardize").spec
    assert chosen(given, y=FAILED).spec.y_transform == ("standardize",)


def test_a_default_fit_is_planned_for_a_budget_and_sees_no_clock(monkeypatch):
    """The gradients of this network are dear; a run that is to converge, or has so many draws, has no plan."""
    monkeypatch.setattr("tfbnn.run.deadline.time.perf_counter", lambda: pytest.fail("a clock"))
    spec = BayesianMLP([2, 250, 250, 1]).spec
    found = module.plan(chosen(spec), has_clock=True)
    told = {choice.what: choice.why for choice in found.choices}
    assert "as a budget of about 60 s leaves 18 s for warm-up" in told["kernel"]
    assert "a budget of about 60 s leaves 18 s for warm-up" in told["num_burnin_steps"]
    for options in ({"until": "converged"}, {"until": None}, {"num_results": 50}):
        plain = chosen(spec, FitOptions(**options))
        assert module.plan(plain, has_clock=True) is plain


def test_a_limit_of_a_cluster_is_planned_by_an_estimate():
    began = time.perf_counter()
    spec, options = BayesianMLP([2, 50, 1]).spec, FitOptions(max_seconds=600.0, began=began)
    found = module.plan(chosen(spec, options), has_clock=False)
    assert any("max_seconds=600 leaves" in choice.why for choice in found.choices)


@pytest.mark.parametrize(
    "layers, num_rows, seconds, told",
    [
        ([6, 50, 1], 277, 20.0, ""),
        ([6, 50, 1], 277, 4.0, "one start a chain, 31 iterations of Levenberg-Marquardt"),
        ([5, 20, 20, 1], 11_746, 40.0, "one start a chain"),
        ([5, 20, 20, 1], 11_746, 30.0, "one start a chain, 28 iterations of Levenberg-Marquardt"),
        ([5, 50, 50, 1], 1202, 20.0, "one start a chain, ADAM in place"),
        ([5, 50, 50, 1], 11_746, 80.0, "ADAM in place of Levenberg-Marquardt"),
    ],
)
def test_what_a_search_in_time_differs_by(layers, num_rows, seconds, told):
    spec = plain_spec(layers)
    sizes = FitSizes(num_rows, spec.num_parameters)
    settings = Pretraining(epochs=100, num_starts=8, early_stopping=20, validation_split=0.15)
    gradient = by_clock.estimated_seconds_of_all(spec, sizes)
    found, text = by_clock._in_time(settings, spec, sizes, gradient, 2, seconds)
    assert text.startswith(told) and bool(text) == bool(told)
    assert (found.learning_rate_schedule == "cosine") == ("ADAM" in told)


@pytest.mark.parametrize(
    "layers, num_rows, until, affords",
    [
        ([5, 20, 20, 1], 1202, "auto", True),
        ([5, 50, 50, 1], 277, "auto", True),
        ([5, 50, 50, 1], 1202, "auto", False),
        ([5, 50, 50, 1], 1202, "converged", True),
        ([5, 50, 50, 1], 11_746, "converged", False),
    ],
)
def test_a_polish_is_affordable_within_the_budget_of_a_fit(layers, num_rows, until, affords):
    options = FitOptions(until=until)
    assert by_clock.affords_polish(plain_spec(layers), num_rows, options) == affords


@pytest.mark.parametrize("num_rows, seconds", [(1500, 60), (1501, 150), (15_000, 150)])
def test_the_budget_grows_with_the_rows(num_rows, seconds):
    half = FitOptions(effort=0.5)
    assert rules.budget(FitSizes(num_rows, 100)).seconds == seconds
    assert rules.budget(FitSizes(15_001, 100)) is None
    assert estimated_fit_seconds(BayesianMLP().asked, half, num_rows) == seconds / 2
    brief = FitOptions(until=Until(score_change=0.01, max_seconds=20.0))
    assert estimated_fit_seconds(BayesianMLP().asked, brief, num_rows) == 20.0
