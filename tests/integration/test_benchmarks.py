"""The benchmark scripts, with --quick: they run, and what they keep is sane."""

import importlib
import re
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest

from tests.support.benchmarks import FOLDER

pytestmark = pytest.mark.benchmarks
# Scripts that do little but time, for half a minute each: after a change of theirs, run them by
# `pytest -m slow tests/integration/test_benchmarks.py`.
TIMES_ALONE = pytest.mark.slow
# And of a study with several scripts CI runs one: default for default fits, grid_search for programs
# that fits share, calibration.py for calibrated bars; kills are in tests/durability, evidences in
# tests/kernels.
ANOTHER_OF_ITS_STUDY = pytest.mark.slow


def test_quick_results_need_a_folder_of_their_own():
    with pytest.raises(SystemExit, match="--output"):
        importlib.import_module("benchmarks.studies.relu_inefficiency.run").main(["--quick"])


@pytest.mark.parametrize("arguments", [["4", "x", "--quick"], ["1", "x", "--slow"], ["1"]])
def test_the_gpu_script_refuses_what_it_does_not_know(arguments):
    done = subprocess.run(["bash", f"{FOLDER}/gpu.sh", *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("usage: benchmarks/gpu.sh 1|2|3 FOLDER")


@ANOTHER_OF_ITS_STUDY
def test_other_tables(run_quickly):
    table, _ = run_quickly("other_tables", "--methods", "default", "ridge")
    (line,) = (line for line in table.splitlines() if line.startswith("| few rows | 45, 1 |"))
    cells = [cell.strip() for cell in line.split("|")]
    ours, ridge = (float(cell.strip("*")) for cell in cells[7:9])
    assert ours > ridge and cells[7].startswith("**")


@ANOTHER_OF_ITS_STUDY
def test_limits(run_quickly):
    table, (row,) = run_quickly("limits")
    assert np.prod(row["draws"]) > 0 and np.isfinite(row["lpd"])
    assert "| README's example | 50 | 60 |" in table


@ANOTHER_OF_ITS_STUDY
def test_scale_prior(run_quickly):
    table, rows = run_quickly("scale_prior", "--tables", "few rows")
    (line,) = (line for line in table.splitlines() if line.startswith("| few rows | 1 |"))
    assert [row["scale"] for row in rows] == [1.0, 3.0, 10.0]
    assert all(f"{row['lpd']:.3f} ({row['rmse']:.4g}; " in line for row in rows)


@TIMES_ALONE
def test_small_network_speed(run_quickly):
    table, _ = run_quickly("small_network_speed")
    for name in ("fit_posterior", "compiled block", "TFP MALA", "NumPy", "parameters x rows"):
        assert name in table
    assert "nan" not in table


def test_grid_search(run_quickly):
    table, _ = run_quickly("grid_search")
    (line,) = (line for line in table.splitlines() if line.startswith("| grid search"))
    _, _, fits, *_, programs, _, _, outcome, _ = (cell.strip() for cell in line.split("|"))
    # Two settings in two folds, and the best once more; folds and numbers of chains share a program.
    assert fits == "5" and programs == "2" and "R2" in outcome


def test_rivals_sample_the_same_posterior():
    """Else their speeds would mean nothing."""
    import numpy as np

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


@TIMES_ALONE
def test_prediction(run_quickly, tmp_path):
    table, _ = run_quickly("prediction")
    for title in ("NumPy / XLA", "h5py alone", "empty interpreter"):
        assert title in table
    assert "nan" not in table
    assert (tmp_path / "prediction_load.png").stat().st_size > 5_000


@ANOTHER_OF_ITS_STUDY
def test_evidence(run_quickly):
    table, rows = run_quickly("evidence")
    assert "| N 200, D 5, noise learned, prior 1, 10 rungs | 2 |" in table and "nan" not in table
    for row in rows:
        stones = row["evidence"]["stepping_stone"]
        assert abs(stones["value"] - row["exact"]) < 5 * stones["stderr"]
        known = "noise known" in row["case"]
        assert (row["evidence"]["thermodynamic"]["value"] is not None) == known


def test_the_exact_evidence_of_the_linear_models():
    """By the covariance of the targets, and by a rule of another kind over the noise scale."""
    from scipy import integrate, stats

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


@ANOTHER_OF_ITS_STUDY
def test_faults(run_quickly):
    table, rows = run_quickly("faults")
    failures = {row["key"]: row["failures"] for row in rows}
    assert failures.pop("naive writer, killed") > 0
    assert set(failures.values()) == {0}
    for name in ("one bit flipped", "full disk", "killed: mid-checkpoint"):
        assert name in failures and name in table


@ANOTHER_OF_ITS_STUDY
def test_memory(run_quickly):
    table, _ = run_quickly("memory")
    assert "5451 weights" in table
    counts = [int(count) for count in re.findall(r"^\| (\d+) \|", table, re.M)]
    assert counts == sorted(set(counts)) and counts[-1] == 2000


@TIMES_ALONE
def test_cpu_gpu(run_quickly, tmp_path):
    table, _ = run_quickly("cpu_gpu")
    for title in ("| products ms | tanh ms | limit ms |", "XLA / limit", "tfbnn / tfp.mcmc"):
        assert title in table
    assert "nan" not in table and "GFLOP/s" in table
    assert (tmp_path / "cpu_gpu.png").stat().st_size > 10_000


@TIMES_ALONE
def test_whitening_cost(run_quickly):
    table, _ = run_quickly("whitening_cost")
    assert "| 5-50-1 | 351 | 1600 |" in table and "nan" not in table


@TIMES_ALONE
def test_gradient_cost(run_quickly):
    pytest.importorskip("blackjax")
    table, _ = run_quickly("gradient_cost")
    assert table.count("| 5-20-20-1 |") == 2 and "nan" not in table


def test_rivals_of_hmc_have_the_density_of_the_package():
    import numpy as np

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


def test_gradient_cost_has_the_density_of_the_package():
    pytest.importorskip("jax")
    import numpy as np

    import tfbnn
    from benchmarks.lib.blocks import make_group
    from benchmarks.lib.hmc_rivals import jax_log_density
    from benchmarks.lib.timed_groups import KERNEL, random_rows, start

    layers = [5, 3, 1]
    x, y = random_rows(layers, 30)
    spec = tfbnn.BayesianMLP(
        layers, prior=tfbnn.priors.Normal(1.0), x_transform=None, y_transform=None
    ).spec
    points = start(spec.layout.num_parameters, 2)
    group, _ = make_group(spec, KERNEL, x, y, points, 1, 1, jit_compile=False)
    here, there = group.program.value_and_gradient(points)[0]
    theirs = jax_log_density(layers, x, y, learned=True)
    difference = float(theirs(points[0])) - float(theirs(points[1]))
    np.testing.assert_allclose(difference, here - there, rtol=1e-4)


@TIMES_ALONE
def test_row_pieces(run_quickly):
    table, _ = run_quickly("row_pieces")
    assert re.search(r"^\| 5-4-1 \| 2000 \| 1 \|.*\| the same \|$", table, re.M)


@TIMES_ALONE
def test_rows(run_quickly):
    table, _ = run_quickly("rows")
    lines = re.findall(r"^\| 5-4-1 \| (\d) \| (\d+) \|", table, re.M)
    assert lines == [("1", "1000"), ("1", "2000"), ("4", "1000"), ("4", "2000")]
    assert "growth, MB" in table and "nan" not in table


def test_blas_threads(run_quickly):
    table, _ = run_quickly("blas_threads")
    assert re.search(r"\| default \| float32 \| 50 x 125 x 6 \| .* \| 0 of \d+ \|$", table, re.M)
    assert re.search(r"predictions .*: default 0 of [1-9]\d*", table)


@ANOTHER_OF_ITS_STUDY
def test_cross_validation(run_quickly):
    table, _ = run_quickly("cross_validation")
    (programs,) = re.findall(r"two folds \| (\d+) \|", table)
    # XLA's log was understood: no fold can do without the block of a run.
    assert int(programs) >= 1 and "block" in table


@TIMES_ALONE
def test_thread_bits(run_quickly):
    table, _ = run_quickly("thread_bits")
    found = re.findall(r"\| (density|gradient|HMC|NUTS) \|( [0-9a-f]{8} \|)+ the same \|", table)
    assert [what for what, _ in found] == ["density", "gradient", "HMC", "NUTS"]


def test_prompt_blocks(run_quickly):
    table, _ = run_quickly("prompt_blocks")
    ((blocks, seconds, transitions, gradients),) = re.findall(
        r"10 \+ 10 \| (\d+) \| ([\d.]+) \| [\d.]+ \| (\d+) \| (\d+) \|", table
    )
    assert int(blocks) >= 3 and float(seconds) < 10.0
    assert int(gradients) >= int(transitions) >= 1 and "none" not in table


@TIMES_ALONE
def test_core_pairs(run_quickly):
    """With this checkout on both sides."""
    table, _ = run_quickly("core_pairs", "--old", str(FOLDER.parent))
    for name in ("| 5-4-1 | 1 |", "| 5-4-1 | 4 |", "inside XLA's compiler", "processor time"):
        assert name in table
    assert "block" in table and "nan" not in table


def test_what_xla_logs_is_read():
    from benchmarks.lib.xla_log import compilations

    log = (
        "I0000 00:00:1.2  7 device_compilation_profiler.cc:113] Compiled __inference_value_and_"
        "gradient_17700[_XlaMustCompile=true] 1 times, compile time: 473490 us, cumulative: 473490 "
        "us (0 us / 473 ms)\nI0000 device_compilation_profiler.cc:113] Compiled __inference_block_9 2"
        " times, compile time: 2000000 us, cumulative: 3000000 us\n"
    )
    assert compilations(log) == [("value_and_gradient", pytest.approx(0.47349)), ("block", 2.0)]


def test_a_child_that_fails_says_why():
    from benchmarks.lib import resident

    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        resident.ended_child(["-c", "1 / 0"])
    with (
        resident.Resident("studies/cross_validation/folds.py") as child,
        pytest.raises(RuntimeError, match="IndexError"),
    ):
        child.ask("anything")


def test_calibration(run_quickly, tmp_path):
    arguments = ["--tables", "wave", "--runs", str(tmp_path / "runs")]
    table, (row,) = run_quickly("calibration", *arguments)
    assert "| wave, 0 | posterior |" in table and "nan" not in table
    assert abs(row["split"]["coverage"][0] - 0.683) < 0.1


@ANOTHER_OF_ITS_STUDY
def test_pops(run_quickly, tmp_path):
    arguments = ["--tables", "wave", "--runs", str(tmp_path / "runs")]
    table, (row,) = run_quickly("pops", *arguments)
    assert "| misfit; all weights |" in table and "nan" not in table
    assert len(row["scales"]) == 19
    for found in row["scales"].values():
        assert abs(found["split"]["coverage"][0] - 0.683) < 0.1


@pytest.mark.slow  # what it holds of these models tests/unit/engine/keras holds of others
def test_keras_models(run_quickly):
    table, _ = run_quickly("keras_models")
    lines = {line.split(" | ")[0][2:]: line.split(" | ") for line in table.splitlines()}
    assert lines["Keras, a plain stack"][1:5] == ["0.0e+00"] * 4
    of_density32, _, of_density64, _ = map(float, lines["Keras, subclassed"][1:5])
    assert of_density32 < 1e-6 and of_density64 < 1e-12
    assert lines["recurrent"][2] == "no" and lines["attention"][2] == "yes"


@TIMES_ALONE
def test_sample_speed(run_quickly):
    table, _ = run_quickly("sample_speed")
    lines = [line.split("|") for line in table.splitlines() if line.startswith("| HMC")]
    assert [line[2].strip() for line in lines] == ["4", "16"]
    assert all(float(line[4]) > 0 and float(line[5]) > 0 for line in lines)


def test_scan(run_quickly):
    table, (row,) = run_quickly("scan", "--tables", "made")
    for title in ("relative error", "spectra to CSV", "as GAMBIT calls", "PSS"):
        assert title in table
    assert "nan" not in table
    assert list(row["scores"]) == ["(1000022, 1000022)", "(1000023, 1000023)"]
    assert [ranks["ranks"] for ranks in row["ranks"]] == [0, 1, 2, 4]


@pytest.mark.realdata
def test_batches(run_quickly):
    table, rows = run_quickly("batches")
    assert [row["rows"] for row in rows] == [20, 20, 20, 20, 20, 80]
    assert [row["kept"] for row in rows] == [0, 20, 40, 60, 0, 0]
    last, alone = (row["lpd"] for row in rows[3:5])
    assert last > alone and f"batch 4 {last:.3f}" in table


@TIMES_ALONE
def test_million_rows(run_quickly, tmp_path):
    table, rows = run_quickly("million_rows", "--work", str(tmp_path / "work"))
    found = {row["key"]: row for row in rows}
    assert found["fit"]["kills"] == 1 and "gone on with" in table
    assert found["fit"]["num_rows"] == 3000 and found["fit"]["rmse"] > found["fit"]["floor"] > 0.08


def test_the_wrapper_of_scoringbench_hands_over_quantiles(monkeypatch):
    """Of a stand-in for its base class, as a checkout of ScoringBench is nothing to install."""
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
        num_results=20, num_burnin_steps=20, pretraining=None, effort=0.1, until=None
    )
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


def test_ten_million(run_quickly):
    table, _ = run_quickly("ten_million")
    assert "| 20,000 |" in table and "arithmetic is the limit" in table
