"""Restarts: scouts are short, hopeless chains go on where the best are, and a folder changes no bit."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow_probability as tfp

import tfbnn
from tests.support.builders import plain_spec
from tests.support.keras_models import KINDS
from tests.support.small_runs import assert_same_draws
from tests.support.two_basins import PRIOR, X
from tfbnn.engine.running import begin_elsewhere, scouting
from tfbnn.engine.running.scouting import check_restart, judged, moved
from tfbnn.exceptions import RunFolderError
from tfbnn.kernels import HMC, PowerPosterior
from tfbnn.likelihoods import Gaussian
from tfbnn.posterior.basins.record import Basins
from tfbnn.priors import Normal
from tfbnn.run.definition import Starts
from tfbnn.run.options import FitOptions

pytestmark = pytest.mark.filterwarnings(
    "ignore::tfbnn.ConvergenceWarning", "ignore:The run was stopped"
)

# With the right floor so much higher the left edge is better by 94 nats; and the two modes.
NOISE = 0.07
Y = np.where(np.abs(X) < 1.0, 1.0, np.where(X < 0.0, 0.0, 0.1))
LEFT, RIGHT = [7.76, 8.43, 0.28, 0.27], [-6.57, 7.31, 0.2, 0.29]
RUN = dict(
    kernel=HMC(num_leapfrog_steps=8),
    num_results=16,
    num_burnin_steps=160,
    pretraining=None,
    seed=3,
    jit_compile=False,
    verbose=0,
)


@pytest.fixture
def starting(monkeypatch):
    """Makes chains start in these places."""

    def start(*places):
        def find(spec, *arguments):
            return Starts(np.array(places, spec.dtype), "given")

        monkeypatch.setattr(begin_elsewhere, "find_starts", find)
        return {"num_chains": len(places)}

    return start


def fit(**options):
    model = tfbnn.BayesianMLP(
        [1, 1, 1],
        prior=Normal(PRIOR),
        likelihood=Gaussian(NOISE),
        x_transform=None,
        y_transform=None,
        dtype="float64",
    )
    return model, model.fit_posterior(X[:, None], Y, **(RUN | options))


def edges(model):
    """Where each draw has its edge [C, S]."""
    return -model.posterior.draws[..., 1] / model.posterior.draws[..., 0]


@pytest.mark.statistics
def test_hopeless_chains_go_on_in_the_best_basin(starting):
    chains = starting(RIGHT, LEFT, RIGHT, LEFT)
    apart, run = fit(**chains)
    assert (edges(apart).mean(axis=1) > 0).tolist() == [True, False, True, False]
    assert "Basins" not in run.report()
    assert run.basins().labels.tolist() == [1, 0, 1, 0] and run.basins() is apart.posterior.basins
    assert "4 chains in 2 basins" in run.report(width=10_000)
    assert apart.posterior.provenance.restarted is None
    model, run = fit(restart="best", **chains)
    assert np.all(edges(model) < 0) and run.basins().labels.tolist() == [0, 0, 0, 0]
    (note,) = [note for note in run.notes if "restart" in note]
    assert "moved chains 0, 2" in note and "found by chains 1, 3" in note
    assert note in run.report(width=10_000) and model.posterior.provenance.restarted == note
    assert "60 transitions of scouting" in run.pretraining and run.num_results == 16
    # Moved chains start from draws of different chains, not from one network.
    assert len(np.unique(np.abs(model.posterior.draws[:, 0, 0]))) == 4


@pytest.mark.statistics
def test_a_basin_that_one_chain_found_is_said_to_be_so(starting):
    _, run = fit(restart="best", **starting(RIGHT, RIGHT, LEFT))
    assert "found by chain 2 alone" in " ".join(run.notes)


def test_chains_that_are_not_hopeless_stay(starting):
    model, run = fit(restart="best", **starting(LEFT, LEFT))
    assert "moved no chain" in " ".join(run.notes) and np.all(edges(model) < 0)


def test_a_scout_that_fails_is_named(starting, monkeypatch):
    scout = scouting.run_chains

    def failing(*arguments):
        return replace(scout(*arguments), failures={(1,): ArithmeticError("no number")})

    monkeypatch.setattr(scouting, "run_chains", failing)
    model, run = fit(restart="best", **starting(RIGHT, LEFT))
    expected = "moved no chain: chain 1 failed (ArithmeticError: no number) while scouting"
    assert expected in " ".join(run.notes) and expected in model.posterior.provenance.restarted


def test_what_cannot_be_weighed_is_not_restarted():
    spec = KINDS["recurrent"].model().spec
    with pytest.raises(ValueError, match="basins cannot be weighed: .* recurrent"):
        check_restart(spec, tfbnn.kernels.HMC())


@pytest.mark.parametrize("num_draws", [16, 200])
def test_chains_that_are_moved_start_apart_from_each_other(num_draws):
    """Also where one donor has fewer draws than there are chains to move."""
    spec = plain_spec([1, 2, 1], dtype="float64")
    draws = np.zeros((12, num_draws, spec.num_parameters))
    draws += np.arange(num_draws)[:, None]  # each draw is one number, which permuting leaves
    basins = Basins(
        labels=np.r_[0, np.ones(11, int)],
        log_evidence=np.array([0.0, -300.0]),
        log_evidence_stderr=np.full(2, 0.5),
        is_bridged=np.full(2, True),
        rhat_within=np.ones((2, 5, 1)),
        chain_weights=np.full(12, 1 / 12),
    )
    theta, _ = moved(spec, draws, np.r_[0.0, np.full(11, -300.0)], basins, 0)
    assert len(np.unique(np.abs(theta[1:, 0]))) == 11


def test_log_densities_judge_where_masses_are_not_known():
    def basins(bridged):
        return Basins(
            labels=np.array([0, 1, 2, 1]),
            log_evidence=np.array([0.0, -30.0, -300.0]),
            log_evidence_stderr=np.array([0.5, 0.5, 0.5]) if bridged else np.full(3, 400.0),
            is_bridged=np.full(3, bridged),
            rhat_within=np.ones((3, 5, 1)),
            chain_weights=np.full(4, 0.25),
        )

    log_prob = np.array([-30.0, 0.0, -300.0, -2.0])
    best, below = judged(basins(True), log_prob, 100)
    assert best == 0 and (below > 20.0).tolist() == [False, True, True, True]
    best, below = judged(basins(False), log_prob, 100)
    assert best == 1 and below.tolist() == [-71.0, -101.0, 199.0, -99.0]


def test_a_run_tells_of_no_other_draws_than_its_own(starting):
    chains = starting(LEFT, LEFT)
    model, run = fit(**chains)
    other, _ = fit(**chains | {"seed": 4})
    model._ensemble = other.posterior
    with pytest.raises(ValueError, match="as it was fitted anew"):
        run.basins()
    # Nor does one that has kept none, of a model that keeps its earlier posterior.
    run = model.fit_posterior(X[:, None], Y, **(RUN | chains), callbacks=[lambda event: True])
    assert run.num_results == 0
    with pytest.raises(tfbnn.NotFittedError):
        run.basins()


@pytest.mark.statistics
def test_a_run_folder_has_the_same_bits_and_says_the_same(starting, tmp_path):
    chains = starting(RIGHT, LEFT) | {"restart": "best"}
    expected, run = fit(**chains)
    found, _ = fit(output=tmp_path / "run", **chains)
    assert_same_draws(found, expected)
    loaded = tfbnn.load(tmp_path / "run")
    assert loaded.posterior.provenance.restarted == expected.posterior.provenance.restarted
    more, again = tfbnn.resume(tmp_path / "run", num_results=20, verbose=0)
    assert again.notes == run.notes
    np.testing.assert_array_equal(more.posterior.draws[:, :16], expected.posterior.draws)
    with pytest.raises(RunFolderError, match="restart is 'best' there and None here"):
        fit(output=tmp_path / "run", resume=True, **chains | {"restart": None})


@pytest.mark.parametrize(
    "options, message",
    [
        ({"restart": "worst"}, "restart must be one of"),
        ({"restart": "best", "num_chains": 1}, "received num_chains=1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        FitOptions(**options)


@pytest.mark.parametrize(
    "kernel, message",
    [
        (PowerPosterior(HMC(), num_temperatures=3), "ladder of power posteriors"),
        (lambda f: tfp.mcmc.HamiltonianMonteCarlo(f, 0.1, 2), "given as a callable"),
    ],
)
def test_kernels_that_cannot_scout_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        fit(restart="best", kernel=kernel)
