"""The benchmark scripts of what papers published, with --quick: what they keep is sane."""

import numpy as np
import pytest

pytestmark = pytest.mark.benchmarks


@pytest.mark.slow
def test_relu_inefficiency(run_quickly, tmp_path):
    table, rows = run_quickly("relu_inefficiency")
    for title in ("## Acceptance", "## Efficiency", "## Width and depth", "## Error of the energy"):
        assert title in table
    assert (tmp_path / "relu_inefficiency.png").stat().st_size > 10_000
    seeds = [row for row in rows if "seed" in row["key"]]
    assert len(seeds) == 4 and "## Where five chains left" in table
    at_largest_step = {
        row["activation"]: row["acceptance"]
        for row in rows
        if row.get("step_size") == 0.002 and row not in seeds
    }
    assert min(at_largest_step["sigmoid"]) > 0.6
    assert max(at_largest_step["relu"]) < 0.5

    from benchmarks.studies.relu_inefficiency import local_error as relu_local_error

    (errors,) = (row for row in rows if "mean_crossing" in row)
    steps = errors["step_size"]
    # First order where a kink is crossed; third order where none is, which pulls the mean down.
    assert 0.6 < relu_local_error.fitted_slope(steps, errors["mean_crossing"]) < 1.6
    assert 1.5 < relu_local_error.fitted_slope(steps, errors["mean"]) < 3.1


@pytest.mark.slow  # test_relu_energy_error has what it measures
def test_relu_step_size(run_quickly, tmp_path):
    table, rows = run_quickly("relu_step_size")
    for title in ("## The most efficient acceptance", "## Step sizes of a given acceptance"):
        assert title in table
    assert (tmp_path / "relu_step_size.png").stat().st_size > 10_000

    from benchmarks.studies.relu_step_size import report as table_of

    for name, group in table_of.by_density(rows).items():
        target, _, exponent = table_of.published(name)
        steps = {d: table_of.step_at(group, d, target) for d in group[0]["acceptance"]}
        slope, error = table_of.fitted_exponent(steps)
        assert abs(slope - exponent) < 0.02 and error < 0.02
    # Where trajectories are many, acceptance is the normal limit of the sum of errors.
    kinked = table_of.by_density(rows)["slopes 1 and 1"]
    best = table_of.optimum(*table_of.curves(kinked, "64")[:2], efficiency_of(kinked, "64"))
    assert abs(best.mean() - 0.45) < 0.06


def efficiency_of(group, dimension):
    """Step size times acceptance [n, parts] of rows of relu_step_size."""
    return np.array([row["step_size"] * np.array(row["acceptance"][dimension]) for row in group])


def test_relu_energy_error(run_quickly):
    table, rows = run_quickly("relu_energy_error")
    assert "Orders in eps" in table and "nan" not in table
    smallest = min(rows, key=lambda row: row["step_size"])
    assert smallest["rest"] < 0.05 * smallest["error"] and smallest["correlation"] > 0.999
    # Where the formula errs, the pieces between the kinks are bent: it falls faster than they do.
    steps, rest = zip(*((row["step_size"], row["rest"]) for row in rows))

    from benchmarks.studies.relu_inefficiency import local_error as relu_local_error

    assert relu_local_error.fitted_slope(steps, rest) > 1.8


@pytest.mark.realdata
def test_xor(run_quickly, tmp_path):
    table, rows = run_quickly("xor_iris", "--only", "xor", "--samplers", "random walk", "MALA")
    assert "2-2-1 on XOR: 9 weights, 10 chains" in table and "nan" not in table
    assert (tmp_path / "xor_iris.png").stat().st_size > 5_000
    misled = next(row for row in rows if row["prior"] == "N(2, 0.25 I)")
    by_sampler = {row["sampler"]: row for row in rows if row["prior"] == "N(0, 1 I)"}
    assert set(by_sampler) == {"random walk", "MALA"}
    mala = by_sampler["MALA"]
    assert mala["predictions"]["split_rhat"] < 1.1
    assert 0.4 < mala["acceptance"] < 0.8
    # Four rows cannot teach nine weights much: the posterior predicts near one half.
    assert all(0.3 < mean < 0.7 for mean in mala["prediction_mean"])
    # A prior far from there is sure of the wrong labels, and chains agree about it.
    assert min(misled["prediction_mean"]) > 0.9 and misled["predictions"]["split_rhat"] < 1.1
    assert mala["predictions"]["ess"][0] > by_sampler["random walk"]["predictions"]["ess"][0]


def test_xor_descent(run_quickly, tmp_path):
    run_quickly("xor_descent")
    assert (tmp_path / "xor_descent.png").stat().st_size > 10_000
    from benchmarks.studies.xor_descent import run as xor_descent

    theta = np.random.default_rng(0).normal(size=(8, 9))
    step = 1e-6 * np.eye(9)
    numerical = [(xor_descent.loss(theta + h) - xor_descent.loss(theta - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(xor_descent.gradient(theta).T, numerical, atol=1e-8)
    # A copy of the same network, and the same copy whichever it was.
    copy = xor_descent.canonical(theta)
    np.testing.assert_allclose(xor_descent.outputs(copy), xor_descent.outputs(theta))
    assert (copy[:, 6] >= 0.0).all() and (copy[:, 7] >= copy[:, 6]).all()
    exchanged = theta[:, [1, 0, 3, 2, 5, 4, 7, 6, 8]]
    np.testing.assert_allclose(xor_descent.canonical(exchanged), copy)
    assert len(set(xor_descent.copy_of(theta))) > 2
    loss = xor_descent.loss(xor_descent.descend(theta, 300))
    assert (loss < xor_descent.loss(theta)).all()


@pytest.mark.realdata
def test_iris_and_classification(run_quickly):
    table, _ = run_quickly("xor_iris", "--only", "iris", "--samplers", "MALA")
    assert "4-3-3 on iris: 27 weights, 4 chains" in table
    table, rows = run_quickly("classification")
    assert {row["data"] for row in rows} == {"iris", "banknotes"}
    assert all(row["accuracy"] > 0.85 for row in rows)
    assert all(0.0 < row["brier"] < 0.2 for row in rows)
    assert "log predictive density" in table


def checked_chains(rows, method):
    """Rows of the chains by all three methods, `method` having lost the readout's stiffness."""
    chains = {row["method"]: row for row in rows if "method" in row}
    assert set(chains) == {"standard", "repriorised", "collapsed"}
    assert chains[method]["step_size"] > 1.5 * chains["standard"]["step_size"]
    for row in chains.values():
        assert row["num_gradients"] == row["num_leapfrog_steps"] * row["num_draws"]
    return chains.values()


@pytest.mark.realdata
def test_repriorisation(run_quickly, tmp_path):
    table, rows = run_quickly("repriorisation")
    for title in ("## Width", "## Number of rows", "## Time", "## Yacht, 1 of 20 splits"):
        assert title in table
    assert "nan" not in table
    assert (tmp_path / "repriorisation.png").stat().st_size > 10_000
    for row in checked_chains(rows, "repriorised"):
        assert len(row["weights"]["ess"]) == len(row["outputs"]["ess"]) == 100
    (speed,) = (row for row in rows if row.get("study") == "speed")
    assert 0.0 < speed["bound"]["standard"] < speed["bound"]["repriorised"]
    (split,) = (row for row in rows if row.get("study") == "splits")
    assert split["rmse"] < 5.0


@pytest.mark.realdata
def test_pcn(run_quickly):
    table, rows = run_quickly("pcn")
    assert "## Acceptance at a fixed step" in table and "## Effective draws" in table
    tuned = {row["kernel"]: row for row in rows if "outputs" in row}
    slopes = [row for row in rows if "prior" in row]
    chains = [row for row in rows if "prior" not in row]
    assert set(tuned) == {"pCN", "pCNL", "HMC"} and len(chains) == 2 * 2 + 3
    assert "## How steep the likelihood is" in table and len(slopes) == 2
    for row in slopes:
        assert len(row["prior"]) == 3 and min(*row["prior"], row["start"]) > 0.0
    for row in chains:
        assert len(row["acceptance"]) == (1 if "outputs" in row else 4)
        assert all(0.0 <= acceptance <= 1.0 for acceptance in row["acceptance"])
    # As much work for each draw that is kept.
    assert {name: row["transitions"] % 8 for name, row in tuned.items() if name != "HMC"} == {
        "pCN": 0,
        "pCNL": 0,
    }
    assert all(len(row["outputs"]["ess"]) == 100 for row in tuned.values())


@pytest.mark.slow  # half a minute; its scores have a test of their own
def test_digits_networks(run_quickly, tmp_path):
    table, rows = run_quickly("digits_networks")
    assert table.count("| flattened, 2 |") == 3 and "nan" not in table
    assert (tmp_path / "digits_networks.png").stat().st_size > 10_000
    for row in checked_chains(rows, "collapsed"):
        assert len(row["weights"]["ess"]) == 100 and len(row["outputs"]["ess"]) == 1000
        assert row["rhat2"][-1][0] == row["num_gradients"]
        assert row["accuracy"] > 0.7
    (rivals,) = (row["scores"] for row in rows if row["key"] == "rivals")
    assert 0.9 < rivals["logistic regression"]["accuracy"] < 0.99
    assert any(name.startswith("ADAM ensemble") for name in rivals)


def test_the_probabilities_of_digits():
    """Against the densities of all ten codes under the noise of each network."""
    from scipy import stats

    from benchmarks.studies.digits_networks import scores as digits_networks_scores
    from benchmarks.studies.digits_networks.chains import digits, targets

    _, (images, labels) = digits()
    generator = np.random.default_rng(0)
    outputs = targets(labels) + 0.3 * generator.normal(size=(1, 3, len(labels), 10))
    codes = targets(np.arange(10))
    densities = stats.norm.pdf(codes, outputs[0][:, :, None], 0.1).prod(axis=-1)
    probabilities = (densities / densities.sum(axis=-1, keepdims=True)).mean(axis=0)
    expected = np.log(probabilities[np.arange(len(labels)), labels]).mean()
    found = digits_networks_scores.scores(outputs)
    assert found["log_predictive_density"] == pytest.approx(expected, rel=1e-6)
    assert found["accuracy"] == np.mean(probabilities.argmax(axis=1) == labels)
    assert len(images) == 1797 - 256


@pytest.mark.slow  # 20 seconds
def test_wide_limit(run_quickly, tmp_path):
    table, _ = run_quickly("wide_limit")
    sections = ("## Draws of the limit", "## Chains of three hidden layers", "## Step sizes")
    assert all(section in table for section in sections) and "nan" not in table
    assert (tmp_path / "wide_limit.png").stat().st_size > 10_000
    from benchmarks.studies.wide_limit import run as wide_limit

    # The kernel is the covariance of the outputs of wide networks; its error is that of 500 products.
    case = wide_limit.Case(300, depth=2)
    x, z = case.rows[2][:3], case.rows[2][3:5]
    layers = case.spec.layout.kernels_and_biases(case.normals(0, 500))
    outputs = np.concatenate([x, z])[None]
    for index, (kernel, bias) in enumerate(layers):
        hidden = np.maximum(outputs, 0.0) if index else outputs
        outputs = hidden @ kernel / np.sqrt(kernel.shape[1]) + bias[:, None]
    found = np.mean(outputs[:, :3] * outputs[:, 3:].swapaxes(1, 2), axis=0)
    expected = wide_limit.nngp_kernel(x, z, 2)
    assert np.abs(found - expected).max() < 5.0 * expected.max() * np.sqrt(2.0 / 500)
    # Draws of a wide network are near those of the process, and nearer than those of a narrow one.
    far, near = (wide_limit.limit_row(wide_limit.Case(width), 200) for width in (8, 256))
    assert near["mean"] < 0.3 < far["mean"] and abs(near["stddev"] - 1.0) < 0.2
    assert 0.0 < near["divergence"] < far["divergence"]
    rates = np.where(wide_limit.STEP_SIZES < 0.1, 1.0, 0.0)
    assert wide_limit.step_at(0.5, rates) == pytest.approx(0.1, rel=0.4)


@pytest.mark.slow  # a quarter of a minute; its rows and verdicts have a test of their own
def test_thermalisation(run_quickly, tmp_path):
    table, rows = run_quickly("thermalisation", "--seconds", "2")
    assert "| 100 | 8 | 0.1 | 0 | " in table and "nan" not in table
    assert "- by noise: 0.03: " in table and "of 2" in table
    assert (tmp_path / "thermalisation.png").stat().st_size > 10_000
    for row in rows:
        # Where noise is plenty and weights are few, chains from anywhere sample the posterior.
        assert row["all"]["rhat_q95"] < 1.2
        assert abs(row["log_prob"]["difference"]) < row["log_prob"]["stddev"]
        assert 0.0 < max(row["rmse"]) < 1.3 * min(row["rmse"])


def test_the_teacher_of_a_thermalisation_made_its_rows():
    from benchmarks.studies.thermalisation import run as thermalisation
    from benchmarks.studies.thermalisation.report import agrees

    cell = thermalisation.Cell(0.1, 8, 100, teacher=1)
    theta, x, y, reference, truth = cell.problem()
    (kernel, bias), (last, offset) = cell.model().spec.layout.kernels_and_biases(theta)
    hidden = np.tanh(reference @ (2.0 * kernel / np.sqrt(4.0)) + bias)
    np.testing.assert_allclose(hidden @ last[:, 0] / np.sqrt(8.0) + offset, truth, rtol=1e-6)
    assert np.std(y - thermalisation.outputs(cell.model().spec, theta, x)) == pytest.approx(
        0.1, 0.3
    )
    # Chains that stand a hundred nats apart agree on nothing, whatever R-hat says.
    here = np.random.default_rng(0).normal(size=(4, 200))
    near = thermalisation.compared(here[:1], here[1:], 0.0)
    far = thermalisation.compared(here[:1], here[1:] - 100.0, 0.0)
    # Nor do chains of which one is elsewhere, though their standard error is then as large.
    one = thermalisation.compared(here[:1], here[1:] - np.array([[0.0], [0.0], [100.0]]), 0.0)
    assert abs(one["z"]) < 3.0
    assert not agrees({"log_prob": one, "all": {"rhat_q95": 1.01}})
    assert agrees({"log_prob": near, "all": {"rhat_q95": 1.01}})
    assert not agrees({"log_prob": near, "all": {"rhat_q95": 1.2}})
    assert not agrees({"log_prob": far, "all": {"rhat_q95": 1.01}})
    assert far["rank"] == 1.0 and 0.3 < near["rank"] < 0.7


@pytest.mark.slow
@pytest.mark.realdata
def test_thesis(run_quickly, tmp_path):
    table, rows = run_quickly("thesis", "--work", str(tmp_path / "work"))
    assert {row["kernel"] for row in rows} == {"HMC", "NUTS"}
    assert "## Coverage of model 3" in table and "(0.711)" in table
    for row in rows:
        assert sum(row["residuals"]) == 300 and np.isfinite(row["spread"])
    for name in ("sweeps", "points", "planes"):
        assert (tmp_path / f"thesis-{name}.png").stat().st_size > 5_000
    work = str(tmp_path / "work")
    _, rows = run_quickly("thesis", "--inputs", "standardised", "--work", work)
    assert {row["kernel"] for row in rows} == {"HMC", "NUTS", "ADAM", "mean-field VI"}
    assert all(sum(row["residuals"]) == 300 and np.isfinite(row["spread"]) for row in rows)
    assert "## Surrogates" in (tmp_path / "thesis_standardised.md").read_text()


def test_infinite(run_quickly):
    table, _ = run_quickly("infinite", "--tables", "buckling 20")
    assert "| buckling 20, tanh | 80 x 4 |" in table and "triangular products" in table
