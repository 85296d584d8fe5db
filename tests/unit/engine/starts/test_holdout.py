"""Held-out rows judge starts: which rows they are, what they say, and what becomes of starts."""

from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support import reference
from tests.support.builders import plain_spec
from tests.support.marks import statistics_but
from tests.support.specs import build, random_rows
from tests.support.starts import search
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.data import WeightedRows, make_data
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.starts import find, newton, polishing
from tfbnn.engine.starts.check import draw_prior
from tfbnn.engine.starts.holdout import HoldoutScore, split_rows
from tfbnn.engine.starts.newton_plan import NewtonPlan
from tfbnn.run.config import Starts
from tfbnn.run.progress import Notifier
from tfbnn.spec.priors import EarlierRows
from tfbnn.spec.rows import NetworkRows

SPEC = plain_spec([2, 4, 1])
NOISE = SPEC.layout.log_noise_scale


def rows(num_rows=40, noise=0.1, seed=0, row_noise=False):
    """NetworkRows of a smooth function."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(num_rows, 2))
    y = np.sin(1.5 * x[:, :1]) * x[:, 1:] + noise * generator.normal(size=(num_rows, 1))
    return NetworkRows(x, y, np.arange(1.0, num_rows + 1)[:, None] if row_noise else None)


VALIDATION = rows(9, seed=7)


def thetas(count=1, spec=SPEC, seed=1):
    """[count, P]."""
    return np.random.default_rng(seed).normal(size=(count, spec.layout.num_parameters))


def residual_scale(spec, theta, judged):
    """Root mean square of residuals over NetworkRows."""
    return np.sqrt(np.mean((judged.y - reference.outputs(spec, theta, judged.x)) ** 2))


class TestSplit:
    def test_every_row_is_on_one_side(self):
        """In its order, with its target and its noise."""
        table = rows(30, row_noise=True)
        sides = split_rows(table, 0.3, seed=5)
        assert [len(side.x) for side in sides] == [21, 9]
        numbers = [side.noise[:, 0].astype(int) - 1 for side in sides]
        for side, indices in zip(sides, numbers):
            assert np.all(np.diff(indices) > 0)
            for array, whole in zip(side, table):
                np.testing.assert_array_equal(array, whole[indices])
        np.testing.assert_array_equal(np.sort(np.concatenate(numbers)), np.arange(30))

    def test_the_seed_alone_chooses(self):
        table = rows(30)
        first, again, other = (split_rows(table, 0.3, seed)[1] for seed in (5, 5, 6))
        np.testing.assert_array_equal(first.x, again.x)
        assert not np.array_equal(first.x, other.x) and first.noise is None

    @pytest.mark.parametrize("num_rows, share", [(23, 0.15), (3, 0.9), (1000, 0.0)])
    def test_too_few_are_none(self, num_rows, share):
        """Four are enough."""
        table = rows(num_rows)
        fitted, held_out = split_rows(table, share, seed=5)
        assert fitted is table and held_out is None
        assert len(split_rows(rows(24), 0.15, seed=5)[1].x) == 4

    def test_groups_are_on_one_side(self):
        """About the share asked for is held out, and no row where one group has most of them."""
        table, groups = rows(30, row_noise=True), np.repeat(np.arange(10), 3)[::-1].copy()
        sides = split_rows(table, 0.3, 5, groups)
        assert [len(side.x) for side in sides] == [21, 9]
        found = [set(groups[side.noise[:, 0].astype(int) - 1]) for side in sides]
        assert not found[0] & found[1] and len(found[1]) == 3
        assert split_rows(table, 0.3, 5, np.arange(30) // 28)[1] is None


class TestHoldoutScore:
    def test_the_score_is_the_likelihood_with_the_noise_that_the_rows_show(self):
        judged, theta = rows(), thetas()[0]
        holdout = HoldoutScore(SPEC, WeightedRows(*judged))
        expected = theta.copy()
        expected[NOISE] = np.log(residual_scale(SPEC, theta, judged))
        value = reference.log_likelihood(SPEC, expected, judged.x, judged.y) / len(judged.x)
        assert holdout.score(theta) == pytest.approx(value, rel=1e-10)
        theta[NOISE] += 3.0  # what a start says of its noise itself is of no account
        assert holdout.score(theta) == pytest.approx(value, rel=1e-10)

    @pytest.mark.parametrize("name", ["bernoulli", "gaussian_fixed"])
    def test_of_a_likelihood_without_learned_noise_it_is_the_likelihood(self, name):
        spec = build(name)
        judged = NetworkRows(*random_rows(spec, np.random.default_rng(3), 9))
        holdout, theta = HoldoutScore(spec, WeightedRows(*judged)), thetas(1, spec)
        value = reference.log_likelihood(spec, theta[0], *judged) / 9
        assert holdout.score(theta[0]) == pytest.approx(value, rel=1e-9)
        np.testing.assert_array_equal(holdout.settled(theta), theta)
        assert holdout.noise_floor(theta[0]).size == 0

    def test_a_network_that_overflows_scores_lowest(self):
        theta = thetas()[0]
        theta[0] = np.nan
        assert HoldoutScore(SPEC, WeightedRows(*rows())).score(theta) == -np.inf

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_settled_starts_differ_in_their_noise_alone(self, dtype):
        spec, judged = plain_spec([2, 4, 1], dtype=dtype), rows()
        theta = thetas(3, spec).astype(dtype)
        before = theta.copy()
        settled = HoldoutScore(spec, WeightedRows(*judged)).settled(theta)
        assert settled.dtype == dtype and np.array_equal(theta, before)
        np.testing.assert_array_equal(np.delete(settled, NOISE, 1), np.delete(theta, NOISE, 1))
        scales = [residual_scale(spec, start, judged) for start in theta.astype(np.float64)]
        np.testing.assert_allclose(np.exp(settled[:, NOISE])[:, 0], scales, rtol=1e-5)

    def test_noise_may_be_half_of_what_the_rows_show(self):
        judged, theta = rows(), thetas()[0]
        floor = HoldoutScore(SPEC, WeightedRows(*judged)).noise_floor(theta)
        np.testing.assert_allclose(np.exp(floor), [0.5 * residual_scale(SPEC, theta, judged)])


class Prescribed:
    """A HoldoutScore that says what it is told to."""

    def __init__(self, *scores):
        self.scores = iter(scores)

    def score(self, theta):
        return next(self.scores)


class TestPolish:
    def way(self, num_iterations, **settings):
        data = make_data(*rows(), SPEC.dtype)
        _, *states = newton.polish(SPEC, thetas()[0], data, num_iterations, "dense", **settings)
        return states

    def test_the_best_score_is_kept_and_waited_for_no_longer_than_twenty_iterations(self):
        scores = [0.0, 1.0, 3.0, *np.linspace(2.9, 1.0, 60)]
        states = self.way(60, holdout=Prescribed(*scores))
        assert len(states) == 22 and states[-1].scores == scores[:23]
        np.testing.assert_array_equal(states[-1].best, states[1].theta)

    def test_scores_change_nothing_of_the_way(self):
        judged, plain = self.way(5, holdout=Prescribed(*range(9, 0, -1))), self.way(5)
        np.testing.assert_array_equal(judged[-1].theta, plain[-1].theta)
        np.testing.assert_array_equal(judged[-1].best, thetas()[0])
        np.testing.assert_array_equal(plain[-1].best, plain[-1].theta)

    def test_noise_stays_above_its_floor(self):
        free, held = (
            np.array([state.theta[NOISE] for state in self.way(25, **settings)])
            for settings in ({}, {"noise_floor": lambda theta: np.array([-1.0])})
        )
        assert free.min() < -1.5 and held.min() == -1.0


def test_a_polish_is_kept_where_held_out_rows_are_predicted_better(monkeypatch):
    theta = thetas(3)
    polished = theta + 1.0

    def polish_of(spec, start, data, *_, **__):
        chain = int(np.flatnonzero((theta == start).all(axis=1))[0])
        history, scores = [0.0, 5.0], [[0.0, 1.0], [0.0, -1.0], [-np.inf, -9.0]][chain]
        return [newton.NewtonState(polished[chain], None, 1.0, history, polished[chain], scores)]

    monkeypatch.setattr(polishing, "polish", polish_of)
    plan = NewtonPlan(5, "dense", "as asked")
    ground = polishing.Ground(None, None, HoldoutScore(SPEC, WeightedRows(*rows())))
    adam = Starts(theta, "")
    found, kept = polishing.polish_all(SPEC, ground, adam, plan, -np.inf, Notifier())
    assert "kept for 2 of 3 starts" in found.text and "held-out rows" in found.text
    np.testing.assert_array_equal(found.theta, [polished[0], theta[1], polished[2]])
    assert kept == (0, 2)


def test_only_what_was_polished_is_refined_with_no_less_noise(monkeypatch):
    theta = thetas(3)

    def polish_of(spec, start, data, *_, noise_floor, **__):
        np.testing.assert_array_equal(noise_floor(None), start[NOISE])
        return [newton.NewtonState(start + 2.0, None, 1.0, [0.0, 9.0], start, [])]

    monkeypatch.setattr(polishing, "polish", polish_of)
    chosen = Starts(theta, "")
    plan = NewtonPlan(5, "dense", "as asked")
    found = polishing.refine_all(SPEC, None, chosen, (0, 2), plan, Notifier())
    np.testing.assert_array_equal(found.theta, [theta[0] + 2.0, theta[1], theta[2] + 2.0])


def test_refining_takes_its_iterations_out_of_the_plan():
    for count, expected in ((200, 30), (40, 10), (4, 1), (0, 0)):
        before, after = polishing.parted(NewtonPlan(count, "dense", ""))
        assert after.num_iterations == expected
        assert before.num_iterations + after.num_iterations == count


def test_validation_rows_leave_nothing_to_refine(monkeypatch):
    """All training rows are fitted from the first: more iterations would leave what was judged best."""
    monkeypatch.setattr(find, "refine_all", None)
    search(rows(), SPEC, validation=VALIDATION, newton_iterations=3)


def batches(table, networks):
    """(The first five rows, the others as those of an earlier fit with these networks)."""
    x, y, count = table.x[5:], table.y[5:], len(table.x) - 5
    weights = {"weights": np.ones(count), "num_rows": count, "networks": networks}
    kept = EarlierRows.of(x=x, y=y, noise=None, **weights)
    return NetworkRows(table.x[:5], table.y[:5], None), kept


class TestSearch:
    @pytest.mark.parametrize(
        "settings, judge",
        [
            ({"seed": 4}, "held out"),
            ({"validation": VALIDATION}, "validation"),
            # Where no share is asked for validation rows do not judge, and too few do not.
            ({"validation": VALIDATION, "share": 0.0}, "all"),
            ({"share": 0.05}, "all"),
        ],
    )
    def test_the_rows_that_judge_set_the_noise(self, settings, judge):
        table = rows()
        held_out = split_rows(table, 0.25, seed=4)[1]
        judged = {"held out": held_out, "validation": VALIDATION, "all": table}[judge]
        starts = search(table, SPEC, **settings).theta
        scales = [residual_scale(SPEC, start, judged) for start in starts]
        np.testing.assert_allclose(np.exp(starts[:, NOISE])[:, 0], scales)

    def test_the_starts_of_highest_score_are_kept(self):
        table = rows()
        holdout = HoldoutScore(SPEC, WeightedRows(*split_rows(table, 0.25, seed=0)[1]))
        tried = draw_prior(SPEC, 0, 6)
        scores = np.array([holdout.score(theta) for theta in tried])
        best = np.sort(np.argsort(-scores)[:2])
        starts = search(table, SPEC, num_starts=6)
        np.testing.assert_array_equal(starts.theta, holdout.settled(tried[best]))
        assert "the best 2 of 6 starts, held-out scores" in starts.text
        assert f"{scores.max():.4g}" in starts.text

    def test_without_held_out_rows_those_of_highest_log_density_are_kept(self):
        """After their polish, of which all are told."""
        table = rows()
        settings = dict(share=0.0, newton_iterations=2, num_starts=4)
        every = search(table, SPEC, num_chains=4, **settings).theta
        data = make_data(*table, SPEC.dtype)
        values = Potential(SPEC).log_prob(tf.constant(every), data).numpy()
        best = np.sort(np.argsort(-values)[:2])
        starts = search(table, SPEC, **settings)
        np.testing.assert_allclose(starts.theta, every[best], rtol=1e-9)
        assert "the best 2 of 4 starts, log densities" in starts.text
        for value in values:
            assert f"{value:.4g}" in starts.text

    @pytest.mark.statistics
    def test_with_all_earlier_rows_it_is_the_search_of_a_fit_to_all(self):
        """The new rows alone, five, would leave none to be held out."""
        table, spec = rows(), replace(SPEC, dtype="float64")
        settings = dict(epochs=20, batch_size=None, early_stopping=3, newton_iterations=3)
        at_once = search(table, spec, num_starts=3, **settings)
        new, kept = batches(table, thetas(2))
        later = search(new, spec.after(kept), num_starts=3, **settings)
        np.testing.assert_allclose(later.theta, at_once.theta, rtol=1e-6)
        assert later.text == at_once.text and "held-out scores" in later.text

    @pytest.mark.parametrize("is_better", statistics_but([False], [True, False]))
    def test_without_held_out_rows_earlier_networks_compete_by_log_density(self, is_better):
        """The first of the two is the end of a long search on all rows, or as good as any draw."""
        table, spec = rows(), replace(SPEC, dtype="float64")
        known = thetas(2)
        if is_better:
            long = dict(epochs=300, batch_size=None, learning_rate=0.02)
            known[0] = search(table, spec, share=0.0, **long).theta[0]
        new, kept = batches(table, known)
        anew = dict(share=0.0, epochs=50, batch_size=None, learning_rate=0.02, num_starts=3)
        later = search(new, spec.after(kept), **anew)
        assert later.text.startswith("networks of the earlier posterior; ADAM, 50 epochs")
        assert "the best 2 of 5 starts, log densities" in later.text
        weights, known = (np.delete(theta, NOISE, 1) for theta in (later.theta, known))
        assert np.array_equal(weights[0], known[0]) == is_better
        assert not np.array_equal(weights[1], known[1])

    def test_starts_that_are_kept_keep_their_superchains(self, monkeypatch):
        """Networks of an earlier posterior are each one of its own, numbered after those of populations."""
        table, spec, known = rows(), replace(SPEC, dtype="float64"), thetas(2)
        populations = draw_prior(spec, 5, 2)
        cooled = Starts(populations, "cooled", superchains=np.array([0, 0]))
        monkeypatch.setattr(find, "_following", lambda *_: cooled)
        new, kept = batches(table, known)
        later = search(new, spec.after(kept), share=0.0, epochs=1, largest_misfit=0.1)
        every = np.concatenate([known, populations])
        indices = [
            int(np.flatnonzero(np.all(np.delete(every, NOISE, 1) == one, axis=1))[0])
            for one in np.delete(later.theta, NOISE, 1)
        ]
        assert "the best 2 of 4 starts" in later.text
        np.testing.assert_array_equal(later.superchains, np.array([1, 2, 0, 0])[indices])

    def test_early_stopping_without_enough_rows_makes_all_epochs(self):
        starts = search(rows(), SPEC, share=0.05, epochs=3, early_stopping=1, batch_size=None)
        assert starts.text.startswith("ADAM, 3 epochs") and "validation" not in starts.text


class TestNoise:
    """Starts with 122 parameters follow 40 rows wherever nothing holds them off."""

    spec = plain_spec([2, 30, 1], prior=tfbnn.priors.Normal(5.0))

    def start(self, table, share):
        """(Noise scale, theta [P]) of a start, which a share of 0 leaves to its log density."""
        settings = dict(epochs=1000, batch_size=None, learning_rate=0.02, newton_iterations=40)
        if share:
            settings["early_stopping"] = 20
        theta = search(table, self.spec, num_chains=1, share=share, **settings).theta[0]
        return np.exp(theta[self.spec.layout.log_noise_scale])[0], theta

    @pytest.mark.statistics
    def test_a_start_does_not_take_noise_for_a_function(self):
        table, fresh = rows(noise=1.0), rows(400, noise=1.0, seed=99)
        scale, theta = self.start(table, 0.0)
        assert scale < 0.05 * residual_scale(self.spec, theta, fresh)
        scale, theta = self.start(table, 0.25)
        for unseen in (split_rows(table, 0.25, seed=0)[1], fresh):
            assert scale > 0.5 * residual_scale(self.spec, theta, unseen)
