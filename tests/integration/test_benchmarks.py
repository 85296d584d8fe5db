"""The benchmark scripts, with --quick: they run, and what they keep has no holes.

Numbers that the scripts compute by themselves are in test_benchmark_numbers.py.
"""

import importlib
import json
import re
import shlex

import pytest

from tests.support.benchmarks import FOLDER

pytestmark = pytest.mark.benchmarks

# (study, its options, what its table must match); {folder} is where the results go.
IN_CI = [
    ("xor_descent", "", []),
    ("xor_iris", "--only xor --samplers MALA", ["2-2-1 on XOR: 9 weights, 10 chains"]),
]
# After a change of theirs, run them by `pytest -m slow tests/integration/test_benchmarks.py`: they do
# little but time, or stand beside another of their study.
ON_CHANGE = [
    ("batches", "", [r"-?\d\.\d+ \(batch 4\)"]),
    ("blas_threads", "", [r"\| 0 of \d+ \|$", r"Wrong predictions: 0 of [1-9]\d* with default"]),
    ("calibration", "--tables wave --runs {folder}/runs", [r"^\| wave, 0 \| posterior \|"]),
    ("choice", "--tables grid --candidates '50, one noise'", [r"chosen \|"]),
    ("classification", "", ["iris", "banknotes", "log predictive density"]),
    ("core_pairs", f"--old {FOLDER.parent}", [r"^\| 5-4-1 \| 4 \|", "inside XLA's compiler", "block"]),
    ("cpu_gpu", "", ["products ms . tanh ms . limit ms", "XLA / limit", "tfbnn / tfp.mcmc", "GFLOP/s"]),
    ("cross_validation", "", [r"two folds \| [1-9]", "block"]),
    ("default", "--tables yacht --methods boosting mlp ridge gp forest", ["boosting", "mlp", "ridge", "gp"]),
    ("default", "--tables grid --methods default spline", ["grid: RMSE at most that of spline"]),
    ("digits_networks", "", [r"(?s)(\| flattened, 2 \|.*){3}"]),
    ("evidence", "", [r"^\| N 200, D 5, noise learned, prior 1, 10 rungs \| 2 \|"]),
    ("faults", "", ["one bit flipped", "full disk", "killed: mid-checkpoint"]),
    ("functions", "--functions buckling --per-input 20 --draws 0", [r"^\| buckling \| 20 \| 0\.\d"]),
    ("gradient_cost", "", [r"(?s)(\| 5-20-20-1 \|.*){2}"]),
    # Two settings in two folds, and the best once more; folds and numbers of chains share a program.
    ("grid_search", "", [r"^\| grid search[^|]*\| 5 \|.*\| 2 \|([^|]*\|){2}[^|]*R2"]),
    ("infinite", "--tables 'buckling 20'", [r"^\| buckling 20, tanh \| 80 x 4 \|"]),
    ("interpolation", "", [r"^\| kin8nm \| 8 \| Langevin, repriorised \|"]),
    ("keras_models", "", [r"^\| Keras, Sequential (\| 0\.0e\+00 ){4}", r"^\| recurrent .*\| no \|"]),
    ("levenberg_marquardt", "--networks 'grid 50-50'", [r"^\| grid 50-50 \| 60 \| \d+ \| 3 \|"]),
    ("limits", "", [r"\| README's example \| 2-50-1, tanh \| 60 \|"]),
    ("memory", "", ["5451 weights", r"\| with it \| 2000 \|"]),
    ("million_rows", "--work {folder}/work", ["resumed"]),
    ("other_tables", "--methods default ridge", [r"^\| few rows \| 45, 1 \|.*\*\*"]),
    ("pcn", "", ["## Acceptance at a fixed step", "## Effective sample sizes", "## Gradient"]),
    ("pops", "--tables wave --runs {folder}/runs", [r"\| misfit; all weights \|"]),
    ("prediction", "", ["NumPy / XLA", "h5py alone", "empty interpreter"]),
    ("prompt_blocks", "", [r"10 \+ 10 \| ([3-9]|\d\d+) \| \d\.\d+ \|"]),
    ("relu_energy_error", "", ["Orders in eps"]),
    ("relu_inefficiency", "", ["## Acceptance", "## Efficiency", "## Width and depth"]),
    ("relu_step_size", "", ["## The most efficient acceptance", "## Step sizes of a given"]),
    ("repriorisation", "", ["## Width", "## Number of rows", "## Time", "## Yacht, 1 of 20 splits"]),
    ("row_pieces", "", [r"^\| 5-4-1 \| 2000 \| 1 \|.*\| the same \|$"]),
    ("rows", "", [r"^\| 5-4-1 \| 4 \| 2000 \|", "growth, MB"]),
    ("sample_speed", "", [r"^\| HMC[^|]*\| 16 \|"]),
    ("scale_prior", "--tables 'few rows'", [r"^\| few rows \| 1 \|"]),
    ("scan", "--tables made", ["relative error", "spectra to CSV", "as GAMBIT calls", "PSS"]),
    ("small_network_speed", "", ["fit_posterior", "compiled block", "TFP MALA", "NumPy"]),
    ("ten_million", "", [r"^\| 20,000 \|", r"alone, .* take \d+\.\d us per point"]),
    ("thermalisation", "--seconds 2", [r"\| 100 \| 8 \| 0\.1 \| 0 \| ", "- by noise: 0.03: ", "of 2"]),
    ("thesis", "--work {folder}/work", ["## Coverage of model 3", r"\(0\.711\)"]),
    ("thesis", "--work {folder}/work --inputs standardised", ["## Surrogates"]),
    ("thread_bits", "", [rf"\| {what} \|.*\| the same \|" for what in ("density", "HMC", "NUTS")]),
    ("whitening_cost", "", [r"^\| 5-50-1 \| 351 \| 1600 \|"]),
    ("wide_limit", "", ["## Draws of the limit", "## Chains of three", "## Step sizes"]),
    ("xor_iris", "--only iris --samplers MALA", ["4-3-3 on iris: 27 weights, 4 chains"]),
]  # fmt: skip
FIGURES = {
    "cpu_gpu", "digits_networks", "prediction", "relu_inefficiency", "relu_step_size", "repriorisation",
    "thermalisation", "thesis", "wide_limit", "xor_descent", "xor_iris",
}  # fmt: skip


NEED_DATA = (
    "batches", "classification", "default --tables yacht", "interpolation", "pcn", "repriorisation", "thesis", "xor_iris",
)  # fmt: skip


def cases():
    for table in (IN_CI, ON_CHANGE):
        for study, options, patterns in table:
            name = f"{study} {options}".strip()
            marks = [pytest.mark.slow] if table is ON_CHANGE else []
            marks += [pytest.mark.realdata] if name.startswith(NEED_DATA) else []
            yield pytest.param(study, options, patterns, id=name, marks=marks)


@pytest.mark.parametrize("study, options, patterns", [*cases()])
def test_a_study_runs(tmp_path, study, options, patterns):
    if study == "gradient_cost":
        pytest.importorskip("blackjax")
    folder = "archive" if (FOLDER / "archive" / study).is_dir() else "studies"
    script = importlib.import_module(f"benchmarks.{folder}.{study}.run")
    options = shlex.split(options.replace("{folder}", str(tmp_path)))
    script.main(["--quick", "--output", str(tmp_path), *options])
    (table,) = [path.read_text() for path in tmp_path.glob("*.md")]
    for pattern in patterns:
        assert re.search(pattern, table, re.MULTILINE), pattern
    assert "nan" not in table
    for path in tmp_path.glob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert rows and not any("failed" in row for row in rows)
    figures = list(tmp_path.glob("*.png"))
    assert bool(figures) == (study in FIGURES)
    assert all(figure.stat().st_size > 5_000 for figure in figures)
