"""Calibrated error bars: the map of scores, its use, its file and its refusals."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import tfbnn
from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.marks import statistics_but
from tests.support.model_file_edits import refused_after, rewrite
from tfbnn import BayesianMLP
from tfbnn.likelihoods import Bernoulli, StudentT
from tfbnn.posterior.calibration.calibrating import calibration_of_moments, first_rows
from tfbnn.posterior.calibration.calibration import Calibration
from tfbnn.posterior.calibration.left_out import left_out
from tfbnn.posterior.calibration.score_distribution import (
    FEWEST_SCORES,
    MOST_SCORES,
    ScoreDistribution,
)
from tfbnn.spec.rows import MOST_DIGESTS, NetworkRows, Rows, merged_digests, num_known, row_digests

LEVELS = np.array([1e-5, 0.00135, 0.0228, 0.1587, 0.5, 0.8413, 0.9772, 0.99865, 1 - 1e-5])
LOG = ["log10", "standardize"]
EDGES = [0.1587, 0.8413]


def scores_of(size, seed=0, df=4.0):
    return stats.t.rvs(df, size=size, random_state=seed) * 0.6 + 0.1


def test_the_body_is_the_conformal_predictive_system():
    """A new score is below the k-th of n with probability k / (n + 1)."""
    scores = scores_of(199)
    found = ScoreDistribution.of(scores)
    ranks = np.arange(5, 196)
    np.testing.assert_allclose(found.quantile(ranks / 200), np.sort(scores)[ranks - 1], rtol=1e-12)
    np.testing.assert_allclose(found.probability(np.sort(scores)[4:195]), ranks / 200, rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(-100, 100, width=32), min_size=FEWEST_SCORES, max_size=60),
    st.lists(st.floats(1e-6, 1 - 1e-6), min_size=2, max_size=9),
)
def test_quantiles_ascend_whatever_the_scores(scores, levels):
    found = ScoreDistribution.of(np.array(scores))
    levels = np.sort(levels)
    quantiles = found.quantile(levels)
    assert np.isfinite(quantiles).all() and np.all(np.diff(quantiles) >= 0)
    assert np.isfinite(found.log_density(np.array(scores))).all()


def test_the_tail_meets_the_body_and_has_the_fitted_shape():
    found = ScoreDistribution.of(scores_of(400))
    np.testing.assert_allclose(found.probability(found.quantile(LEVELS)), LEVELS, rtol=1e-9)
    ends, beyond = np.array([2 / 401, 399 / 401]), np.array([1e-4, 1 - 1e-4])
    scales, df = np.transpose(found.sides)
    np.testing.assert_allclose(
        found.quantile(beyond) - found.quantile(ends),
        scales * (stats.t.ppf(beyond, df) - stats.t.ppf(ends, df)),
        rtol=1e-9,
    )


@pytest.mark.parametrize("df", statistics_but([6.0], [2.0, 6.0]))
def test_the_fitted_student_t_is_that_of_the_scores(df):
    found = ScoreDistribution.of(scores_of(40_000, df=df))
    for side in found.sides:
        assert side.scale == pytest.approx(0.6, rel=0.04) and side.df == pytest.approx(df, rel=0.2)
    median = np.median(found.scores)
    assert median == pytest.approx(0.1, abs=0.02)
    grid = np.linspace(-4, 4, 9)
    scale, df = np.where((grid < median)[:, None], *found.sides).T
    expected = stats.t.logpdf(grid, df, median, scale)
    np.testing.assert_allclose(found.log_density(grid), expected, rtol=1e-10)


def test_normal_scores_have_next_to_normal_tails():
    found = ScoreDistribution.of(np.random.default_rng(0).normal(size=40_000))
    assert min(side.df for side in found.sides) > 30
    np.testing.assert_allclose(
        found.quantile(LEVELS[1:-1]), stats.norm.ppf(LEVELS[1:-1]), atol=0.06
    )


def test_of_very_many_scores_their_quantiles_are_kept():
    scores = scores_of(3 * MOST_SCORES)
    found = ScoreDistribution.of(scores)
    assert len(found.scores) == MOST_SCORES
    levels = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(found.quantile(levels), np.quantile(scores, levels), atol=4e-3)


# Noise of variance 1.
NOISE_LAWS = {
    "normal": lambda generator, size: generator.normal(size=size),
    "student_t": lambda generator, size: generator.standard_t(3, size=size) / np.sqrt(3.0),
    "skew": lambda generator, size: (generator.gamma(1.5, size=size) - 1.5) / np.sqrt(1.5),
}
each_noise = pytest.mark.parametrize("draw", NOISE_LAWS.values(), ids=NOISE_LAWS)


def shares_inside(scores, new):
    """Shares of new scores within one and two standard deviations of a calibration by others."""
    ends = ScoreDistribution.of(scores).quantile(np.array([[0.1587, 0.8413], [0.0228, 0.9772]]))
    return np.mean((new > ends[:, :1]) & (new < ends[:, 1:]), axis=1)


@pytest.mark.statistics
@each_noise
def test_coverage_of_exchangeable_rows_is_nominal(draw):
    """Averaged over calibrations of 100 rows each: the standard error is below .003."""
    generator = np.random.default_rng(3)
    inside = [shares_inside(draw(generator, 100), draw(generator, 500)) for _ in range(200)]
    np.testing.assert_allclose(np.mean(inside, axis=0), [0.6826, 0.9544], atol=0.01)


@pytest.mark.statistics
@each_noise
def test_coverage_by_rows_of_the_fit_left_out_is_nominal(draw):
    """Check a linear model of 12 weights on 100 rows, which cover .63 and .93 if not left out."""
    generator, noise, num_weights = np.random.default_rng(8), 0.5, 12
    inside = []
    for _ in range(200):
        x, weights = generator.normal(size=(600, num_weights)), generator.normal(size=num_weights)
        y = x @ weights + noise * draw(generator, 600)
        fitted, new = slice(100), slice(100, 600)
        covariance = np.linalg.inv(x[fitted].T @ x[fitted] / noise**2 + np.eye(num_weights))
        mean = covariance @ x[fitted].T @ y[fitted] / noise**2
        theta = generator.multivariate_normal(mean, covariance, size=400)
        draws = (theta @ x[fitted].T)[..., None]
        one_chain = np.ones(1), np.zeros(1)
        left = left_out(y[fitted, None], draws, np.array(noise), *one_chain)
        scores = (y[fitted] - left[0][:, 0]) / left[1][:, 0]
        spread = np.sqrt(np.einsum("ni,ij,nj->n", x[new], covariance, x[new]) + noise**2)
        inside.append(shares_inside(scores, (y[new] - x[new] @ mean) / spread))
    np.testing.assert_allclose(np.mean(inside, axis=0), [0.6826, 0.9544], atol=0.01)


def transformed(model, x):
    """Mean and standard deviation [N, K] with noise, on the scale of the network, not calibrated."""
    return model.predict(x, include_noise=True, space="transformed", calibrated=False).columns


class Case:
    """A model of random networks, and rows whose targets are wider spread than it says."""

    def __init__(self, factor=3.0, num_rows=300, seed=4, **configuration):
        self.ensemble = synthetic_ensemble(**configuration)
        self.model = BayesianMLP.from_ensemble(self.ensemble)
        self.factor, self.seed = factor, seed
        inputs = self.ensemble.training_inputs
        generator = np.random.default_rng(seed)
        middle = generator.normal(size=(num_rows, self.ensemble.spec.num_inputs)) * 0.5
        spread = np.sqrt(np.diagonal(inputs.covariance))
        self.x = self.ensemble.x_pipeline.inverse(inputs.mean + middle * spread)
        self.y = self.targets(self.x, seed)

    def targets(self, x, seed):
        mean, stddev = transformed(self.model, x)
        noise = np.random.default_rng(seed + 1).standard_t(5, size=mean.shape)
        target = mean + stddev * self.factor * noise
        return self.ensemble.y_pipeline.inverse(target)


CONFIGURATIONS = {
    "plain": {},
    "logarithm": {"y_transform": LOG},
    "two targets": {"layer_sizes": (2, 5, 2), "y_transform": LOG},
    "Student-t": {"likelihood": StudentT(3.5, 0.3)},
    "weighted chains": {"num_chains": 3, "chain_weights": [0.2, 0.8, 0.0]},
}


@pytest.mark.parametrize(
    "configuration",
    statistics_but([CONFIGURATIONS["weighted chains"]], CONFIGURATIONS.values()),
    ids=CONFIGURATIONS,
)
def test_calibrated_bars_cover_new_rows(configuration):
    case = Case(num_rows=800, **configuration)
    new = Case(seed=50, num_rows=800, **configuration)
    before = case.model.evaluate(new.x, new.y)
    record = case.model.calibrate(case.x, case.y)
    after = case.model.evaluate(new.x, new.y)
    assert case.model.calibration is record and record.num_rows >= 0.95 * len(case.x)
    assert np.max(before["coverage"][1]) < 0.35
    np.testing.assert_allclose(after["coverage"][1], 0.683, atol=0.07)
    np.testing.assert_allclose(after["coverage"][2], 0.954, atol=0.025)
    np.testing.assert_allclose(after["pull_width"], 1.0, atol=0.1)
    assert after["log_predictive_density"] > before["log_predictive_density"] + 0.3
    if case.ensemble.y_pipeline.is_affine:  # else few rows decide the score
        assert np.all(after["crps"] < before["crps"])
    np.testing.assert_array_equal(after["rmse"], before["rmse"])
    assert after["central_coverage"][0.683] == pytest.approx(after["coverage"][1], abs=2e-3)
    assert np.all(np.abs(record.coverage_after[0] - 0.683) < 0.03)
    assert np.all(record.coverage_before[0] < 0.35)
    plain = case.model.evaluate(new.x, new.y, calibrated=False)
    assert str(plain) == str(before)


@pytest.mark.parametrize(
    "configuration",
    [CONFIGURATIONS[name] for name in ("two targets", "Student-t", "weighted chains")],
)
def test_quantiles_and_stddev_are_those_of_the_scores(configuration):
    case = Case(**configuration)
    record = case.model.calibrate(case.x, case.y)
    x = case.x[:7]
    for space in ("original", "transformed"):
        found = case.model.predict(x, include_noise=True, quantiles=EDGES, space=space).columns
        plain = case.model.predict(x, include_noise=True, space=space, calibrated=False).columns
        centre, spread = transformed(case.model, x)
        factors = np.stack([one.quantile(np.array(EDGES)) for one in record.groups[0]], axis=1)
        expected = centre + spread * factors[:, None]
        one = record.groups[0][0].quantile(stats.norm.cdf(np.array([-1.0, 1.0])))
        width = centre[:, :1] + spread[:, :1] * one
        if space == "original":
            expected = case.ensemble.y_pipeline.inverse(expected)
            full = np.repeat(width[..., None], centre.shape[1], axis=2)
            width = case.ensemble.y_pipeline.inverse(full)[..., 0]
        np.testing.assert_allclose(found.quantiles, expected, rtol=1e-9)
        np.testing.assert_allclose(found.stddev[:, 0], np.ptp(width, axis=1) / 2, rtol=1e-9)
        np.testing.assert_array_equal(found.mean, plain.mean)


def test_a_summary_names_targets():
    record = Case(**CONFIGURATIONS["two targets"])
    lines = record.model.calibrate(record.x, record.y).summary().splitlines()
    assert [line.split(":")[0].split()[-1] for line in lines[1:-1]] == ["y1"] * 3 + ["y2"] * 3


def test_coverage_is_that_of_the_calibrated_intervals_that_are_predicted():
    """Known noise under a logarithm, too, which a prediction has at its own place, not at the target."""
    case = Case(y_transform=LOG)
    rows = {"noise_scale": 0.3 * case.y}
    case.model.calibrate(case.x, case.y, **rows)
    scores = case.model.evaluate(case.x, case.y, **rows)
    ends = (0.1585, 0.8415)
    low, high = case.model.predict(
        case.x, include_noise=True, quantiles=ends, **rows
    ).columns.quantiles
    inside = np.mean((case.y > low) & (case.y < high))
    assert scores["central_coverage"][0.683] == pytest.approx(inside, abs=2e-3)


def test_outside_the_training_inputs_bars_never_become_narrower():
    x = np.array([[1e3, 1e3], [2.0, 2.0]])
    for factor in (0.2, 3.0):
        case = Case(factor)
        plain = case.model.predict(x, include_noise=True, quantiles=EDGES)
        case.model.calibrate(case.x, case.y)
        found = case.model.predict(x, include_noise=True, quantiles=EDGES, return_trust=True)
        assert found.trust[0] == -1 and found.trust[1] >= 0
        width, wider = (np.ptp(one.quantiles, axis=0)[:, 0] for one in (plain, found))
        if factor < 1:
            np.testing.assert_allclose(found.quantiles[:, 0], plain.quantiles[:, 0], rtol=1e-12)
            np.testing.assert_allclose(found.stddev[0], plain.stddev[0], rtol=1e-12)
            assert wider[1] < 0.5 * width[1]
        else:
            assert np.all(wider > 2 * width)


def test_scores_of_rows_outside_are_those_of_the_posterior():
    case = Case(0.2)
    x = np.tile([[1e3, 1e3]], (5, 1))
    y = case.targets(x, 9)
    before = case.model.evaluate(x, y)
    case.model.calibrate(case.x, case.y)
    assert str(case.model.evaluate(x, y)) == str(before)


def calibration_of(spread, by="stddev"):
    """Return the calibration by scores as wide as the group of equal deviations they belong to."""
    ensemble = synthetic_ensemble((2, 5, spread.shape[1]))
    rows = NetworkRows(np.zeros((len(spread), 2)), spread * spread, None)
    rows.y[::2] *= -1.0
    return calibration_of_moments(ensemble, rows, np.zeros_like(spread), spread, by, "split")


def test_equal_deviations_are_in_the_group_that_predictions_like_them_get():
    """Also where another target has others; rounding apart, which tells no predictions apart."""
    spread = np.repeat([0.1, 0.2, 0.4], [500, 300, 200])[:, None]
    spread = spread * (1.0 + 1e-8 * np.random.default_rng(0).normal(size=spread.shape))
    both = np.hstack([spread, np.linspace(1.0, 2.0, 1000)[:, None]])
    for found in (calibration_of(spread), calibration_of(both)):
        assert [len(group[0].scores) for group in found.groups] == [500, 300, 200]
        np.testing.assert_allclose(found.edges[:, 0], [0.15, 0.3], rtol=1e-6)
        inside = found.groups_of(
            np.repeat([[0.1], [0.2], [0.4]], found.edges.shape[1], 1), np.ones(3)
        )
        assert inside[:, 0].tolist() == [0, 1, 2]


def test_many_deviations_that_differ_by_little_have_groups():
    """A hundred thousand within two per cent lie nearer to each other than rounding."""
    spread = np.linspace(1.0, 1.02, 100_000)[:, None] * [1.0, 2.0]
    first = first_rows(np.random.default_rng(0).permuted(spread, axis=0))
    np.testing.assert_array_equal(first, [33_333, 66_666])


def test_few_of_one_deviation_are_no_group():
    spread = np.repeat([0.1, 0.2], [300, 40])[:, None]
    with pytest.raises(ValueError, match="needs predicted standard deviations that differ"):
        calibration_of(spread)
    assert calibration_of(spread, "auto").by is None


def test_groups_by_trust_are_those_inside_and_at_the_edge():
    case = Case(num_rows=20)
    inputs = case.ensemble.training_inputs
    ring = np.random.default_rng(0).uniform(-1.0, 1.0, size=(1500, 2))
    low, high = inputs.low - 0.09 * (inputs.high - inputs.low), inputs.high
    x = case.ensemble.x_pipeline.inverse(low + (high - low) * (ring + 1.0) / 2.0)
    y = case.targets(x, 3)
    record = case.model.calibrate(x, y, by="trust")
    assert len(record.groups) == 2 and "at their edge" in record.summary()
    found = case.model.predict(x, include_noise=True, return_trust=True)
    assert np.isfinite(found.stddev).all()


@pytest.mark.parametrize(
    ("by", "configuration"),
    [(None, {}), ("stddev", {"layer_sizes": (2, 5, 2)})],
    ids=["one", "two"],
)
def test_a_file_holds_the_calibration(by, configuration, tmp_path):
    case = Case(**configuration)
    record = case.model.calibrate(case.x, case.y, by=by)
    case.model.save(tmp_path / "model.h5")
    loaded = tfbnn.load(tmp_path / "model.h5")
    assert loaded.calibration.summary() == record.summary()
    expected = case.model.predict(case.x[:90], include_noise=True, quantiles=EDGES)
    found = loaded.predict(case.x[:90], include_noise=True, quantiles=EDGES)
    np.testing.assert_array_equal(found.quantiles, expected.quantiles)
    np.testing.assert_array_equal(found.stddev, expected.stddev)


BAD_ENTRIES = {
    "method": ("method", "guess", "calibration.method must be 'split' or 'loo'"),
    "by": ("by", "name", "calibration.by must be null"),
    "sizes": ("sizes", [300, 301], "calibration.sizes must be of"),
    "small groups": ("sizes", [290, 10], "at least 20"),
    "edges": ("edges", [[0.1]], "calibration.edges must be 0"),
    "tails": ("tails", [[[[-1.0, 4.0]] * 2]], "calibration.tails must be scales"),
    "degrees": ("tails", [[[[1.0, 1e9]] * 2]], "calibration.tails must be scales"),
    "coverage": ("coverage_after", [[0.5]], "coverage_after must have the shape"),
    "text": ("num_rows", "many", "calibration.num_rows must be an integer"),
}


@pytest.fixture(scope="module")
def calibrated_file(tmp_path_factory):
    case, path = Case(), tmp_path_factory.mktemp("calibrated") / "model.h5"
    case.model.calibrate(case.x, case.y)
    case.model.save(path)
    return path


@pytest.mark.parametrize("bad", BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_files_with_a_crafted_calibration_are_refused(bad, calibrated_file, tmp_path):
    name, value, message = bad
    edit = rewrite("calibration", name, value=value)
    refused_after(edit, shutil.copy(calibrated_file, tmp_path), message)


def test_scores_that_do_not_ascend_are_refused():
    case = Case()
    before = case.model.predict(case.x)
    record = case.model.calibrate(case.x, case.y)
    # Without noise predictions stay those of the posterior.
    np.testing.assert_array_equal(case.model.predict(case.x).stddev, before.stddev)
    with pytest.raises(ValueError, match="calibration.scores must be ascending"):
        Calibration.from_json(record.to_json(), record.scores[::-1])


def test_what_cannot_be_calibrated_is_refused():
    case = Case()
    both = case.x, case.y
    for rows, options, words in (
        ((case.x[:10], case.y[:10]), {}, "at least 20 rows .* received 10"),
        ((case.x[:100], case.y[:100]), {"by": "stddev"}, "at least 150 .* received 50 and 50"),
        (both, {"by": "inputs"}, "by must be None"),
        (both[:1], {}, "needs x_calibration and y_calibration"),
        (both, {"method": "loo"}, "method='loo' takes the rows of the fit"),
        ((), {"method": "loo"}, "method='loo' needs the training rows"),
    ):
        with pytest.raises(ValueError, match=words):
            case.model.calibrate(*rows, **options)
    with pytest.raises(ValueError, match="calibrated=True needs a calibration"):
        case.model.predict(case.x, include_noise=True, calibrated=True)
    case.model.calibrate(case.x, case.y)
    with pytest.raises(ValueError, match="calibrated=True needs include_noise=True"):
        case.model.predict(case.x, calibrated=True)
    classes = synthetic_ensemble(likelihood=Bernoulli(), classes=("no", "yes"))
    labels = np.resize(["no", "yes"], len(case.x))
    with pytest.raises(ValueError, match="calibrate is about noise around the outputs.*Bernoulli"):
        BayesianMLP.from_ensemble(classes).calibrate(case.x, labels)


def test_stacking_and_compression_drop_the_calibration_and_say_so():
    case = Case()
    case.model.calibrate(case.x, case.y)
    with pytest.warns(UserWarning, match="compress chose.*Call calibrate again"):
        small = case.model.compress(10, "stride")
    assert small.calibration is None and case.model.calibration is not None
    with pytest.warns(UserWarning, match="stack_chains weighs.*Call calibrate again"):
        case.model.stack_chains(case.x, case.y)
    assert case.model.calibration is None


def test_rows_of_the_fit_are_recognised():
    case = Case()
    matrix = case.y.reshape(len(case.x), -1)
    digests = row_digests(Rows(case.x[:200], matrix[:200], None, None))
    model = BayesianMLP.from_ensemble(replace(case.ensemble, row_digests=digests))
    with pytest.raises(ValueError, match="received 300 of which 200 are rows of the fit"):
        model.calibrate(case.x, case.y)
    with pytest.warns(UserWarning, match="50 of the 150 rows have the values of rows of the fit"):
        model.calibrate(case.x[150:], case.y[150:])


@pytest.mark.parametrize("num_later", [3, 20, 1000])
def test_digests_of_two_fits_tell_the_rows_of_both(num_later):
    """Also where one has kept a share of its own, and rows are there twice."""
    generator = np.random.default_rng(0)

    def rows(count):
        x = generator.normal(size=(count, 2))
        return Rows(x, x[:, :1], None, None)

    many, later, new = rows(100_000), rows(num_later), rows(1000)
    many = Rows(np.repeat(many.x, 2, 0), np.repeat(many.y, 2, 0), None, None)
    known = merged_digests(row_digests(later), row_digests(many))
    some = Rows(many.x[:10_000], many.y[:10_000], None, None)
    assert abs(num_known(known, some) - 10_000) < 1500 and num_known(known, new) < 50


def test_of_many_rows_a_share_of_the_digests_is_enough():
    generator = np.random.default_rng(0)
    x, y = (generator.normal(size=(3 * MOST_DIGESTS, width)) for width in (2, 1))
    digests = row_digests(Rows(x, y, None, None))
    assert len(digests) == MOST_DIGESTS and np.all(np.diff(digests.astype(np.int64)) >= 0)
    assert num_known(digests, Rows(x[:9000], y[:9000], None, None)) == 9000
    assert num_known(digests, Rows(x[:9000] + 1.0, y[:9000], None, None)) <= 3


def test_function_alone_scores_without_noise():
    case = Case()
    x, y = make_rows(40, 2, 1, seed=8)
    found = case.model.evaluate(x, y, include_noise=False)
    draws = case.model.predict_draws(x, space="transformed")[..., 0]
    target = case.ensemble.y_pipeline.forward(y)[:, 0]
    pull = (target - draws.mean(axis=0)) / draws.std(axis=0)
    assert found["coverage"][1] == pytest.approx(np.mean(np.abs(pull) < 1))
    assert found["pull_width"] == pytest.approx(pull.std())
    assert "log_predictive_density" not in found
    assert found["rmse"] == case.model.evaluate(x, y)["rmse"]


def test_groups_of_repeated_inputs_can_be_saved(tmp_path):
    """Rows of the same inputs have the same bars, and are in one group for every target."""
    model = BayesianMLP.from_ensemble(synthetic_ensemble((2, 5, 2)))
    generator = np.random.default_rng(0)
    x, y = make_rows(750, 2, 2, seed=1)
    some = generator.integers(750, size=1500)
    model.calibrate(x[some], y[some] + generator.normal(size=(1500, 2)), by="stddev")
    model.save(tmp_path / "m.h5")
    assert tfbnn.load(tmp_path / "m.h5").posterior.calibration.by == "stddev"


def test_rows_of_a_few_settings_are_not_taken_for_those_of_the_fit():
    generator = np.random.default_rng(0)
    old, new = (generator.integers(1, 6, size=(size, 3)).astype(float) for size in (1000, 900))
    digests = row_digests(Rows(old[:, :2], old[:, 2:], None, None))
    model = BayesianMLP.from_ensemble(replace(synthetic_ensemble(), row_digests=digests))
    with pytest.warns(UserWarning, match="rows have the values of rows of the fit. If they are"):
        model.calibrate(new[:, :2], new[:, 2:])
    rows = generator.normal(size=(1000, 3))
    digests = row_digests(Rows(rows[:, :2], rows[:, 2:], None, None))
    model = BayesianMLP.from_ensemble(replace(synthetic_ensemble(), row_digests=digests))
    with pytest.raises(ValueError, match="of which 1000 are rows of the fit"):
        model.calibrate(rows[:, :2], rows[:, 2:])
