"""`tfbnn.sample`: draws of log densities of one's own, by every kernel, in memory and in folders."""

from dataclasses import dataclass

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbnn
from tests.support import densities
from tfbnn import kernels

OF_NETWORKS = {"repriorised", "truncated_mala"}
# Others have the posterior of a linear model in test_kernel_fits.py, by the same driver.
HERE = {"nuts", "mala", "power_posterior"}
HMC = kernels.HMC(num_leapfrog_steps=2)
BRIEF = dict(num_results=60, num_burnin_steps=40, verbose=0, jit_compile=False)
STARTS = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")

pytestmark = pytest.mark.filterwarnings("ignore::tfbnn.exceptions.VerdictWarning")


@pytest.fixture(scope="module")
def brief():
    return tfbnn.sample(densities.normal, STARTS, HMC, **BRIEF)


@pytest.fixture(scope="module")
def again():
    """(samples of a second run that differs in nothing that decides draws, what warned)."""

    def quantities(draws):
        return {"sum": draws.sum(axis=-1), "squares": draws[..., :2] ** 2}

    kernel = kernels.HMC(num_leapfrog_steps=2, preconditioner="gauss_newton")
    with pytest.warns(tfbnn.ConvergenceWarning) as caught:
        samples = tfbnn.sample(densities.normal, STARTS, kernel, quantities=quantities, **BRIEF)
    return samples, [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("nuts", marks=pytest.mark.statistics),
        pytest.param("power_posterior", marks=pytest.mark.statistics),
        pytest.param("mala", marks=pytest.mark.statistics),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in sorted({*kernels.available()} - OF_NETWORKS - HERE)
        ),
    ],
)
def test_kernels_find_the_moments_of_a_linear_model(name):
    """Means and variances of both coordinates: |z| < 4.3, which chance exceeds once in 10 000 runs."""
    kernel, num_results = name, 2000
    if name == "power_posterior":
        kernel = kernels.PowerPosterior(num_temperatures=6)
    if name in ("random_walk_metropolis", "pcn"):
        num_results = 10_000
    if name in ("underdamped_langevin", "microcanonical"):
        # Their bias falls with the step size, and has tests of its own.
        classes = {kernels.UnderdampedLangevin, kernels.Microcanonical}
        (kind,) = (one for one in classes if one.__name__.lower() == name.replace("_", ""))
        kernel = kind(adjusted=True)
    model = (densities.log_prior, densities.log_likelihood)
    samples = tfbnn.sample(
        model,
        np.zeros((6, 2)),
        kernel,
        num_results=num_results,
        num_burnin_steps=500,
        quantities=lambda draws: np.concatenate([draws, draws**2], axis=-1),
        jit_compile=name != "mala",
        verbose=0,
    )
    mean, stddev, evidence = densities.posterior_moments()
    summary = samples.summary
    exact = np.concatenate([mean, stddev**2 + mean**2])
    assert np.all(summary["rhat"] < 1.01) and np.all(summary["bulk_ess"] > 1000)
    assert np.all(np.abs(summary["mean"] - exact) < 4.3 * summary["mcse"])
    assert samples.verdict.startswith("the chains agree")
    if name == "power_posterior":
        found = samples.log_evidence.stepping_stone
        assert abs(found.value - evidence) < 4.3 * found.stderr


def test_samples_say_what_they_are(brief):
    assert brief.draws.shape == (4, 60, 3) and brief.draws.dtype == np.float32
    assert all(values.shape == (4, 60) for values in brief.sample_stats.values())
    lp = densities.normal(tf.constant(brief.draws[:, -1])).numpy()
    np.testing.assert_allclose(brief.sample_stats["lp"][:, -1], lp, rtol=1e-4, atol=1e-4)
    assert brief.num_gradients["sampling"].tolist() == [120] * 4
    assert "diagonal, because a log density has no Gauss-Newton matrix" in brief.report()
    assert "theta[2]" in brief.report() and "HMC" in repr(brief)
    assert not brief.verdict.startswith("the chains agree"), "60 draws are too few"


def test_the_same_seed_gives_the_same_bits(brief, again):
    assert again[0].draws.tobytes() == brief.draws.tobytes()


@pytest.mark.statistics
def test_chains_of_a_group_and_groups_have_random_numbers_of_their_own(monkeypatch):
    """Five chains in two chain groups, of two and three."""
    monkeypatch.setattr("tfbnn.engine.sampling.program.num_cores", lambda: 2)
    samples = tfbnn.sample(densities.normal, np.repeat(STARTS[:1], 5, axis=0), HMC, **BRIEF)
    assert len(np.unique(samples.draws[:, -1, 0])) == 5


@pytest.mark.statistics
def test_a_function_is_compiled_anew_with_what_it_has_captured():
    centre = 0.0

    @dataclass
    class Density:  # which has no hash
        def __call__(self, x):
            return -0.5 * tf.reduce_sum((x - centre) ** 2, axis=-1)

    first = tfbnn.sample(Density(), STARTS, HMC, **BRIEF)
    centre = 100.0
    second = tfbnn.sample(Density(), STARTS + 100.0, HMC, **BRIEF)
    assert abs(first.draws.mean()) < 1.0 and abs(second.draws.mean() - 100.0) < 1.0


@pytest.mark.statistics
def test_a_likelihood_without_a_gradient_somewhere_has_its_evidence():
    """A shell, whose gradient at zero is not a number; the integral over the radius by quadrature."""

    def shell(x):
        return -0.5 * ((tf.norm(x, axis=-1) - 2.0) / 0.3) ** 2

    radius = np.linspace(0.0, 12.0, 200_001)
    density = radius * np.exp(-0.5 * radius**2 - 0.5 * ((radius - 2.0) / 0.3) ** 2)
    exact = np.log(np.sum(density) * (radius[1] - radius[0]))
    samples = tfbnn.sample(
        (densities.log_prior, shell),
        np.ones((4, 2)),
        kernels.PowerPosterior("hmc", num_temperatures=8),
        num_results=1000,
        num_burnin_steps=300,
        verbose=0,
    )
    found = samples.log_evidence.stepping_stone
    assert found.stderr < 0.1 and abs(found.value - exact) < 4.3 * found.stderr


def test_draws_that_disagree_are_warned_of(again):
    assert any("Not yet: ESS" in message for message in again[1])


def test_quantities_have_names_and_decide(again):
    samples, _ = again
    assert samples.summary["name"].tolist() == ["sum", "squares[0]", "squares[1]"]
    assert samples.rhat["sum"].shape == () and samples.ess["squares"].shape == (2,)
    np.testing.assert_array_equal(samples.quantities["sum"], samples.draws.sum(axis=-1))
    data = samples.to_arviz()
    assert {"theta", "sum", "squares"} <= set(data["posterior"].data_vars)
    assert data["sample_stats"]["lp"].shape == (4, 60)


def test_a_kernel_of_ones_own_samples():
    def kernel(target):
        return tfp.mcmc.HamiltonianMonteCarlo(target, step_size=0.1, num_leapfrog_steps=3)

    samples = tfbnn.sample(densities.normal, STARTS, kernel, **BRIEF)
    assert samples.draws.std(axis=1).min() > 0


@pytest.mark.statistics
def test_until_ends_a_run_with_the_first_draws_of_a_longer_one():
    numbers = BRIEF | dict(num_results=400, num_burnin_steps=200)
    long = tfbnn.sample(densities.normal, STARTS, HMC, **numbers)
    short = tfbnn.sample(
        densities.normal, STARTS, HMC, until=tfbnn.Until(ess=20, rhat=1.5), **numbers
    )
    assert short.num_results in (100, 200) and "ESS" in short.ended
    assert short.verdict.startswith("the chains agree")
    assert short.draws.tobytes() == long.draws[:, : short.num_results].tobytes()


def test_a_run_in_a_folder_goes_on_as_if_nothing_had_been(tmp_path, brief):
    stops = dict(callbacks=[lambda event: True], commit_interval=0)
    folder = dict(output=tmp_path / "run", kernel=HMC)
    first = tfbnn.sample(densities.normal, STARTS, **folder, **stops, **BRIEF)
    assert first.num_results < 60
    with pytest.raises(tfbnn.RunFolderError, match="resume=True"):
        tfbnn.sample(densities.normal, STARTS, **folder, **BRIEF)
    whole = tfbnn.sample(densities.normal, STARTS, **folder, resume=True, **BRIEF)
    assert whole.draws.tobytes() == brief.draws.tobytes()
    finished = tfbnn.sample(densities.normal, STARTS, **folder, resume=True, **BRIEF)
    assert finished.draws.tobytes() == brief.draws.tobytes()


def test_draws_are_kept_when_the_folder_cannot_say_why_the_run_ended(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr("tfbnn.run.stores.take_down_end", fail)
    settings = BRIEF | dict(num_results=400, until=tfbnn.Until(ess=5, rhat=3.0))
    with pytest.warns(tfbnn.RunFolderWarning, match="why it ended: no space left"):
        found = tfbnn.sample(densities.normal, STARTS, HMC, output=tmp_path / "run", **settings)
    assert found.ended is not None and found.num_results < 400


@pytest.mark.statistics
def test_a_density_that_is_alike_at_the_starts_alone_is_refused(tmp_path):
    width = tf.Variable(1.0)

    def log_prob(x):
        return -0.5 * tf.reduce_sum((x / width) ** 2, axis=-1)

    folder = dict(output=tmp_path / "run", kernel=HMC)
    tfbnn.sample(log_prob, np.zeros((2, 2), "float32"), **folder, **BRIEF)
    width.assign(2.0)
    with pytest.raises(tfbnn.RunFolderError, match="at the last draws"):
        more = BRIEF | dict(num_results=70)
        tfbnn.sample(log_prob, np.zeros((2, 2), "float32"), **folder, resume=True, **more)


def test_a_steep_density_far_from_zero_goes_on_in_float32(tmp_path):
    def log_prob(x):
        return -0.5 * tf.reduce_sum(((x - 91.188) / 0.002) ** 2, axis=-1)

    starts = np.full((2, 2), 91.188, "float32")
    folder = dict(
        output=tmp_path / "run", kernel=kernels.HMC(step_size=0.0005, num_leapfrog_steps=3)
    )
    first = tfbnn.sample(log_prob, starts, **folder, **BRIEF)
    again = tfbnn.sample(log_prob, starts, **folder, resume=True, **BRIEF)
    assert again.draws.tobytes() == first.draws.tobytes()


def test_a_run_does_not_go_on_with_another_density(tmp_path):
    scale = tf.Variable(1.0)

    def log_prob(x):
        return -0.5 * tf.reduce_sum((x / scale) ** 2, axis=-1)

    folder = dict(output=tmp_path / "run", kernel=HMC)
    tfbnn.sample(log_prob, STARTS, **folder, **BRIEF)
    scale.assign(2.0)
    more = BRIEF | dict(num_results=70)
    with pytest.raises(tfbnn.RunFolderError, match="not the one that the run was begun with"):
        tfbnn.sample(log_prob, STARTS, **folder, resume=True, **more)
    with pytest.raises(tfbnn.RunFolderError, match="spec.log_density is"):
        tfbnn.sample(densities.normal, STARTS, **folder, resume=True, **more)
    with pytest.raises(tfbnn.RunFolderError, match="holds draws of a log density"):
        tfbnn.load(tmp_path / "run")
    with pytest.raises(tfbnn.RunFolderError, match="holds draws of a log density"):
        tfbnn.resume(tmp_path / "run")


def log_of(x):
    return tf.reduce_sum(tf.math.log(x), axis=-1)


NO_DENSITY = [
    (None, TypeError, "must be a function"),
    ((densities.normal,), TypeError, "must be a function"),
    (lambda x: -tf.reduce_sum(x**2), ValueError, "received shape []"),
    (lambda x: -(x**2), ValueError, "received shape [4, 3]"),
    (lambda x: -np.sum(x.numpy() ** 2, axis=-1), TypeError, "received ndarray"),
    (lambda x: tf.constant(np.sum(x, axis=-1)), TypeError, "found no gradient"),
    (lambda x: tf.cast(tf.reduce_sum(x, axis=-1), tf.int32), TypeError, "floating point"),
    (lambda x: x[:, 0] - tf.reduce_mean(x), ValueError, "treat chains independently"),
    (lambda x: tf.reduce_sum(x**2) + 0.0 * x[:, 0], ValueError, "treat chains independently"),
]
UNUSABLE = [
    (dict(quantities=lambda draws: draws.mean()), "must make arrays of numbers [4, 1] + [...]"),
    (dict(quantities=lambda draws: {"theta": draws[..., 0]}), "must not have the names"),
    (dict(initial_state=STARTS[0]), "must have shape [C, P]"),
    (
        dict(initial_state=np.full((2, 3), np.nan)),
        "must be finite, received nan for chain 0, coord",
    ),
    (dict(initial_state=np.zeros((0, 3))), "must have shape [C, P]"),
    (dict(kernel="repriorised"), "Repriorised is about networks"),
    (dict(kernel="truncated_mala"), "TruncatedMALA is about networks"),
    (
        dict(kernel=kernels.SMMALA(metric="gauss_newton")),
        "a log density has no Gauss-Newton matrix. Use",
    ),
    (dict(kernel="power_posterior"), "must be a pair (log_prior, log_likelihood)"),
    (dict(kernel="hcm"), "Did you mean"),
]
REFUSED = [
    (
        dict(log_prob=(lambda x: tf.constant(-np.sum(x**2, axis=-1)), densities.normal)),
        TypeError,
        "log_prior must depend on its argument",
    ),
    (
        dict(
            log_prob=(
                lambda x: tf.constant(np.where(np.all(np.abs(x) <= 1, axis=-1), 0.0, -np.inf)),
                densities.normal,
            )
        ),
        TypeError,
        "log_prior must depend on its argument",
    ),
    *((dict(log_prob=log_prob), error, words) for log_prob, error, words in NO_DENSITY),
    *((given, ValueError, words) for given, words in UNUSABLE),
    (
        dict(log_prob=log_of, initial_state=np.array([[1.0, 1.0], [1.0, -1.0]])),
        tfbnn.StartError,
        "chain 1 starts",
    ),
]


@pytest.mark.parametrize(("given", "error", "words"), REFUSED)
def test_what_cannot_be_sampled_is_refused_before_the_run(given, error, words):
    usual = dict(log_prob=densities.normal, initial_state=np.zeros_like(STARTS), kernel=HMC)
    with pytest.raises(error) as raised:
        tfbnn.sample(**(BRIEF | usual | given))
    assert words in str(raised.value)


def test_the_prior_may_be_flat_in_a_box():
    def box(x):
        is_inside = tf.reduce_all(tf.abs(x) <= 1.0, axis=-1)
        return tf.where(is_inside, tf.constant(-np.log(8.0), x.dtype), -np.inf)

    starts = np.random.default_rng(1).uniform(-1.0, 1.0, size=(4, 3)).astype("float32")
    samples = tfbnn.sample((box, densities.normal), starts, HMC, **BRIEF)
    assert np.abs(samples.draws).max() <= 1.0 and np.ptp(samples.draws) > 1.0


def test_whitening_falls_back_in_words(again):
    assert again[0].geometry == "diagonal, because a log density has no Gauss-Newton matrix"
