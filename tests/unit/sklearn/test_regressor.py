"""`BayesianMLPRegressor` around fits that sample nothing: settings, rows, predictions, refusals."""

import inspect
import pickle
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context, exceptions
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tfbnn
from tfbnn.likelihoods import Bernoulli, Gaussian, HeteroscedasticGaussian, StudentT
from tfbnn.posterior.provenance import Provenance
from tfbnn.sklearn import BayesianMLPRegressor, UnconvergedWarning

pytestmark = pytest.mark.usefixtures("fits")
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(40, 3))
Y = X[:, 0] - X[:, 1] ** 2 + 0.1 * GENERATOR.normal(size=40)


def test_settings_reach_the_model_and_its_fit(fits):
    settings = dict(
        hidden_layer_sizes=(7, 4), activation=["relu", "sin"], prior=tfbnn.priors.Normal(2.0),
        likelihood=Gaussian(0.3), parameterization="ntk", x_transform=None, y_transform=None,
        dtype="float64",
    )  # fmt: skip
    of_fit = dict(
        missing="indicator", kernel=tfbnn.kernels.HMC(num_leapfrog_steps=3), until=tfbnn.Until(ess=50),
        max_seconds=60.0, num_chains=3, num_results=40, num_burnin_steps=30,
        num_steps_between_results=1, pretraining=None, likelihood_power=0.5, effort=0.1,
        calibrate=False, jit_compile=False, verbose=1,
    )  # fmt: skip
    BayesianMLPRegressor(**settings, **of_fit, random_state=5).fit(X, Y)
    (call,) = fits.calls
    settings["layer_sizes"] = [3, *settings.pop("hidden_layer_sizes"), 1]
    assert call.asked == tfbnn.BayesianMLP(**settings).spec
    assert call.options == of_fit | {"seed": 5}


def test_defaults_are_those_of_the_model_and_its_fit(fits):
    estimator = BayesianMLPRegressor(random_state=0).fit(X, Y)
    assert fits.calls[0].asked == tfbnn.BayesianMLP([3, 50, 1]).spec
    by_name = estimator.get_params()
    for function in (tfbnn.BayesianMLP.__init__, tfbnn.BayesianMLP.fit_posterior):
        for name, parameter in inspect.signature(function).parameters.items():
            if name in by_name and name not in ("likelihood", "effort", "verbose"):
                assert by_name[name] == parameter.default, name


def test_hidden_layers_are_a_number_or_several(fits):
    for sizes in (4, (4, 5), [6], ()):
        BayesianMLPRegressor(hidden_layer_sizes=sizes).fit(X, Y)
    # Noise that is learned has outputs of its own.
    BayesianMLPRegressor((2,), likelihood=HeteroscedasticGaussian()).fit(X, Y)
    found = [call.asked.layer_sizes for call in fits.calls]
    assert found == [(3, 4, 1), (3, 4, 5, 1), (3, 6, 1), (3, 1), (3, 2, 2)]


def test_random_state_is_a_seed_or_gives_one(fits):
    for state in (3, np.random.RandomState(1), np.random.RandomState(1), None, None):
        BayesianMLPRegressor(random_state=state).fit(X, Y)
    seeds = [call.options["seed"] for call in fits.calls]
    assert seeds[0] == 3 and seeds[1] == seeds[2] and len(set(seeds)) == 4


def test_shapes_follow_the_targets():
    two = np.column_stack([Y, -Y])
    for targets in (Y, Y[:, None], two):
        estimator = BayesianMLPRegressor(random_state=0).fit(X, targets)
        mean, std = estimator.predict(X[:5], return_std=True)
        assert mean.shape == std.shape == targets[:5].shape and mean.dtype == np.float64
        np.testing.assert_array_equal(mean, estimator.predict(X[:5]))
        found = estimator.predict_quantiles(X[:5], [0.1, 0.5, 0.8, 0.9])
        assert found.shape == (5, 4, *targets.shape[1:])
        assert np.all(np.diff(found, axis=1) > 0)
        interval = estimator.predict_interval(X[:5], alpha=0.2)
        np.testing.assert_allclose(interval, estimator.predict_quantiles(X[:5], [0.1, 0.9]))
        d = estimator.model_.predict_distribution(X[:5])
        np.testing.assert_allclose(interval, np.stack(d.interval(0.8), axis=1), rtol=1e-9)
    of_targets = estimator.model_.evaluate(X, two)["r2"]
    assert estimator.score(X, two) == pytest.approx(np.mean(of_targets))


def test_the_std_is_that_of_a_new_target_unless_asked_otherwise():
    estimator = BayesianMLPRegressor(random_state=0).fit(X, Y)
    _, std = estimator.predict(X, return_std=True)
    _, of_function = estimator.predict(X, return_std=True, include_noise=False)
    np.testing.assert_array_equal(std, estimator.model_.predict(X, include_noise=True).stddev)
    np.testing.assert_array_equal(of_function, estimator.model_.predict(X).stddev)
    assert np.all(std > of_function)


def test_predictions_leave_pickles_as_they_are():
    estimator = BayesianMLPRegressor(random_state=0).fit(X, Y)
    size = len(pickle.dumps(estimator))
    mean = estimator.predict(X)
    again = pickle.dumps(estimator)
    assert len(again) == size
    np.testing.assert_array_equal(pickle.loads(again).predict(X), mean)


def test_known_noise_goes_to_the_fit_and_is_asked_for_again(fits):
    noise = np.full(40, 0.2)
    estimator = BayesianMLPRegressor(random_state=0).fit(X, Y, noise_scale=noise)
    np.testing.assert_array_equal(fits.calls[0].rows.noise[:, 0], noise)
    with pytest.raises(ValueError, match="noise_scale"):
        estimator.predict(X, return_std=True)
    _, std = estimator.predict(X[:2], return_std=True, noise_scale=[0.2, 20.0])
    assert std[1] > 5 * std[0]


def test_names_are_kept_and_asked_for(fits):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    target = pd.Series(Y, name="mass")
    estimator = BayesianMLPRegressor(random_state=0).fit(frame, target)
    assert list(estimator.feature_names_in_) == ["a", "b", "c"] and estimator.n_features_in_ == 3
    assert estimator.model_.posterior.feature_names == ("a", "b", "c")
    assert fits.calls[0].y is target  # whose name the model keeps


def test_weights_count_rows_whose_copies_stay_together(fits):
    counts, noise = np.arange(40) % 3, np.linspace(0.1, 0.2, 40)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    BayesianMLPRegressor().fit(frame, pd.Series(Y), counts, noise_scale=noise)
    rows, indices = fits.calls[0].rows, np.repeat(np.arange(40), counts)
    np.testing.assert_array_equal(rows.x, X[indices])
    np.testing.assert_array_equal(rows.y[:, 0], Y[indices])
    np.testing.assert_array_equal(rows.noise[:, 0], noise[indices])
    same = indices[:, None] == indices
    np.testing.assert_array_equal(rows.groups[:, None] == rows.groups, same)
    # With labels of the user's own, these say what belongs together.
    BayesianMLPRegressor().fit(X, Y, counts, groups=np.arange(40) // 10)
    assert len(np.unique(fits.calls[1].rows.groups)) == 4
    BayesianMLPRegressor().fit(X, Y, np.ones(40))
    assert fits.calls[2].rows.groups is None


def test_weights_that_are_no_counts_are_refused_with_the_reason(fits):
    estimator = BayesianMLPRegressor()
    for weights, words in (
        (np.full(40, 0.5), "whole numbers, 0 or more, received 0.5. .* noise_scale="),
        (np.full(40, -1), "whole numbers, 0 or more, received -1"),
        (np.zeros(40), "zero for all rows"),
        (np.ones(39), r"shape \[40\], received \[39\]"),
    ):
        with pytest.raises(ValueError, match=words):
            estimator.fit(X, Y, weights)
    with pytest.raises(TypeError, match="unexpected keyword argument 'epochs'"):
        estimator.fit(X, Y, epochs=3)
    assert not fits.calls


@pytest.mark.parametrize(
    "settings, error, match",
    [
        ({"likelihood": Bernoulli()}, TypeError, "BayesianMLPClassifier"),
        ({"likelihood": "gaussian"}, TypeError, "Did you mean 'Gaussian\\(\\)'?"),
        ({"hidden_layer_sizes": 0}, ValueError, "layer_sizes.* must be at least 1"),
        ({"hidden_layer_sizes": 2.5}, TypeError, "layer_sizes.* must be"),
        ({"random_state": "seed"}, ValueError, "seed"),
        ({"activation": "bent"}, ValueError, "activation must be one of"),
    ],
)
def test_bad_settings_are_refused_by_the_fit(fits, settings, error, match):
    estimator = BayesianMLPRegressor(**settings)
    with pytest.raises(error, match=match):
        estimator.fit(X, Y)
    assert not fits.calls and not hasattr(estimator, "model_")


def test_searches_and_pipelines_take_it(fits):
    pipeline = make_pipeline(StandardScaler(), BayesianMLPRegressor(random_state=0))
    grid = {"bayesianmlpregressor__hidden_layer_sizes": [3, (4, 2)]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, Y)
    assert len(fits.calls) == 7 and search.predict(X).shape == Y.shape


def test_text_of_numbers_is_fitted_as_numbers_and_booleans_are_refused(fits):
    words = pd.Series(["1.5", "2.5"] * 20, name="price")
    BayesianMLPRegressor().fit(X, words)
    assert isinstance(fits.calls[0].asked.likelihood, Gaussian) and fits.calls[0].y.dtype == float
    with pytest.raises(TypeError, match="y must hold real numbers, received booleans"):
        BayesianMLPRegressor().fit(X, X[:, 0] > 0)


@pytest.mark.parametrize("kind", [float, object, "Float64", str])
def test_frames_of_any_type_keep_the_names_of_targets(fits, kind):
    targets = pd.DataFrame({"a": Y, "b": Y + 1.0})
    noise = pd.DataFrame({"b": np.full(40, 9.0), "a": np.full(40, 0.1)})
    BayesianMLPRegressor().fit(X, targets.astype(kind), noise_scale=noise)
    np.testing.assert_allclose(fits.calls[0].rows.noise[0], [0.1, 9.0])
    np.testing.assert_allclose(fits.calls[0].rows.y, targets)


def test_scores_order_targets_by_name(fits):
    targets = pd.DataFrame({"a": Y, "b": Y + 1.0})
    regressor = BayesianMLPRegressor(random_state=0).fit(X, targets)
    regressor.model_._ensemble = replace(
        regressor.model_.posterior, provenance=Provenance().stating(target_names=["a", "b"])
    )
    assert regressor.score(X, targets[["b", "a"]]) == regressor.score(X, targets)
    with pytest.raises(ValueError, match="y has the index of X in another order"):
        regressor.score(pd.DataFrame(X), targets[::-1])


@pytest.mark.parametrize("rows, noise", [(40, 30), (30, 35)])
def test_weights_do_not_hide_rows_of_another_number(fits, rows, noise):
    weights = np.ones(30)
    weights[3] = 2.0
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        BayesianMLPRegressor().fit(X[:rows], Y[:30], weights, noise_scale=np.ones(noise))


def test_noise_is_cut_with_the_rows_of_a_fold(fits):
    noise = np.linspace(0.1, 0.5, 40)
    cross_validate(BayesianMLPRegressor(), X, Y, cv=4, params={"noise_scale": noise})
    assert [len(call.rows.noise) for call in fits.calls] == [30] * 4


@pytest.mark.parametrize("likelihood", [Gaussian(0.3), StudentT(4.0, 0.3)])
def test_predictions_under_a_logarithm_are_means_of_targets(likelihood):
    """The estimator predicts means where they exist; predict of the model gives the function."""
    estimator = BayesianMLPRegressor(y_transform="log10", likelihood=likelihood, random_state=0)
    estimator.fit(X, np.exp(Y))
    function = estimator.model_.predict(X).mean
    factor = np.exp(0.5 * (0.3 * np.log(10.0)) ** 2) if likelihood == Gaussian(0.3) else 1.0
    np.testing.assert_allclose(estimator.predict(X), factor * function, rtol=1e-4)
    r2 = estimator.model_.evaluate(X, np.exp(Y))["r2"]
    assert estimator.score(X, np.exp(Y)) == pytest.approx(r2, rel=1e-4)


def test_groups_are_cut_with_the_rows_of_a_fold_and_split_by(fits):
    """The estimator asks for groups here, and GroupKFold does by itself."""
    groups = np.repeat(np.arange(8), 5)
    with config_context(enable_metadata_routing=True):
        estimator = BayesianMLPRegressor().set_fit_request(groups=True)
        cross_validate(estimator, X, Y, cv=GroupKFold(4), params={"groups": groups})
    assert [len(set(call.rows.groups)) for call in fits.calls] == [6] * 4


def test_a_bad_verdict_is_told_once_in_the_words_of_both(fits):
    fits.diagnosis = SimpleNamespace(verdict="not yet", headline="not yet (2 problems)")
    with pytest.warns(UnconvergedWarning, match="not yet .2 problems.*run_.report") as told:
        BayesianMLPRegressor().fit(X, Y)
    (warning,) = told
    assert issubclass(warning.category, exceptions.ConvergenceWarning)
    assert issubclass(warning.category, tfbnn.ConvergenceWarning)
    assert warning.filename == __file__
    # Error bars that hold are no reason to warn, whatever the chains did.
    fits.diagnosis = SimpleNamespace(verdict="calibrated predictions", headline="")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnconvergedWarning)
        BayesianMLPRegressor().fit(X, Y)


def test_columns_of_text_take_part():
    frame = pd.DataFrame({"mass": X[:, 0], "colour": ["red", "green", "blue", "red"] * 10})
    regressor = BayesianMLPRegressor(random_state=0).fit(frame, Y)
    assert regressor.model_.spec.num_inputs == 1 + 3
    assert (regressor.n_features_in_, list(regressor.feature_names_in_)) == (2, [*frame.columns])
    in_double = tfbnn.BayesianMLP.from_ensemble(regressor.model_.posterior.in_double)
    np.testing.assert_array_equal(regressor.predict(frame), in_double.predict(frame).mean)
    with pytest.raises(ValueError, match="violet"):
        regressor.predict(frame.assign(colour="violet"))
    with pytest.raises(ValueError, match="feature names"):
        regressor.predict(frame[["colour", "mass"]])


def test_missing_values_take_part_where_they_are_asked_for(fits):
    gaps = X.copy()
    gaps[2:4, 1] = np.nan
    for rows in (gaps, pd.DataFrame(gaps, columns=list("abc"))):
        with pytest.raises(ValueError, match="received 2 NaN .* row 2, column 1.*'indicator'"):
            BayesianMLPRegressor().fit(rows, Y)
        assert not fits.calls
        regressor = BayesianMLPRegressor(missing="indicator").fit(rows, Y)
        assert fits.calls.pop().options["missing"] == "indicator"
        assert regressor.model_.spec.num_inputs == 4 and regressor.n_features_in_ == 3
    assert regressor.__sklearn_tags__().input_tags.allow_nan
    without = BayesianMLPRegressor(missing="indicator").fit(X, Y)
    with pytest.raises(
        ValueError, match="received 2 NaN .* row 2, column 1.*to rows with such gaps"
    ):
        without.predict(gaps)
    with pytest.raises(ValueError, match="missing must be one of"):
        BayesianMLPRegressor(missing="mean").fit(X, Y)


def test_what_numpy_would_take_the_numbers_of_is_refused(fits):
    dates = np.arange(len(Y)).astype("M8[s]")[:, None]
    frame = pd.DataFrame({"a": X[:, 0], "d": dates[:, 0]})
    for rows in (dates, pd.DataFrame(dates, columns=["d"]), frame):
        with pytest.raises(TypeError, match="dates.*dayofyear"):
            BayesianMLPRegressor().fit(rows, Y)
    with pytest.raises(TypeError, match="y must hold plain numbers, received .* the unit fb"):
        BayesianMLPRegressor().fit(X, Y.view(Quantity))
    with pytest.raises(ValueError, match="y has the index of X in another order"):
        BayesianMLPRegressor().fit(pd.DataFrame(X), pd.Series(Y)[::-1])
    turned = pd.Series(np.arange(len(Y)) + 1)[::-1]
    for name in ("noise_scale", "groups"):
        with pytest.raises(ValueError, match=f"{name} has the index of X in another order"):
            BayesianMLPRegressor().fit(pd.DataFrame(X), Y, **{name: turned})
    words = frame.assign(a=["u", "v"] * (len(Y) // 2))
    with pytest.raises(TypeError, match="column 'd' of X .* dates"):
        BayesianMLPRegressor().fit(words, Y)
    assert not fits.calls


class Quantity(np.ndarray):
    unit = "fb"


def test_counts_have_offsets_in_fits_and_predictions(fits):
    counts, offset = np.arange(40) % 5, np.linspace(0.0, 1.0, 40)
    estimator = BayesianMLPRegressor(likelihood=tfbnn.likelihoods.Poisson(), random_state=0)
    estimator.fit(X, counts, offset=offset)
    np.testing.assert_array_equal(fits.calls[0].rows.noise[:, 0], offset)
    mean, std = estimator.predict(X[:3], return_std=True, offset=offset[:3])
    d = estimator.model_.predict_distribution(X[:3], offset=offset[:3])
    np.testing.assert_allclose(mean, d.mean(), rtol=1e-5)
    np.testing.assert_allclose(std, d.std(), rtol=1e-5)
    found = estimator.predict_interval(X[:3], 0.2, offset=offset[:3])
    np.testing.assert_array_equal(found, d.quantile([0.1, 0.9]).T)
    for call in (estimator.predict, estimator.predict_interval):
        with pytest.raises(ValueError, match="needs offset"):
            call(X[:3])
        with pytest.raises(ValueError, match="offset must have shape"):
            call(X[:3], offset=offset)
        with pytest.raises(ValueError, match="offset has the index of . in another order"):
            call(pd.DataFrame(X), offset=pd.Series(offset)[::-1])
    mean = estimator.predict(X, offset=offset)
    assert estimator.score(X, counts, offset=offset) == r2_score(counts, mean)
    with pytest.raises(ValueError, match="needs offset"):
        estimator.score(X, counts)
