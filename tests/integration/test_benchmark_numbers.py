"""Numbers that the benchmark scripts compute by themselves, against others; and what they refuse."""

import importlib
import subprocess
import sys
import types
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import integrate, stats

import tfbnn
from tests.support.benchmarks import FOLDER

pytestmark = pytest.mark.benchmarks


def test_quick_results_need_a_folder_of_their_own():
    with pytest.raises(SystemExit, match="--output"):
        importlib.import_module("benchmarks.studies.relu_inefficiency.run").main(["--quick"])


def test_the_gpu_script_refuses_what_it_does_not_know():
    done = subprocess.run(
        ["bash", f"{FOLDER}/gpu.sh", "1", "x", "--slow"], capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stderr.startswith("usage: benchmarks/gpu.sh 1|2|3 FOLDER")


def test_a_child_that_fails_says_why():
    from benchmarks.lib import resident

    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        resident.ended_child(["-c", "1 / 0"])
    with (
        resident.Resident("studies/cross_validation/folds.py") as child,
        pytest.raises(RuntimeError, match="IndexError"),
    ):
        child.ask("anything")


def test_what_xla_logs_is_read():
    from benchmarks.lib.xla_log import compilations

    log = (
        "I0000 00:00:1.2  7 device_compilation_profiler.cc:113] Compiled __inference_value_and_"
        "gradient_17700[_XlaMustCompile=true] 1 times, compile time: 473490 us, cumulative: 473490 "
        "us (0 us / 473 ms)\nI0000 device_compilation_profiler.cc:113] Compiled __inference_block_9 2"
        " times, compile time: 2000000 us, cumulative: 3000000 us\n"
    )
    assert compilations(log) == [("value_and_gradient", pytest.approx(0.47349)), ("block", 2.0)]


def test_the_exact_evidence_of_the_linear_models():
    """By the covariance of the targets, and by a rule of another kind over the noise scale."""
    from benchmarks.studies.evidence import run as evidence

    known, learned = evidence.Case(30, 2, learned=False), evidence.Case(30, 2)
    x, y = known.rows(0)
    design = np.column_stack([x, np.ones(30)])

    def log_density(scale):
        covariance = scale**2 * np.eye(30) + design @ design.T
        return stats.multivariate_normal.logpdf(y, np.zeros(30), covariance)

    level = log_density(0.1)
    np.testing.assert_allclose(evidence.exact(known, x, y), level, rtol=1e-10)
    area, _ = integrate.quad(
        lambda scale: np.exp(log_density(scale) - level) * stats.halfnorm.pdf(scale),
        0.02,
        1.0,
        points=[0.1],
    )
    np.testing.assert_allclose(evidence.exact(learned, x, y), level + np.log(area), rtol=1e-7)


def test_rivals_of_hmc_have_the_density_of_the_package():
    """But for a constant; else their speeds would mean nothing."""
    from benchmarks.lib.hmc_rivals import log_densities
    from benchmarks.lib.timed_groups import TimedGroups, random_rows, start

    layers = [5, 3, 4, 2]
    x, y = random_rows(layers, 30)
    program = TimedGroups(layers, x, y, jit_compile=False).groups[0].program
    points = start(program.spec.layout.num_parameters, 2)
    here, there = program.value_and_gradient(points)[0]
    rivals = log_densities(layers, x, y)
    assert "tfp.mcmc" in rivals
    for log_density in rivals.values():
        difference = float(log_density(points[0])) - float(log_density(points[1]))
        np.testing.assert_allclose(difference, here - there, rtol=1e-4)


def test_rivals_of_small_networks_sample_the_same_posterior():
    from benchmarks.lib.class_problems import XOR
    from benchmarks.studies.small_network_speed.rivals import samplers

    x, y = XOR
    starts = np.random.default_rng(0).normal(size=(50, 9)).astype(np.float32)
    means = [
        np.mean(run()[500:] ** 2, axis=(0, 1))
        for run in samplers(x, y[:, None], starts, 0.5, 3000).values()
    ]
    assert len(means) >= 2
    for found in means[1:]:
        np.testing.assert_allclose(found, means[0], rtol=0.06)


@pytest.mark.parametrize("log", [False, True])
def test_scores_of_rivals(log):
    """A mixture of two normals far from each other, by the integral over its distribution function."""
    from benchmarks.lib.default_scores import TargetSpace, mixture_scores

    location, scale = np.array([[-2.0] * 4, [1.0] * 4]), np.array([[0.5] * 4, [1.5] * 4])
    centres, widths = 0.3 + 0.1 * location, 0.1 * scale
    t = 0.3 + 0.1 * np.array([-3.0, -1.0, 0.2, 4.0])
    # A grid that is even in t, of which targets are a function.
    grid = np.linspace(-4.0, 4.0, 60_001)[:, None]
    y, values = (10.0**t, 10.0 ** grid[:, 0]) if log else (t, grid[:, 0])
    found = mixture_scores(TargetSpace(log, 0.3, 0.1), location, scale, y)
    below = stats.norm.cdf(grid[..., None], centres[:, 0], widths[:, 0]).mean(axis=-1)
    crps = np.trapezoid((below - (grid >= t)) ** 2, values, axis=0)
    np.testing.assert_allclose(found["crps"], crps.mean(), rtol=0.01)
    density = stats.norm.pdf(t, centres, widths).mean(axis=0) / (y * np.log(10.0) if log else 1.0)
    np.testing.assert_allclose(found["lpd"], np.log(density).mean(), rtol=1e-9)
    np.testing.assert_allclose(found["lpd_groups"], np.log(density), atol=1e-6)
    middle = (10.0**centres if log else centres).mean(axis=0)
    np.testing.assert_allclose(found["rmse"], np.sqrt(np.mean((y - middle) ** 2)), rtol=1e-9)
    # The standard deviation, before the scale, is the root of 2.25 + 1.25, and the mean is -0.5.
    assert found["coverage"] == [0.5, 0.75]


def test_the_calibration_error_of_rivals_is_that_of_evaluate():
    from benchmarks.lib.default_scores import class_scores
    from tfbnn.posterior.metrics import expected_calibration_error

    generator = np.random.default_rng(0)
    probabilities = generator.dirichlet(np.ones(3), 200)
    labels = generator.integers(3, size=200)
    found = class_scores(probabilities, labels)
    confidence = probabilities.max(axis=1, keepdims=True)
    correct = (probabilities.argmax(axis=1) == labels)[:, None]
    expected = expected_calibration_error(confidence, correct).item()
    np.testing.assert_allclose(found["ece"], expected, rtol=1e-9)
    assert found["accuracy"] == correct.mean()


def made_up(method, lpd, table="airfoil", splits=5, **more):
    """Rows of the default's comparison, split by split, with a log density that grows."""
    common = {"table": table, "seed": 0, "plain": False, "hidden": [], "method": method}
    common |= {"wall": 100.0, "processor": 150.0, "load_before": 0.0, "commit": "c"}
    common |= {"rmse": 1.0, "crps": 0.5, "coverage": [0.7, 0.94]}
    if method == "default":
        common["verdict"] = "usable for error bars"
    densities = [lpd + 0.1 * split for split in range(splits)]
    return [
        {"key": f"{method} {split}", "split": split, "lpd": value, "lpd_groups": [value] * 20}
        | common
        | more
        for split, value in enumerate(densities)
    ]


def judged(*rows):
    """Dict bar -> (found, met)."""
    from benchmarks.studies.default.bars import bars

    return {bar: (found, met) for bar, found, met in bars([*rows])}


def test_bars_of_the_default():
    """Made-up rows: level with the best rival or not, on the splits that they share; fits that fail are none."""
    rivals = made_up("ridge", -3.0) + made_up("gp", -1.5) + made_up("bde", -0.5)[2:3]
    level, ridge = (
        "airfoil: LPD at most 0.02 + 2 se below the best rival",
        "no default fit with an LPD below that of ridge regression",
    )
    behind = "LPD never more than 0.1 + 2 se below the best rival"
    for lpd, text, met in (
        (-0.51, "-0.010 +- 0.000 against bde", ("yes", "yes", "yes")),
        (-1.0, "-0.500 +- 0.000 against bde", ("no", "no", "yes")),
        (-3.5, "-3.000 +- 0.000 against bde", ("no", "no", "no")),
    ):
        found = judged(*made_up("default", lpd, pit=[10] * 100, num_rows=1000), *rivals)
        assert found[level][0] == text
        assert tuple(found[bar][1] for bar in (level, behind, ridge)) == met
        assert found["airfoil: PIT-KS at most 0.03 + 0.87 / sqrt(n)"][1] == "yes"
    assert found["airfoil: RMSE at most 0.95"] == ("1", "no")
    assert found["concrete: LPD at least -2.62"] == ("", "not measured")
    skewed = judged(*made_up("default", 0.0, pit=[0] * 50 + [20] * 50))
    assert skewed["airfoil: PIT-KS at most 0.03 + 0.87 / sqrt(n)"] == (
        "0.500, the limit is 0.042",
        "no",
    )
    ours = made_up("default", -0.4)
    late = {name: ours[2][name] for name in ("key", "table", "split", "method", "seed", "hidden")}
    late |= {"plain": False, "commit": "c", "load_before": 0.0, "failed": "not done after 900 s"}
    for failed in (late, ours[2] | {"lpd": float("nan")}):
        found = judged(*ours[:2], failed, *ours[3:], *rivals)
        assert found[level] == ("1 of 5 fits failed", "no")
        assert found[behind] == ("inf + 2 se below, on airfoil", "no")
        assert found[ridge] == ("1 of 5 below; smallest difference -inf (default 2)", "no")


@pytest.mark.parametrize(
    "name, row, value",
    [
        ("wing", [174, 252, 7.52, 0, 34, 0.672, 0.12, 3.8, 2000, 0.064], 233.908 + 174 * 0.064),
        ("buckling", [0.8, 1, 2, 3], 3 * np.pi / 1.6**2),
        ("borehole", [0.1, 25050, 89335, 1050, 89.55, 760, 1400, 10950], 70.8729),
    ],
)
def test_formulas_of_functions(name, row, value):
    """The wing of a Cessna without paint weighs 233.9 pounds."""
    from benchmarks.studies.functions.run import FUNCTIONS, rows_of

    function = FUNCTIONS[name]
    assert abs(function.value(np.array([row]))[0] / value - 1.0) < 1e-3
    (x, y), (x_test, y_test) = rows_of(function, 24, 0)
    assert x.shape == (24, len(row)) and len(x_test) == len(y_test) == 5000
    columns = [column for column in range(len(row)) if column not in function.levels]
    assert np.all((x > function.low) & (x < function.high), axis=0)[columns].all()
    assert all(set(x[:, column]) == set(levels) for column, levels in function.levels.items())


def test_the_probabilities_of_digits():
    """Against the densities of all ten codes under the noise of each network."""
    from benchmarks.studies.digits_networks import scores
    from benchmarks.studies.digits_networks.chains import digits, targets

    _, (images, labels) = digits()
    generator = np.random.default_rng(0)
    outputs = targets(labels) + 0.3 * generator.normal(size=(1, 3, len(labels), 10))
    codes = targets(np.arange(10))
    densities = stats.norm.pdf(codes, outputs[0][:, :, None], 0.1).prod(axis=-1)
    probabilities = (densities / densities.sum(axis=-1, keepdims=True)).mean(axis=0)
    expected = np.log(probabilities[np.arange(len(labels)), labels]).mean()
    found = scores.scores(outputs)
    assert found["log_predictive_density"] == pytest.approx(expected, rel=1e-6)
    assert found["accuracy"] == np.mean(probabilities.argmax(axis=1) == labels)
    assert len(images) == 1797 - 256


def test_the_gradient_and_the_copies_of_xor():
    from benchmarks.studies.xor_descent import run as xor_descent

    theta = np.random.default_rng(0).normal(size=(8, 9))
    step = 1e-6 * np.eye(9)
    numerical = [(xor_descent.loss(theta + h) - xor_descent.loss(theta - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(xor_descent.gradient(theta).T, numerical, atol=1e-8)
    # A copy of the same network, and the same copy whichever it was.
    copy = xor_descent.canonical(theta)
    np.testing.assert_allclose(xor_descent.outputs(copy), xor_descent.outputs(theta))
    exchanged = theta[:, [1, 0, 3, 2, 5, 4, 7, 6, 8]]
    np.testing.assert_allclose(xor_descent.canonical(exchanged), copy)


@pytest.mark.slow
def test_the_wrapper_of_scoringbench_hands_over_quantiles(monkeypatch):
    """A stand-in for its base class is used, because ScoringBench cannot be installed.

    Run it after a change of the wrapper or of the estimators, which have tests of their own.
    """
    base = types.ModuleType("scoringbench.univariate.wrappers.base")

    class ProbabilisticWrapper:
        def _set_train_range(self, y):
            self._y_train_range = (np.nanmin(y), np.nanmax(y))

    class DistributionPrediction:
        from_multi_quantile = staticmethod(lambda q, alphas, **more: (q, alphas, more))

    base.ProbabilisticWrapper = ProbabilisticWrapper
    base.DistributionPrediction = DistributionPrediction
    for name in ("scoringbench", "scoringbench.univariate", "scoringbench.univariate.wrappers"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, base.__name__, base)
    wrapper = importlib.import_module("benchmarks.studies.scoringbench.wrapper").TfbnnWrapper(
        num_results=20, num_burnin_steps=20, pretraining=None, until=None, jit_compile=False
    )
    # A network that is given; which is chosen here would take a minute.
    monkeypatch.setattr(tfbnn, "BayesianMLP", partial(tfbnn.BayesianMLP, [3, 3, 1]))
    generator = np.random.default_rng(0)
    x = generator.normal(size=(120, 2))
    y = x[:, 0] + 0.3 * generator.normal(size=120)
    y[5], x[7, 1] = np.nan, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit is short
        q, alphas, more = wrapper.fit(x, y).predict_distribution(x[:9])
    assert q.shape == (9, len(alphas)) and np.all(np.diff(q, axis=1) > 0)
    assert more["train_range"] == (np.nanmin(y), np.nanmax(y))
    np.testing.assert_array_equal(more["mean"], wrapper.predict(x[:9]))
