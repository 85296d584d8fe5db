"""benchmarks/studies/default/run.py: its rows, its scores, and the bars that it judges them by; and what stands beside it."""

import numpy as np
import pytest

pytestmark = pytest.mark.benchmarks


def test_default_on_the_grid(run_quickly):
    table, rows = run_quickly("default", "--tables", "grid", "--methods", "default", "spline")
    by_method = {row["method"]: row for row in rows}
    assert set(by_method) == {"default", "spline"}
    ours, spline = by_method["default"], by_method["spline"]
    assert ours["hidden"] == [] and ours["verdict"] and len(ours["lpd_groups"]) == 20
    assert sum(ours["pit"]) == 576 and ours["network"].startswith("2-") and ours["likelihood"]
    assert abs(sum(ours["lpd_groups"]) / 20 - ours["lpd"]) < 0.05 * (1.0 + abs(ours["lpd"]))
    # Peaks vary by 14.7; the spline knows nothing but the points of the grid.
    assert spline["rmse"] < 0.1 and not {"lpd", "crps", "coverage"} & set(spline)
    assert "| grid: RMSE at most that of spline | median" in table and "nan" not in table


def test_what_held_out_rows_choose(run_quickly):
    table, rows = run_quickly("choice", "--tables", "grid", "--candidates", "50, one noise")
    trials, sampled = rows
    found = trials["trials"]
    assert len(found) == 6 and np.isfinite([trial[2:] for trial in found]).all()
    scores = {f"2-{hidden}-2": (density, -crps) for hidden, _, density, crps, *_ in found[:3]}
    chosen = scores[trials["chosen"].split(",")[0]]
    assert not any(min(np.subtract(other, chosen)) > 0 for other in scores.values())
    assert table.count("chosen |") == 1
    assert f"| {sampled['log_predictive_density']:.3f} | {sampled['rmse']:.4g} |" in table


def test_functions_without_noise(run_quickly):
    arguments = "--functions buckling --per-input 20 --draws 0".split()
    table, (row,) = run_quickly("functions", *arguments)
    assert 0.0 < row["relative_rmse"] < 1.0 and row["network"].startswith("4-")
    assert f"| buckling | 20 | {row['relative_rmse']:.3g} |" in table and "0.306 |" in table


def test_plain_and_accelerated_steps(run_quickly):
    table, (row,) = run_quickly("levenberg_marquardt", "--networks", "grid 50-50")
    ends = [value for kind in ("plain", "accelerated") for value in row[kind]["log_prob"]]
    assert len(set(ends)) == 4 and np.isfinite(ends).all() and row["planned"] > 0
    assert f"| grid 50-50 | 60 | {row['num_parameters']} | 3 |" in table


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


def test_rows_of_the_default():
    """Three seeds and other networks on the first split, one fit and the rivals on the others."""
    from types import SimpleNamespace

    from benchmarks.studies.default.run import GROUPS, jobs

    def wanted(table, *methods, splits=None, seeds=None):
        options = {"tables": [table], "methods": methods, "splits": splits, "seeds": seeds}
        return list(jobs(SimpleNamespace(**options, networks=None, quick=False)))

    fits = wanted("yacht", "default")
    assert [(fit.split, fit.seed, fit.hidden) for fit in fits[:5]] == [
        (0, 0, ()),
        (0, 1, ()),
        (0, 2, ()),
        (0, 0, (50, 50)),
        (1, 0, ()),
    ]
    assert len(fits) == 20 + 2 + 1 and len({fit.key for fit in fits}) == len(fits)
    assert {fit.hidden for fit in wanted("neutralino raw", "default")} == {
        (),
        (50, 50),
        (20, 20),
    }
    assert [fit.split for fit in wanted("concrete", "bde", "spline")] == [0]
    (one,) = wanted("concrete", "heteroscedastic")
    assert (one.split, one.seed, one.hidden) == (0, 0, (50,))
    assert not wanted("digits", "heteroscedastic") and not wanted("grid", "heteroscedastic")
    assert [fit.plain for fit in wanted("bikes", "gp", splits=[1])] == [False, True]
    assert [fit.seed for fit in wanted("demo", "map", seeds=[1])] == []
    of_classes = {fit.method for fit in wanted("digits", "rivals")}
    assert of_classes == {"gp", "boosting", "forest", "mlp", "ngboost", "logistic"}
    assert of_classes < set(GROUPS["rivals"])


def test_scores_of_rivals_are_those_of_evaluate():
    """Of a normal and of a log-normal, by their closed forms; of classes, by the package's own."""
    from scipy import stats

    from benchmarks.lib.default_scores import TargetSpace, class_scores, mixture_scores
    from tfbnn.posterior.metrics import expected_calibration_error

    generator = np.random.default_rng(0)
    y = np.exp(generator.normal(2.0, 0.7, 200))
    location, scale = generator.normal(0.0, 1.0, (1, 200)), np.full((1, 200), 0.8)
    for log in (False, True):
        space = TargetSpace.of(y, log)
        found = mixture_scores(space, location, scale, y)
        mean, stddev = space.mean + space.spread * location[0], 0.8 * space.spread
        z = ((np.log10(y) if log else y) - mean) / stddev
        assert found["coverage"] == [np.mean(abs(z) < 1), np.mean(abs(z) < 2)]
        if log:
            mu, sigma = np.log(10.0) * mean, np.log(10.0) * stddev
            law, centre = stats.lognorm(sigma, scale=np.exp(mu)), np.exp(mu)
            # Baran and Lerch 2015, equation of the log-normal.
            tails = stats.norm.cdf(z - sigma) + stats.norm.cdf(sigma / np.sqrt(2)) - 1
            crps = y * (2 * stats.norm.cdf(z) - 1) - 2 * np.exp(mu + sigma**2 / 2) * tails
        else:
            law, centre = stats.norm(mean, stddev), mean
            crps = stddev * (
                z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)
            )
        np.testing.assert_allclose(found["lpd"], law.logpdf(y).mean(), rtol=1e-9)
        np.testing.assert_allclose(found["crps"], crps.mean(), rtol=0.01)
        np.testing.assert_allclose(found["rmse"], np.sqrt(np.mean((y - centre) ** 2)), rtol=1e-9)
        np.testing.assert_allclose(np.mean(found["lpd_groups"]), found["lpd"], atol=1e-6)

    probabilities = generator.dirichlet(np.ones(3), 200)
    labels = generator.integers(3, size=200)
    found = class_scores(probabilities, labels)
    confidence = probabilities.max(axis=1, keepdims=True)
    correct = (probabilities.argmax(axis=1) == labels)[:, None]
    expected = expected_calibration_error(confidence, correct).item()
    np.testing.assert_allclose(found["ece"], expected, rtol=1e-9)
    assert found["accuracy"] == correct.mean()


def test_scores_of_a_mixture_of_rivals():
    """Two normals far from each other, by the integral over their distribution function."""
    from scipy import stats

    from benchmarks.lib.default_scores import TargetSpace, mixture_scores

    y = np.array([-3.0, -1.0, 0.2, 4.0])
    location, scale = np.array([[-2.0] * 4, [1.0] * 4]), np.array([[0.5] * 4, [1.5] * 4])
    found = mixture_scores(TargetSpace(False, 0.0, 1.0), location, scale, y)
    points = np.linspace(-15.0, 15.0, 60_001)[:, None]
    below = stats.norm.cdf(points[..., None], location[:, 0], scale[:, 0]).mean(axis=-1)
    crps = np.trapezoid((below - (points >= y)) ** 2, points[:, 0], axis=0)
    np.testing.assert_allclose(found["crps"], crps.mean(), rtol=5e-3)
    density = stats.norm.pdf(y, location, scale).mean(axis=0)
    np.testing.assert_allclose(found["lpd"], np.log(density).mean(), rtol=1e-9)
    np.testing.assert_allclose(found["rmse"], np.sqrt(np.mean((y + 0.5) ** 2)), rtol=1e-9)
    # The standard deviation is the root of 2.25 + 1.25.
    assert found["coverage"] == [0.5, 0.75]


def made_up(method, lpd, table="airfoil", splits=5, hidden=(), **more):
    """Rows of the default's comparison, split by split, with a log density that grows."""
    common = {"table": table, "seed": 0, "plain": False, "hidden": list(hidden), "method": method}
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


def not_done(row):
    """The row as it is kept after a fit that took too long."""
    names = ("key", "table", "split", "method", "seed", "hidden", "plain", "commit", "load_before")
    return {name: row[name] for name in names} | {"failed": "not done after 900 s"}


def judged(rows):
    """Dict bar -> (found, met)."""
    from benchmarks.studies.default.bars import bars

    return {bar: (found, met) for bar, found, met in bars(rows)}


LEVEL_ON_AIRFOIL = "airfoil: LPD level within 0.02 + 2 se"
BEHIND, RIDGE = "never more than 0.1 + 2 se behind", "no default fit below ridge regression in LPD"


def test_bars_of_the_default():
    """Made-up rows: level with the best rival or not, whatever its noise model."""
    from benchmarks.studies.default.report import report

    def met(lpd):
        more = {"pit": [10] * 100, "num_rows": 1000}
        ours = made_up("default", lpd, **more)
        rivals = made_up("ridge", -3.0) + made_up("gp", -1.9) + made_up("ngboost", -1.5)
        failed = not_done(made_up("forest", 0.0)[0])
        text = report([*ours, *rivals, failed])
        assert "ngboost *" in text and "0, 1 not done after 900 s" in text and "nan" not in text
        return judged([*ours, *rivals])

    ahead = met(-1.51)
    assert ahead[LEVEL_ON_AIRFOIL] == ("-0.010 +- 0.000 against ngboost", "yes")
    assert ahead["level on 11 of 14 tables"] == ("1 of 1", "no")
    assert ahead[RIDGE][1] == ahead[BEHIND][1] == "yes"
    assert ahead["airfoil: RMSE at most 3 % behind"] == ("1.000 of that of ridge", "yes")
    assert ahead["airfoil: rmse at most 0.95"] == ("1", "no")
    assert ahead["airfoil: PIT-KS at most 0.03 + 0.87 / sqrt(n)"][1] == "yes"
    assert ahead["airfoil: about 60 s within a quarter"] == ("100 s, load before 0.0", "no")
    assert ahead["mean coverage at 2 sigma within 0.03 of 0.9545"][1] == "yes"
    assert ahead["concrete: lpd at least -2.62"] == ("", "not measured")
    behind = met(-3.5)
    assert behind[LEVEL_ON_AIRFOIL][1] == behind[BEHIND][1] == behind[RIDGE][1] == "no"


def test_bars_of_probabilities():
    skewed = made_up("default", 0.0, pit=[0] * 50 + [20] * 50)
    found = judged(skewed)["airfoil: PIT-KS at most 0.03 + 0.87 / sqrt(n)"]
    assert found == ("0.500, at most 0.042", "no")
    for ece, met in ((0.02, "yes"), (0.04, "no")):
        ours = made_up("default", 0.0, "digits", 1, ece=ece)
        before = made_up("default", 0.0, "digits", 1, [50], ece=0.03)
        bar = "digits: ECE at most that of default 50, first split"
        assert judged(ours + before)[bar] == (f"{ece:.4f}, then 0.0300", met)


def test_fits_that_fail_make_no_bar_better():
    """One in the middle that was not done, or has no number for its density."""
    from benchmarks.studies.default.report import report

    rivals = made_up("ridge", -3.0) + made_up("gp", -1.5)
    ours = made_up("default", -1.0)
    late = [*ours[:2], not_done(ours[2]), *ours[3:]]
    assert "| default auto | 4, 1 not done after 900 s |" in report([*late, *rivals])
    found = judged([*late, *rivals])
    assert found[LEVEL_ON_AIRFOIL] == ("1 of 5 fits failed", "no")
    assert found["level on 11 of 14 tables"] == ("0 of 1; not airfoil", "no")
    assert found[BEHIND] == ("inf beyond 2 se, on airfoil", "no")
    assert found[RIDGE] == ("1 of 5 below; least margin -inf (default 2)", "no")
    assert found["airfoil: RMSE at most 3 % behind"][1] == "no"
    assert found["airfoil: rmse at most 0.95"] == ("1 of 5 fits failed", "no")
    assert found["mean coverage at 1 sigma within 0.08 of 0.6827"] == ("1 of 5 fits failed", "no")

    empty = [*ours[:2], ours[2] | {"lpd": float("nan")}, *ours[3:]]
    found = judged([*empty, *rivals])
    assert found[RIDGE] == ("1 of 5 below; least margin -inf (default 2)", "no")
    assert found[LEVEL_ON_AIRFOIL] == ("1 of 5 fits failed", "no")

    on_the_grid = made_up("default", 0.0, "grid", 1) + made_up("spline", 0.0, "grid", 1)
    bar = "grid: RMSE at most that of spline"
    assert judged(on_the_grid)[bar][1] == "yes"
    late = not_done(on_the_grid[0] | {"seed": 1})
    assert judged([*on_the_grid, late])[bar] == ("1 of 2 fits failed", "no")


def test_rivals_are_compared_on_the_splits_that_they_share():
    ours, ridge = made_up("default", -1.0), made_up("ridge", -3.0)
    bde = made_up("bde", -0.5)
    text, met = judged([*ours, *ridge, *bde[2:3]])[LEVEL_ON_AIRFOIL]
    assert text == "-0.500 +- 0.000 against bde" and met == "no"
    text, met = judged([*ours, *ridge, not_done(bde[2])])[LEVEL_ON_AIRFOIL]
    assert text.endswith(" against ridge") and met == "yes"


def test_copies_of_rows_repeat_inputs_and_target():
    from benchmarks.lib.default_rivals import distinct_rows
    from benchmarks.studies.default.report import report

    x = np.array([[1.0, 2.0], [0.0, 2.0], [1.0, 2.0], [1.0, 2.0], [0.0, 2.0]])
    t = np.array([3.0, 4.0, 3.0, 5.0, 4.0])
    np.testing.assert_array_equal(np.sort(distinct_rows(x, t)), [0, 1, 3])
    assert "Rows of gp on wine are of c." in report(made_up("gp", -1.0, "wine", 2))
    assert "Rows of gp on wine" not in report(made_up("gp", -1.0))


@pytest.mark.realdata
def test_rivals_of_the_default(run_quickly):
    pytest.importorskip("sklearn")
    _, rows = run_quickly(
        "default", "--tables", "yacht", "--methods", "ridge", "gp", "boosting", "forest", "mlp"
    )
    ridge = min(row["lpd"] for row in rows if row["method"] == "ridge")
    for row in rows:
        assert row["log"] != row["plain"] and row["rmse"] < 12.0 and row["lpd"] >= ridge
