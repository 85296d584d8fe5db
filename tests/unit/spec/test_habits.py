"""Unknown keyword arguments: the refusal says what may have been meant."""

import inspect
from functools import partial

import pytest

import tfbnn
from tests.support.builders import make_rows, synthetic_ensemble
from tfbnn.cli import main
from tfbnn.sklearn import BayesianMLPClassifier, BayesianMLPRegressor
from tfbnn.spec.habits import HINTS, explains_keywords


@explains_keywords
def fit(x, *, num_results=10, seed=0):
    """Fits."""
    return x, num_results, seed


def test_known_arguments_pass():
    assert fit(1, seed=3) == (1, 10, 3)
    assert fit(x=2, num_results=4) == (2, 4, 0)
    assert list(inspect.signature(fit).parameters) == ["x", "num_results", "seed"]
    assert fit.__doc__ == "Fits."


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("num_result", " Did you mean 'num_results'?"),
        ("draws", " Did you mean 'num_results'?"),
        (
            "epochs",
            " It belongs to the search for starts: "
            "fit_posterior(pretraining=tfbnn.Pretraining(epochs=..)).",
        ),
        ("xyzzy", ""),
    ],
)
def test_unknown_ones_are_explained(name, remedy):
    with pytest.raises(TypeError) as caught:
        fit(1, **{name: 5})
    assert str(caught.value) == f"fit() got an unexpected keyword argument {name!r}.{remedy}"


def test_estimators_have_a_random_state():
    words = r"^BayesianMLPRegressor\(\) got .*'seed'\. Did you mean 'random_state'"
    with pytest.raises(TypeError, match=words):
        BayesianMLPRegressor(seed=3)


def test_what_else_is_wrong_python_says():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        fit()


X, Y = make_rows(30, 2, 1)
# What users of other libraries try, and a part of the answer wherever it is not known.
WORDS = {
    "epochs": "Pretraining(epochs=..)",
    "verbose": "fit_posterior(verbose=..)",
    "quantiles": "predict_quantiles",
    "sample_weight": "noise_scale=",
    "time_limit": "max_seconds",
    "n_jobs": "all cores",
    "num_samples": "num_results",
    "random_state": "seed",
    "feature_importances_": "model.relevance()",
    "predict_interval": "predict_quantiles",
    "return_std": "stddev = model.predict(x)",
    "step_size": "HMC(step_size=..)",
    "tune": "num_burnin_steps",
    "validation_split": "Pretraining(validation_split=..)",
    "hidden_layer_sizes": "BayesianMLP([5, 20, 20, 1])",
    "optimizer": "likelihood= and the prior=",
}


@pytest.fixture(scope="module")
def entrances():
    """Functions that take a keyword argument: dict name -> function."""
    model = tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble())
    regressor, classifier = BayesianMLPRegressor(), BayesianMLPClassifier()
    return {
        "model": partial(tfbnn.BayesianMLP, [2, 3, 1]),
        "Keras model": partial(tfbnn.BayesianModel, None),
        "fit_posterior": partial(model.fit_posterior, X, Y),
        "predict": partial(model.predict, X),
        "evaluate": partial(model.evaluate, X, Y),
        "calibrate": partial(model.calibrate, X, Y),
        "regressor": BayesianMLPRegressor,
        "classifier": BayesianMLPClassifier,
        "regressor.fit": partial(regressor.fit, X, Y[:, 0]),
        "classifier.fit": partial(classifier.fit, X, Y[:, 0] > 1),
        "regressor.predict": partial(regressor.predict, X),
        "predict_quantiles": partial(regressor.predict_quantiles, X),
        "predict_proba": partial(classifier.predict_proba, X),
        "sample": partial(tfbnn.sample, None, None),
    }


@pytest.mark.parametrize("name", WORDS)
def test_every_entrance_says_what_a_word_of_other_libraries_is_here(entrances, name):
    for entrance, function in entrances.items():
        if name in inspect.signature(function).parameters:
            continue
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'") as caught:
            function(**{name: 1})
        said = str(caught.value)
        assert WORDS[name] in said and "\n" not in said, entrance


def test_attributes_of_estimators_say_so_too():
    owner = BayesianMLPRegressor()
    for name in set(HINTS) - set(dir(owner)):
        with pytest.raises(AttributeError, match=f"has no '{name}'"):
            getattr(owner, name)


@pytest.mark.parametrize("name", ["sample_weight", "time_limit", "n_jobs", "return_std", "loss"])
def test_so_does_the_command(name, capsys):
    option = f"--{name.replace('_', '-')}"
    assert main(["fit", "rows.csv", "--target", "y", option, "1"]) == 2
    said = capsys.readouterr().err
    assert f"unknown option {option}." in said
    words = WORDS | {"sample_weight": "noise_column"}  # the command's own
    assert words.get(name, "likelihood=") in said.replace("-", "_")


@pytest.mark.parametrize("likelihood", ["poison", lambda y, f: -((y - f) ** 2)])
def test_a_likelihood_of_ones_own_is_a_class(likelihood):
    for make in (
        lambda: tfbnn.BayesianMLP([2, 3, 1], likelihood=likelihood),
        lambda: BayesianMLPRegressor(likelihood=likelihood).fit(X, Y),
        lambda: BayesianMLPClassifier(likelihood=likelihood).fit(X, Y[:, 0] > 1),
    ):
        with pytest.raises(TypeError, match="likelihood must be one of .* CustomNoise"):
            make()


def test_parts_of_settings_objects_are_not_set_by_themselves():
    with pytest.raises(ValueError, match="kernel is set as a whole, received kernel__step_size"):
        BayesianMLPRegressor(kernel=tfbnn.kernels.HMC()).set_params(kernel__step_size=1)
    assert BayesianMLPRegressor().set_params(num_chains=3).num_chains == 3
