"""Which chains share a basin, how much of the posterior is there, and what files and reports say."""

from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.marks import statistics_but
from tests.support.model_file_edits import refused_after, remove, rewrite
from tests.support.two_basins import ROWS, SPEC, Basin, function
from tfbnn import BayesianMLP
from tfbnn.cli import main
from tfbnn.diagnostics.statistics import rhat
from tfbnn.posterior.basins.basins import Basins
from tfbnn.posterior.basins.bridge import RowsTarget, bridge, distances, group_chains, log_evidence
from tfbnn.posterior.basins.finding import find_basins

SEEDS = range(10)


class Mixture:
    """A density of two bent normal distributions far from each other, of known masses.

    The curvature that it gives is wrong by a third, and so is no proposal by itself.
    """

    def __init__(self, num_parameters, log_masses=(1.5, 0.0), centres=(0.0, 50.0)):
        self.size, self.log_masses, self.centres = num_parameters, log_masses, centres

    def log_prob(self, theta):
        parts = []
        for mass, centre in zip(self.log_masses, self.centres):
            z = theta - centre
            z[:, 1] -= 0.4 * (z[:, 0] ** 2 - 1.0)
            parts.append(mass - 0.5 * np.sum(z**2, axis=1) - 0.5 * self.size * np.log(2 * np.pi))
        return np.logaddexp(*parts)

    def factor(self, theta):
        return np.eye(len(theta)) / 1.2

    def aligned(self, theta, reference):
        return theta, np.zeros(len(theta), bool)

    def chain(self, basin, generator, count=400, correlation=0.5):
        """Autocorrelated draws of one basin [count, P]."""
        steps = generator.normal(size=(count, self.size))
        z = [steps[0]]
        for step in steps[1:]:
            z.append(correlation * z[-1] + np.sqrt(1 - correlation**2) * step)
        z = np.array(z)
        z[:, 1] += 0.4 * (z[:, 0] ** 2 - 1.0)
        return z + self.centres[basin]


def basins_of(labels, log_evidence, stderr, rhat=1.0):
    count = len(log_evidence)
    return Basins(
        labels=np.array(labels),
        log_evidence=np.array(log_evidence, float),
        log_evidence_stderr=np.array(stderr, float),
        rhat_within=np.full((count, 10, 1), rhat),
        chain_weights=np.full(len(labels), 1 / len(labels)),
    )


def pulls(found, exact):
    assert np.all(found.log_weight_stderr <= 0.2) and np.all(found.log_weight_stderr > 0)
    return (found.log_weights - exact) / found.log_weight_stderr


def test_masses_of_a_mixture_are_found_within_their_errors():
    """In ten dimensions, of ten seeds: at most 3 standard errors, of 0.2 at most."""
    target, exact = Mixture(10), np.array([1.5, 0.0]) - np.logaddexp(1.5, 0.0)
    worst = []
    for seed in SEEDS:
        generator = np.random.default_rng(seed)
        draws = np.stack([target.chain(basin, generator) for basin in (1, 0, 0)])
        found = find_basins(draws, draws[..., :3, None], target)
        assert found.labels.tolist() == [1, 0, 0]
        worst.append(np.abs(pulls(found, exact)).max())
    assert max(worst) <= 3.0 and np.median(worst) > 0.1


@pytest.mark.tensorflow
@pytest.mark.parametrize("seeds", statistics_but([range(1)], [range(1), SEEDS[1:3]]))
def test_masses_of_a_network_are_found_within_their_errors(seeds):
    """Against quadrature, of draws in both of its copies."""
    left, right = Basin.between(-2.6, 0.0), Basin.between(0.0, 2.6)
    exact = np.array([left.evidence, right.evidence])
    target, worst = RowsTarget(SPEC, ROWS), []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        draws = np.stack([basin.draws(generator, 200) for basin in (left, right, left)])
        found = find_basins(draws, function(draws), target)
        assert found.labels.tolist() == [0, 1, 0]
        worst.append(np.abs(pulls(found, exact - np.logaddexp(*exact))).max())
        # Of one copy, which is what the quadrature over positive kernels is.
        np.testing.assert_allclose(found.log_evidence, exact, atol=0.3)
    assert max(worst) <= 3.0 and np.median(worst) > 0.1


def test_the_error_knows_of_autocorrelation():
    target = Mixture(3)
    errors = [
        log_evidence(target, [target.chain(0, np.random.default_rng(0), 800, correlation)]).stderr
        for correlation in (0.0, 0.95)
    ]
    assert errors[1] > 1.5 * errors[0]


def test_hardly_any_overlap_gives_no_mass_and_says_so():
    target = Mixture(120, log_masses=(1400.0, 0.0))
    generator = np.random.default_rng(0)
    draws = np.stack([target.chain(basin, generator, 60) for basin in (0, 1)])
    found = find_basins(draws, draws[..., :3, None], target)
    assert np.all(found.log_evidence_stderr == np.inf)
    assert np.all(found.log_evidence > [1400.0, 0.0])  # bounds from above
    text = " ".join(found.report(width=10_000).split())
    assert "the evidence of basins 1, 2 is not known" in text


def test_a_proposal_that_misses_the_target_is_not_reliable():
    draws = np.random.default_rng(0).normal(size=(2, 400))
    near, far = (
        bridge(-0.5 * draws[0] ** 2 + 0.5 * (draws[0] - gap) ** 2, -gap * draws[1] - 0.5 * gap**2)
        for gap in (0.5, 7.0)
    )
    assert near.is_reliable and abs(near.value) < 3 * near.stderr < 0.3
    assert not far.is_reliable


def test_densities_that_do_not_overlap_at_all_are_no_error():
    """Warnings are errors: nothing may be divided by numbers that were rounded to zero."""
    found = bridge(np.linspace(-5.0, 5.0, 40), np.linspace(-1e4, -9e3, 40))
    assert not found.is_reliable and found.overlap <= 40
    assert not bridge(np.linspace(-5.0, 5.0, 40), np.full(40, -np.inf)).is_reliable


def test_a_density_that_is_zero_around_its_draws_has_no_error():
    class Thin(Mixture):
        def log_prob(self, theta):
            return np.where(np.any(theta != np.round(theta), axis=1), -np.inf, 0.0)

    draws = np.random.default_rng(0).integers(-3, 4, size=(1, 100, 3)).astype(float)
    found = log_evidence(Thin(3), list(draws))
    assert found.stderr == np.inf and np.isfinite(found.value)


def of_means(means, num_draws=100, seed=0):
    """Functions [C, S, 20, 1] of unit standard deviation around means that differ by chain."""
    noise = np.random.default_rng(seed).normal(size=(len(means), num_draws, 20, 1))
    return noise + np.array(means, float)[:, None, None, None]


@pytest.mark.parametrize(
    "means, labels",
    [
        ([0.0, 0.0, 0.0], [0, 0, 0]),
        ([0.0, 9.0, 0.0], [0, 1, 0]),
        ([5.0, 0.0, -5.0], [0, 1, 2]),
        ([0.0, 3.0, 1.5], [0, 0, 0]),  # the third connects the others
        ([0.0, np.nan, 0.0, np.nan], [0, 1, 0, 2]),
        ([7.0], [0]),
    ],
)
def test_chains_are_grouped_by_their_functions(means, labels):
    assert group_chains(of_means(means)).tolist() == labels


def test_distances_are_in_standard_deviations_of_the_chains():
    found = distances(of_means([0.0, 4.0], num_draws=4000))
    np.testing.assert_allclose(found, [[0.0, 4.0], [4.0, 0.0]], rtol=0.05)
    still = np.zeros((2, 5, 3, 1))
    still[1] = 1.0
    assert distances(still).tolist() == [[0.0, np.inf], [np.inf, 0.0]]


def test_rhat_is_of_the_chains_of_a_basin():
    target, generator = Mixture(3, log_masses=(0.0, 3.0)), np.random.default_rng(1)
    draws = np.stack([target.chain(basin, generator, 300, 0.0) for basin in (0, 1, 0, 1)])
    found = find_basins(draws, draws[..., None], target)
    assert found.labels.tolist() == [1, 0, 1, 0] and found.rhat_within.shape == (2, 3, 1)
    expected = [rhat(draws[chains, ..., None]) for chains in ([1, 3], [0, 2])]
    np.testing.assert_array_equal(found.rhat_within, expected)
    assert found.rhat_within.max() < 1.05


def test_errors_of_weights_follow_large_errors_of_evidences():
    """A linear rule would give the best basin, with a weight next to 1, no error at all."""
    found = basins_of([0, 1], [0.0, -30.0], [40.0, 40.0])
    assert found.log_weight_stderr[0] > 1.0
    small = basins_of([0, 1], [0.0, -1.0], [0.03, 0.04])
    share = np.exp(small.log_weights)
    np.testing.assert_allclose(small.log_weight_stderr, 0.05 * share[::-1], rtol=0.05)
    assert np.all(np.isinf(basins_of([0, 1], [0.0, -50.0], [0.0, np.inf]).log_weight_stderr))


def test_the_report_says_what_the_average_is():
    apart = basins_of([0, 1, 0, 2], [0.0, -300.0, -900.0], [0.1, 0.1, 5.0])
    text = " ".join(apart.report(width=10_000).split())
    assert "2: chain 1, log weight -300 +- 0.14 nats, 0.25 of the average" in text
    assert "there may be basins that no chain has found" in text
    weighted = replace(apart, chain_weights=np.array([0.7, 0.3, 0.0, 0.0])).report(width=10_000)
    assert "0.7 of the average" in weighted and "-900 +- 5 nats, 0 of the average" in weighted


@pytest.fixture
def stored():
    found = replace(
        basins_of([0, 1], [-3.0, -50.0], [0.5, np.inf], rhat=1.02),
        rhat_within=np.random.default_rng(0).uniform(1.0, 2.0, (2, 10, 1)),
    )
    return BayesianMLP.from_ensemble(replace(synthetic_ensemble(), basins=found))


def test_a_file_holds_the_basins(stored, tmp_path):
    stored.save(tmp_path / "m.h5")
    model = tfbnn.load(tmp_path / "m.h5")
    before, after = stored.posterior.basins, model.posterior.basins
    assert after.report() == before.report() and after.to_json() == before.to_json()
    np.testing.assert_array_equal(after.rhat_within, before.rhat_within)


def entry(name, value):
    return rewrite("basins", name, value=value)


@pytest.mark.parametrize(
    "edit, message",
    [
        (entry("labels", [0, 0]), "labels must give 2 chains 2 basins"),
        (entry("labels", [0, -1]), "a list of counts"),
        (entry("log_evidence", [0.0]), "evidences of 2 basins"),
        (entry("log_evidence", ["0", 1.0]), "a list of finite numbers"),
        (entry("log_evidence_stderr", [-1.0, None]), "0 or more"),
        (entry("is_bridged", [1, 0]), "a list of flags"),
        (remove("constant_data/basins_rhat"), "basins in metadata go together"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(stored, tmp_path, edit, message):
    path = tmp_path / "m.h5"
    stored.save(path)
    refused_after(edit, path, message)


def test_basins_go_with_their_chains(stored):
    ensemble = stored.posterior
    assert ensemble.with_chain_weights([0.9, 0.1]).basins.averaged_weights.tolist() == [0.9, 0.1]
    assert ensemble.with_draws(ensemble.draws).basins is None
    assert stored.compress(5, "stride").posterior.basins is None


def test_info_and_diagnose_show_them(stored, tmp_path, capsys):
    stored.save(tmp_path / "m.h5")
    for command in ("info", "diagnose"):
        assert main([command, str(tmp_path / "m.h5"), "--trusted"]) == 0
        assert "2 chains in 2 basins" in " ".join(capsys.readouterr().out.split())


ROWS_OF_FIT = make_rows(50, 2, 1)


@pytest.mark.parametrize(
    "arguments, provenance, message",
    [
        ((), {}, "needs the training rows"),
        (ROWS_OF_FIT[:1], {}, "y=None"),
        (ROWS_OF_FIT, {"num_training_rows": 49}, "needs the 49 rows of the fit, received 50"),
        (ROWS_OF_FIT, {"not_sampled": "fit_map: one optimised network"}, "basins needs chains"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*not sampled")
def test_unusable_rows_and_models_are_refused(arguments, provenance, message):
    model = BayesianMLP.from_ensemble(synthetic_ensemble(provenance=provenance))
    with pytest.raises(ValueError, match=message):
        model.basins(*arguments)


def test_too_few_draws_and_too_many_parameters_are_refused_before_matrices_are_made():
    model = BayesianMLP.from_ensemble(synthetic_ensemble(num_results=7))
    with pytest.raises(ValueError, match="at least 8 draws per chain, received 7"):
        model.basins(*ROWS_OF_FIT)
    draws = np.random.default_rng(0).normal(size=(2, 8, 8001))
    with pytest.raises(ValueError, match="at most 8000 parameters, this model has 8001"):
        find_basins(draws, of_means([0.0, 9.0], num_draws=8), Mixture(8001))


def test_other_rows_are_warned_of():
    same = synthetic_ensemble(num_results=40)
    alike = same.with_draws(np.repeat(same.draws[:1], 2, axis=0))  # one basin: nothing to weigh
    provenance = same.provenance.stating(data_sha256="of others", num_training_rows=50)
    model = BayesianMLP.from_ensemble(replace(alike, provenance=provenance))
    with pytest.warns(UserWarning, match="needs the rows of the fit in their order"):
        found = model.basins(*ROWS_OF_FIT)
    assert found.labels.tolist() == [0, 0] and found.log_weights.tolist() == [0.0]
    assert model.posterior.basins is found
