"""Models and settings that cannot be sampled are refused by name, before anything is compiled."""

import keras
import numpy as np
import pytest
import tf_keras
from keras import layers

import tfbnn
from tfbnn.likelihoods import Bernoulli, Categorical, Poisson
from tfbnn.priors import ARD, Normal, Uniform

pytestmark = pytest.mark.usefixtures("derivatives_taken_for_granted")


def stack(*inside, shape=(3,)):
    return keras.Sequential([keras.Input(shape), *inside, layers.Dense(1)], name="stack")


class Strange(layers.Layer):
    """A layer whose config does not say what it computes."""

    factor = 1.0

    def call(self, x):
        return self.factor * x


def strange():
    layer = Strange()
    model = stack(layer)
    layer.factor = 2.0
    return model


class Mixing(layers.Layer):
    def call(self, x):
        return x - keras.ops.mean(x, axis=0)


class Stubborn(layers.Layer):
    """Dropout that nobody can switch off."""

    def __init__(self, **named):
        super().__init__(**named)
        self.dropout = layers.Dropout(0.5)

    def call(self, x):
        return self.dropout(x, training=True)


class Unbuilt(keras.Model):
    def call(self, x):
        return x


class Named(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(1)
        self(np.zeros([1, 2]))

    def call(self, x):
        return {"y": self.dense(x)}

    def get_config(self):
        return {}


def several(num_inputs, num_outputs):
    row = [keras.Input((2,)) for _ in range(num_inputs)]
    ends = [layers.Dense(1)(layers.Concatenate()([*row, row[0]])) for _ in range(num_outputs)]
    return keras.Model(row, ends)


def with_nothing_to_sample():
    model = stack()
    model.trainable = False
    return model


def stateful():
    inside = [layers.LSTM(2, stateful=True), layers.Dense(1)]
    return keras.Sequential([keras.Input(batch_shape=(3, 4, 2)), *inside])


MODELS = {
    "tf_keras": (lambda: tf_keras.Sequential([tf_keras.layers.Dense(1)]), "tf_keras, Keras 2"),
    "a layer": (lambda: layers.Dense(1), "received a layer"),
    "no model": (lambda: "mlp", "received 'mlp'"),
    "unbuilt": (lambda: Unbuilt(name="new"), "'new', which has no weights yet. Call it once"),
    "two inputs": (lambda: several(2, 1), "with 2 inputs"),
    "two outputs": (lambda: several(1, 2), "with 2 outputs"),
    "a dict": (lambda: Named(), "gives a dict"),
    "nothing to sample": (with_nothing_to_sample, "nothing to sample"),
    "half precision": (lambda: stack(layers.Dense(2, dtype="mixed_float16")), "'mixed_float16'"),
    "images": (lambda: stack(shape=(4, 3)), r"gives \[None, 4, 1\]. End it with Flatten"),
    "no shape": (lambda: stack(layers.LSTM(2), shape=(None, 3)), "a definite shape"),
    "a function as layer": (lambda: stack(layers.Lambda(lambda x: 2 * x)), "names 'Lambda'"),
    "dropout for ever": (lambda: stack(Stubborn()), "a prediction changes .*seed_generator"),
    "rows that mix": (lambda: stack(Mixing()), "depend on the rows beside it"),
    "state": (stateful, "batches of 3.*stateful=False"),
    "another config": (strange, "gives other numbers when it is built again"),
}


@pytest.mark.parametrize(("make", "message"), MODELS.values(), ids=MODELS)
def test_a_model_is_refused_by_name(make, message):
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
        tfbnn.BayesianModel(make())


SETTINGS = [
    (dict(prior=3), TypeError, "a dict of patterns, or one of tfbnn.priors"),
    (dict(prior={"*/kernal": Normal(1)}), ValueError, r"'\*/kernal' of prior means"),
    (dict(prior={1: Normal(1)}), TypeError, "patterns of text"),
    (dict(prior={"*": "loose"}), TypeError, "received 'loose'"),
    (dict(prior={"*": "fixed"}), ValueError, "nothing to sample"),
    (dict(prior={"bias": ARD()}), ValueError, "one scale per input"),
    (dict(prior=Uniform(-1, 1), parameterization="ntk"), ValueError, "no scale that the ntk"),
    (dict(likelihood="gauss"), TypeError, "likelihood must be one of"),
    (dict(likelihood=Categorical()), ValueError, "received 1"),
    (dict(dtype="float16"), ValueError, "dtype must be one of"),
    (dict(x_transform="log"), ValueError, "x_transform"),
]


@pytest.fixture(scope="module")
def network():
    return stack(layers.Dense(2), layers.LayerNormalization())


@pytest.mark.parametrize(("settings", "error", "message"), SETTINGS, ids=str)
def test_settings_are_refused(network, settings, error, message):
    with pytest.raises(error, match=message):
        tfbnn.BayesianModel(network, **settings)


def test_a_scale_for_each_input_is_for_what_receives_the_inputs():
    model = stack(layers.Dense(3), layers.LayerNormalization(), layers.Dense(3, name="second"))
    message = "layer on the inputs alone, received it for 'stack/second/kernel'"
    with pytest.raises(ValueError, match=message):
        tfbnn.BayesianModel(model, prior={"*second/kernel": ARD()})


def _words(receive=lambda row: row):
    row = keras.Input((4,))
    words = layers.Embedding(10, 3)(receive(row))
    return keras.Model(row, layers.Dense(1)(layers.Flatten()(words)))


def _words_in_a_stack():
    return stack(layers.Embedding(10, 3), layers.Flatten(), shape=(4,))


def _words_in_a_stack_of_its_own():
    return stack(_words_in_a_stack(), shape=(4,))


@pytest.mark.parametrize(
    ("make", "word"),
    [(_words, 10.0), (_words_in_a_stack, -1.0), (_words_in_a_stack_of_its_own, 2.5)],
)
def test_words_that_are_not_in_the_table_are_refused_by_their_place(make, word):
    x = np.ones((5, 4))
    x[3, 1] = word
    model = tfbnn.BayesianModel(make())
    for fit in (model.fit_map, model.fit_posterior):
        message = f"x must number words from 0 to 9, received {word:g}; first in row 3, column 1"
        with pytest.raises(ValueError, match=message):
            fit(x, np.arange(5.0))


def test_what_is_looked_up_is_known_of_the_inputs_alone():
    assert tfbnn.BayesianModel(_words(lambda row: row[:, :2])).spec.network.num_words is None
    assert tfbnn.BayesianModel(stack(layers.LayerNormalization())).spec.network.num_words is None


def test_rows_of_another_shape_are_refused():
    model = tfbnn.BayesianModel(stack(layers.Flatten(), shape=(2, 2)))
    with pytest.raises(ValueError, match=r"shape \[N, 2, 2\], the inputs of the Keras model"):
        model.fit_posterior(np.zeros((5, 3, 2)), np.zeros(5))


def ending_in(*last):
    return keras.Sequential([keras.Input((3,)), *last])


def by_an_operation():
    start = keras.Input((3,))
    return keras.Model(start, keras.ops.sigmoid(layers.Dense(1)(start)))


# (What ends it, likelihood, name of the last operation), by which it is known whoever made it.
LINKED_TWICE = {
    "softmax": (["softmax"], Categorical(), "softmax"),
    "sigmoid, then Dropout": (["sigmoid", layers.Dropout(0.1)], Bernoulli(), "sigmoid"),
    "an operation": (None, Bernoulli(), "sigmoid"),
    "rates": (["exponential"], Poisson(), "exp"),
    "softplus": (["softplus"], Poisson(), "softplus"),
}


@pytest.mark.parametrize(("last", "likelihood", "ending"), LINKED_TWICE.values(), ids=LINKED_TWICE)
def test_probabilities_are_refused_where_the_likelihood_makes_them(last, likelihood, ending):
    num_outputs = 3 if likelihood == Categorical() else 1
    model = ending_in(layers.Dense(num_outputs, last[0]), *last[1:]) if last else by_an_operation()
    with pytest.raises(ValueError, match=f"ends in {ending}.*the likelihood has the link"):
        tfbnn.BayesianModel(model, likelihood=likelihood)


def test_numbers_between_0_and_1_are_sampled_with_other_noise():
    network = ending_in(layers.Dense(1, activation="sigmoid"))
    assert tfbnn.BayesianModel(network, y_transform=None).spec.num_outputs == 1


@pytest.mark.parametrize("last", [layers.Dense(2, activation="softplus"), layers.ReLU()], ids=type)
def test_outputs_that_no_transformed_target_fits_into_are_refused(last):
    network = ending_in(layers.Dense(2), last)
    with pytest.raises(ValueError, match="outputs are bounded. Pass y_transform=None"):
        tfbnn.BayesianModel(network)
    assert tfbnn.BayesianModel(network, y_transform=None).spec.y_transform == ()


def test_outputs_that_a_layer_without_bounds_ends_are_taken():
    for last in (layers.LayerNormalization(), layers.Rescaling(0.1), layers.LeakyReLU()):
        tfbnn.BayesianModel(ending_in(layers.Dense(2, activation="tanh"), layers.Dense(2), last))


@pytest.mark.parametrize("inside", [[], [layers.Rescaling(1.0)]], ids=["stack", "layers"])
def test_constraints_on_what_is_sampled_are_refused(inside):
    def made(**named):
        dense = layers.Dense(2, kernel_constraint="non_neg", name="up", **named)
        return stack(dense, *inside)

    with pytest.raises(ValueError, match="received NonNeg on '.*up/kernel'"):
        tfbnn.BayesianModel(made())
    tfbnn.BayesianModel(made(trainable=False))


@pytest.mark.parametrize("inside", [[], [layers.Rescaling(1.0)]], ids=["stack", "layers"])
def test_what_keras_adds_to_the_loss_is_told(inside):
    dense = layers.Dense(2, kernel_regularizer="l2", name="small")
    active = layers.ActivityRegularization(0.1, name="active")
    told = [str(one) for one in tfbnn.BayesianModel(stack(dense, active, *inside)).spec.choices]
    assert any("prior stands for" in one and "of small, active" in one for one in told)
