"""A perceptron whose layers and noise wait for rows."""

import math

import numpy as np
import pytest

import tfbnn
from tfbnn.exceptions import NotFittedError
from tfbnn.likelihoods import Bernoulli, Categorical, Gaussian, HeteroscedasticGaussian, StudentT
from tfbnn.priors import ARD, Normal
from tfbnn.spec.open_spec import HIDDEN_LAYERS

X = np.random.default_rng(0).normal(size=(12, 3))
Y = X[:, :2] + 0.5
NOISES = [Gaussian, HeteroscedasticGaussian, StudentT]


def candidates(model, x=X, y=Y):
    first = model.asked.for_rows(x, y, "refuse")
    return [first, *first.others]


@pytest.mark.parametrize("layer_sizes", ["auto", [3, "auto", 2], ["auto", "auto", 2]])
def test_rows_say_how_many_inputs_and_targets_there_are(layer_sizes):
    found = candidates(tfbnn.BayesianMLP(layer_sizes))
    expected = [
        (kind, (3, *hidden, 4 if kind is HeteroscedasticGaussian else 2))
        for kind in NOISES
        for hidden in HIDDEN_LAYERS
    ]
    *found, infinite = found
    assert [(type(spec.likelihood), spec.layer_sizes) for spec in found] == expected
    assert infinite.layer_sizes == (3, math.inf, 2) and isinstance(infinite.likelihood, Gaussian)
    assert tfbnn.BayesianMLP(np.array([3, math.inf, 2])).spec.layer_sizes == infinite.layer_sizes
    assert not any(spec.others for spec in (*found[1:], infinite))


@pytest.mark.parametrize(
    "likelihood, y, num_outputs",
    [
        (StudentT(df=5.0), Y, 2),
        (HeteroscedasticGaussian(), Y[:, 0], 2),
        (Categorical(), [3, 5, 9] * 4, 3),
        (Categorical(), [0.0, 1.0, 2.0] * 4, 3),
        (Bernoulli(), [0, 1] * 6, 1),
    ],
)
def test_a_likelihood_that_is_given_leaves_the_layers_alone_open(likelihood, y, num_outputs):
    model = tfbnn.BayesianMLP(likelihood=likelihood, activation="relu", dtype="float64")
    found = candidates(model, y=y)
    sizes = [(3, *hidden, num_outputs) for hidden in HIDDEN_LAYERS]
    assert [spec.layer_sizes for spec in found] == sizes
    assert {type(spec.likelihood) for spec in found} == {type(likelihood)}
    assert {(spec.activations[0], spec.dtype) for spec in found} == {("relu", "float64")}
    given = tfbnn.BayesianMLP([3, "auto", num_outputs], likelihood=likelihood)
    assert [spec.layer_sizes for spec in candidates(given, y=y)] == sizes


@pytest.mark.parametrize(
    "labels, kind, num_outputs",
    [
        (["up", "down"] * 6, Bernoulli, 1),
        (["up", "down", "strange"] * 4, Categorical, 3),
        ([True, False] * 6, Bernoulli, 1),
        ([1, 2, 3] * 4, Gaussian, 1),
        ([1.0, 2.0, 3.0] * 4, Gaussian, 1),
    ],
)
@pytest.mark.parametrize("dtype", [None, object])
def test_text_and_flags_are_classes_and_numbers_are_numbers(labels, kind, num_outputs, dtype):
    (first, *_) = candidates(tfbnn.BayesianMLP(), y=np.array(labels, dtype))
    assert type(first.likelihood) is kind and first.layer_sizes[-1] == num_outputs


def test_columns_of_text_count_as_the_inputs_they_become():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "b": ["u", "v", "w"] * 4})
    (first, *_) = candidates(tfbnn.BayesianMLP(), x=frame)
    assert first.layer_sizes[0] == 4


def test_noise_of_several_targets_leaves_the_layers_open():
    model = tfbnn.BayesianMLP(likelihood=Gaussian([0.1, 0.2]))
    spec = model.asked.for_rows(np.ones((9, 3)), np.ones((9, 2)), "refuse")
    assert spec.num_targets == 2 and model.get_config()["likelihood"]["noise_scale"] == [0.1, 0.2]


def test_layers_that_are_given_have_one_noise_scale():
    given = tfbnn.BayesianMLP([3, 50, 2])
    assert given.spec == tfbnn.BayesianMLP([3, 50, 2], likelihood=Gaussian("learned")).spec
    assert given.asked.for_rows(X, Y, "refuse") is given.spec and not given.spec.others


def test_before_rows_a_model_says_what_is_open(capsys):
    model = tfbnn.BayesianMLP()
    assert repr(model) == "<BayesianMLP layers by the rows, tanh, auto: not fitted>"
    model.summary()
    told = capsys.readouterr().out
    assert "one of 50, 20-20, 50-50" in told and "HeteroscedasticGaussian()" in told
    for ask in (
        model.count_params,
        lambda: model.spec,
        lambda: model.sample_prior(X),
        lambda: model.log_prob([0.0], X, Y),
    ):
        with pytest.raises(NotFittedError, match="Give layer_sizes, or fit first"):
            ask()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"layer_sizes": [3, "auto", 1], "likelihood": StudentT(df=6.0), "prior": Normal(0.5)},
        {"prior": {"kernel": Normal(2.0), "bias": Normal()}, "activation": "relu"},
    ],
)
def test_a_copy_by_config_has_the_same_open(settings):
    model = tfbnn.BayesianMLP(**settings)
    copy = tfbnn.BayesianMLP.from_config(model.get_config())
    assert copy.get_config() == model.get_config()
    assert candidates(copy, y=Y[:, 0]) == candidates(model, y=Y[:, 0])


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"layer_sizes": [3, "auto"]}, "or \\[inputs, 'auto', outputs\\]"),
        ({"layer_sizes": [3, "auto", "auto", 1]}, "or \\[inputs, 'auto', outputs\\]"),
        ({"activation": ["tanh", "relu"]}, "an entry for each layer"),
        ({"prior": [Normal(), Normal()]}, "an entry for each layer"),
        ({"prior": ARD()}, "one scale per input"),
        ({"layer_sizes": [3, "auto", 3], "likelihood": HeteroscedasticGaussian()}, "even last"),
    ],
)
def test_what_describes_no_model_is_refused_at_once(settings, words):
    with pytest.raises(ValueError, match=words):
        tfbnn.BayesianMLP(**settings)
    with pytest.raises(TypeError, match="likelihood must be one of"):
        tfbnn.BayesianMLP(likelihood="gaussian")
