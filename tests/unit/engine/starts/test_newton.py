"""Levenberg-Marquardt, its three ways to solve, its plan, and the choice among starts."""

import re

import numpy as np
import pytest
import tensorflow as tf

import tfbnn
from tests.support.builders import plain_spec
from tests.support.marks import statistics_but
from tests.support.specs import CONTRASTING, build, random_rows
from tests.support.starts import fit_starts
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.gauss_newton import gauss_newton_matrix
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.starts import newton, polishing
from tfbnn.engine.starts.newton import DenseCurvature, RowCurvature, polish
from tfbnn.engine.starts.newton_plan import NewtonPlan, plan_newton
from tfbnn.kernels import HMC
from tfbnn.run.config import Starts
from tfbnn.run.progress import Notifier


def rows(num_rows=80):
    generator = np.random.default_rng(24)
    x = generator.normal(size=(num_rows, 2))
    return x, np.sin(2 * x[:, :1]) * x[:, 1:] + 0.01 * generator.normal(size=(num_rows, 1))


def problem(weights=None, seed=27):
    """(Spec, theta [P], Data) of a perceptron with learned noise."""
    spec, (x, y) = build("gaussian_learned"), rows()
    theta = np.random.default_rng(seed).normal(size=spec.layout.num_parameters)
    return spec, theta, make_data(x, y, None, spec.dtype, weights)


@pytest.mark.parametrize(
    "name", statistics_but(["gaussian_learned"], ["gaussian_learned", "hierarchical_ntk"])
)
def test_approaches_a_stationary_point_of_the_weights(name):
    """The gradient, in units of the curvature, shrinks at least twentyfold."""
    spec, generator = build(name), np.random.default_rng(25)
    data = make_data(*rows(), None, spec.dtype)
    theta = 0.5 * generator.normal(size=spec.layout.num_parameters)
    *_, result = polish(spec, theta, data, 100, "dense")
    assert result.log_prob[-1] > result.log_prob[0] + 20
    assert slope(spec, data, result.theta) < 0.05 * slope(spec, data, theta)


def slope(spec, data, theta):
    _, gradient = Potential(spec).value_and_gradient(tf.constant(theta[None]), data)
    curvature = np.diag(gauss_newton_matrix(spec, theta, data))
    weights = slice(0, spec.layout.num_weights)
    return np.abs(gradient[0] / np.sqrt(curvature))[weights].max()


@pytest.fixture(scope="module")
def wide():
    """(Spec, Data, theta) of more parameters than rows, and all states of its dense polish."""
    spec = plain_spec([2, 30, 1], prior=tfbnn.priors.Normal(1.0))
    data = make_data(*rows(40), None, spec.dtype)
    theta = np.random.default_rng(26).normal(size=spec.layout.num_parameters)
    return (spec, data, theta), list(polish(spec, theta, data, 100, "dense"))


def test_noise_scale_survives_more_parameters_than_rows(wide):
    """Without the effective number of parameters the scale would fall to zero."""
    *_, result = wide[1]
    assert 1e-3 < np.exp(result.theta[-1]) < 0.5


@pytest.mark.statistics
def test_accelerated_steps_follow_a_ravine(monkeypatch):
    """On rows next to no noise, from a draw of the prior, they are hundreds of nats ahead of plain ones."""
    spec = plain_spec([2, 8, 8, 1], prior=tfbnn.priors.Normal(1.0))
    x, y = rows(400)
    data = make_data(x, y, None, "float64")
    theta = np.random.default_rng(29).normal(size=spec.layout.num_parameters)

    def reached():
        *_, last = polish(spec, theta, data, 30, "dense")
        return last.log_prob[-1]

    accelerated = reached()
    monkeypatch.setattr(newton._Problem, "bend", lambda *arguments: 0.0)
    assert accelerated > reached() + 100.0


def test_a_step_that_cannot_be_computed_ends_the_polish(monkeypatch):
    """No state has a scale of NaN where the matrix cannot be factorised, as without noise."""

    def pull(problem, theta, curvature):
        return np.full(len(theta), 0.0 if len(states) < 3 else np.nan)

    monkeypatch.setattr(newton._Problem, "_expected_pull", pull)
    states = []
    for state in polish(*problem(), 100, "dense"):
        states.append(state)
    assert 3 <= len(states) < 10 and np.isfinite(states[-1].theta).all()


@pytest.mark.parametrize("weight", statistics_but([1e8], [1.0, 1e8]))
def test_a_step_uphill_is_found_however_stiff_the_curvature(weight):
    """Damping that is small beside the curvature of so many rows leaves a step at its length."""
    spec, theta, data = problem(np.full(80, weight))
    *_, result = polish(spec, 0.5 * theta, data, 1, "dense")
    assert result.log_prob[-1] > result.log_prob[0] + weight


def test_a_gain_that_is_out_of_reach_ends_after_twenty_iterations():
    """And one that is not changes nothing of the way."""

    def way(least):
        *_, last = states = list(polish(*problem(), 23, "dense", least))
        # Each iteration is told.
        assert [len(state.log_prob) for state in states[:3]] == [1, 2, 3]
        return last.log_prob

    whole = way(-np.inf)
    gained = whole[20] - whole[0]
    assert len(whole) == 24 and gained > 0
    assert way(1.9 * gained) == whole
    assert way(2.1 * gained) == whole[:21]


def test_every_input_gets_the_scale_that_its_weights_ask_for():
    """The scale of the idle input falls, pulled by the variances of its own weights alone."""
    ard = {"kernel": tfbnn.priors.ARD(), "bias": tfbnn.priors.Normal()}
    spec = plain_spec([2, 4, 1], prior=[ard, tfbnn.priors.HierarchicalNormal()])
    generator = np.random.default_rng(29)
    x = generator.normal(size=(60, 2))
    y = np.sin(1.5 * x[:, :1]) + 0.1 * generator.normal(size=(60, 1))
    data = make_data(x, y, None, "float64")
    theta = 0.5 * generator.normal(size=spec.layout.num_parameters)
    span, weights = spec.layout.layers[0].kernel.scales, slice(0, spec.layout.num_weights)
    theta[span] = 0.3, -0.2
    problem = newton._Problem(spec, data, DenseCurvature)
    pull = problem._expected_pull(theta, problem.curvature(theta))[span]
    variances = np.diag(np.linalg.inv(gauss_newton_matrix(spec, theta, data)[weights, weights]))
    expected = variances[:8].reshape(2, 4).sum(axis=1) / np.exp([0.6, -0.4])
    np.testing.assert_allclose(pull, expected, rtol=1e-8)
    *_, polished = polish(spec, theta, data, 60, "dense")
    acting, idle = np.exp(polished.theta[span])
    assert 0.2 < acting < 2.0 and 1e-4 < idle < 0.25 * acting


def test_too_many_parameters_for_whitening_are_refused():
    x = np.zeros((4, 2)) + np.arange(4)[:, None]
    model = tfbnn.BayesianMLP([2, 1001, 1], prior=tfbnn.priors.Normal(1.0))
    with pytest.raises(ValueError, match="gauss_newton.*GB"):
        fit_starts(model, x, x[:, 0], kernel=HMC(preconditioner="gauss_newton"), pretraining=None)


class TestSolvers:
    def setting(self, name):
        spec, generator = build(name), np.random.default_rng(31)
        x, y, _ = random_rows(spec, generator, 7)
        theta = 0.7 * generator.normal(size=spec.layout.num_parameters)
        free = np.arange(spec.layout.num_weights)
        return (spec, theta, make_data(x, y, None, spec.dtype), free), generator.normal(
            size=len(free)
        )

    @pytest.mark.parametrize("name", statistics_but(["categorical", "ard_ntk"], CONTRASTING))
    def test_agree(self, name):
        arguments, gradient = self.setting(name)
        dense, lines = (kind(*arguments) for kind in (DenseCurvature, RowCurvature))
        np.testing.assert_allclose(lines.diagonal, dense.diagonal, rtol=1e-10)
        np.testing.assert_allclose(lines.inverse_diagonal(), dense.inverse_diagonal(), rtol=1e-6)
        for damping in (0.0, 3.0):
            exact, by_lines = (one.damped(damping)(gradient) for one in (dense, lines))
            np.testing.assert_allclose(by_lines, exact, rtol=1e-6, atol=1e-9)

    def test_both_polish_to_about_the_same_density(self, wide):
        (spec, data, theta), states = wide
        *_, result = polish(spec, theta, data, 15, "rows")
        assert abs(result.log_prob[-1] - states[15].log_prob[-1]) < 5.0
        assert result.log_prob[-1] > result.log_prob[0] + 100.0


class TestPlan:
    def plan(self, layers, num_rows, **settings):
        spec = tfbnn.BayesianMLP(layers, prior=tfbnn.priors.Normal(1.0)).spec
        return plan_newton(spec, num_rows, tfbnn.Pretraining(**settings))

    def test_auto_takes_what_is_cheapest_or_none(self):
        assert self.plan([5, 20, 20, 1], 11_746)[:2] == (127, "dense")
        assert self.plan([6, 50, 1], 277).method == "rows"
        assert self.plan([5, 50, 50, 1], 1200)[:2] == (87, "rows")
        for wide in ([5, 50, 50, 1], [5, 1024, 1024, 1]):
            none = self.plan(wide, 11_746)
            assert none.num_iterations == 0 and "ADAM alone" in none.reason

    def test_what_auto_chose_is_said(self):
        spec = tfbnn.BayesianMLP([2, 4, 1], prior=tfbnn.priors.Normal(1.0)).spec
        size = "for N = 80, P = 18"
        plan = plan_newton(spec, 80, tfbnn.Pretraining())
        assert plan.reason == f"auto: the P x P matrix affords 200 {size}"
        settings, why = HMC().resolve(spec, 80)
        assert settings.preconditioner == "gauss_newton"
        assert f"chosen because whitening costs no more than a gradient {size}" in why
        assert settings.accept_target(spec) == (0.8, "default in whitened coordinates")

    def test_as_asked(self):
        assert self.plan([5, 20, 20, 1], 11_746, newton_iterations=3)[:2] == (3, "dense")
        none = self.plan([5, 1024, 1024, 1], 11_746, newton_iterations=3)
        assert none.num_iterations == 0 and "fits in memory" in none.reason
        assert self.plan([5, 4, 1], 100, newton_iterations=0).num_iterations == 0

        plan = self.plan([5, 4, 1], 100, early_stopping=5)
        assert plan.num_iterations == 0 and "early stopping" in plan.reason


@pytest.mark.filterwarnings("ignore::tfbnn.ConvergenceWarning")
@pytest.mark.statistics
def test_auto_keeps_the_start_where_polishing_only_fits_noise():
    generator = np.random.default_rng(32)
    x, noise = generator.normal(size=(60, 2)), generator.normal(size=60)

    def start(newton_iterations, y):
        iterations = {"newton_iterations": newton_iterations}
        settings = tfbnn.Pretraining(epochs=300, batch_size=None, **iterations)
        model = tfbnn.BayesianMLP([2, 12, 1], prior=tfbnn.priors.Normal(1.0))
        run = fit_starts(model, x, y, num_chains=2, pretraining=settings)
        return run.start_log_prob, run.pretraining

    adam, _ = start(0, noise)
    kept, text = start("auto", noise)
    np.testing.assert_array_equal(kept, adam)
    assert re.search(r"left out after \d\d iterations: it gained too little to matter", text)
    adam, _ = start(0, np.sin(3 * x[:, 0]) * x[:, 1])
    polished, text = start("auto", np.sin(3 * x[:, 0]) * x[:, 1])
    assert np.all(polished > adam + 49) and "left out" not in text


def test_where_no_step_is_found_nothing_is_said_to_be_gained(monkeypatch):
    """A start outside of a Uniform prior has no log density that could rise."""
    spec, theta = build("uniform"), np.zeros((2, 3), np.float32)
    stays = newton.NewtonState(theta[0], np.zeros(3), 1.0, [-np.inf], theta[0], [])
    monkeypatch.setattr("tfbnn.engine.starts.polishing.polish", lambda *_, **__: [stays])
    plan = NewtonPlan(5, "dense", "as asked")
    adam, ground = Starts(theta, "ADAM"), polishing.Ground(None, None, None)
    found, _ = polishing.polish_all(spec, ground, adam, plan, -np.inf, Notifier())
    text = "Levenberg-Marquardt (as asked) found no step that raises the log density"
    assert found.text == f"ADAM; {text}"
    np.testing.assert_array_equal(found.theta, theta)
