"""The network that is sampled, held to the model that was passed and to the perceptron it copies."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import tfbnn
from tests.support.builders import plain_spec
from tests.support.keras_models import KINDS, Residual
from tests.support.marks import statistics_but
from tests.support.tensorflow_log import tensorflow_log
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.gauss_newton import output_jacobian
from tfbnn.engine.density.network import hidden_units, network_outputs
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.export import tensorflow_forward
from tfbnn.engine.keras import keras_network, trial
from tfbnn.engine.keras.describing import counted_anew
from tfbnn.engine.kernels.smmala import SMMALA
from tfbnn.fit.handing_on import refuse_other_network
from tfbnn.priors import HierarchicalNormal, Normal
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.network_spec import draw_parameters

pytestmark = pytest.mark.usefixtures("derivatives_taken_for_granted")

CHEAP = ["subclassed"]
KERAS_ONLY = [name for name in KINDS if name != "dense"]


@keras.saving.register_keras_serializable("tests")
class Copy(keras.Model):
    """A perceptron that nobody recognises as one."""

    def __init__(self, **named):
        super().__init__(**named)
        self.inside = [layers.Dense(4, activation="tanh"), layers.Dense(3, activation="tanh")]
        self.last = layers.Dense(2)

    def call(self, x):
        for layer in self.inside:
            x = layer(x)
        return self.last(x)


@cache
def copied(**settings):
    """The spec of a copy."""
    model = Copy(name="copy")
    model(np.zeros((1, 3), "float32"))
    return tfbnn.BayesianModel(model, x_transform=None, y_transform=None, **settings).spec


def stacked(*inside, shape=(3,)):
    return keras.Sequential([keras.Input(shape), *inside])


def spec_of(*inside, shape=(3,), **settings):
    return tfbnn.BayesianModel(stacked(*inside, shape=shape), **settings).spec


def theta_of(spec, model):
    """The weights that a model has, as theta of the standard parameterisation."""
    values = [model.variables[one.index].numpy().ravel() for one in spec.sampled]
    theta = np.zeros(spec.num_parameters, spec.dtype)
    theta[: spec.layout.num_weights] = np.concatenate(values)
    return theta


@pytest.mark.parametrize("name", statistics_but(CHEAP, KERAS_ONLY))
@pytest.mark.parametrize("dtype", statistics_but(["float32"], ["float32", "float64"]))
def test_it_gives_what_the_model_gives(name, dtype):
    kind = KINDS[name]
    model, spec = kind.make(), kind.model(prior=Normal(1.0), dtype=dtype).spec
    x, _ = kind.rows(5)
    columns = tf.constant(x.reshape(5, -1).T, dtype)
    theta = np.stack([theta_of(spec, model)] * 2)
    given = network_outputs(spec, tf.constant(theta), columns).numpy()
    expected = model(x.astype("float32"), training=False).numpy().T
    assert given.dtype == dtype and given.shape == (2, *expected.shape)
    if dtype == "float32":
        np.testing.assert_allclose(given[0], expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(given, np.stack([expected] * 2), rtol=2e-5, atol=2e-5)
    # With rows of its own each network still has its own outputs.
    apart = tf.stack([columns, 2.0 * columns])
    of_first = network_outputs(spec, tf.constant(theta), apart).numpy()[0]
    np.testing.assert_array_equal(of_first, given[0])


COPIES = [("ntk", "float64", 1e-13), ("standard", "float32", 1e-6)]
COPIES += [("ntk", "float32", 1e-6), ("standard", "float64", 1e-13)]


@pytest.mark.parametrize(
    ("parameterization", "dtype", "tolerance"), statistics_but(COPIES[:1], COPIES)
)
def test_a_copy_of_a_perceptron_has_its_density(parameterization, dtype, tolerance):
    settings = dict(prior=HierarchicalNormal(), parameterization=parameterization, dtype=dtype)
    settings["likelihood"] = tfbnn.likelihoods.Gaussian("learned")
    spec, perceptron = copied(**settings), plain_spec([3, 4, 3, 2], **settings)
    assert not isinstance(spec, ModelSpec) and spec.num_parameters == perceptron.num_parameters
    generator = np.random.default_rng(0)
    theta = tf.constant(0.5 * generator.normal(size=(3, spec.num_parameters)), dtype)
    data = make_data(generator.normal(size=(40, 3)), generator.normal(size=(40, 2)), None, dtype)
    value, gradient = Potential(spec).value_and_gradient(theta, data)
    expected, slope = Potential(perceptron).value_and_gradient(theta, data)
    np.testing.assert_allclose(value, expected, rtol=tolerance)
    np.testing.assert_allclose(gradient, slope, rtol=10 * tolerance, atol=1e3 * tolerance)


@pytest.mark.parametrize("name", statistics_but(CHEAP, ["subclassed", "residual convolutional"]))
def test_derivatives_of_rows_are_those_of_a_tape(name):
    kind = KINDS[name]
    spec = kind.model(dtype="float64").spec
    generator = np.random.default_rng(2)
    theta = tf.constant(0.3 * generator.normal(size=spec.num_parameters))
    x = tf.constant(kind.rows(3)[0].reshape(3, -1).T)
    found, outputs = output_jacobian(spec, theta, x)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(theta)
        expected = network_outputs(spec, theta[None], x)[0]
    slopes = tape.jacobian(expected, theta, experimental_use_pfor=False)
    np.testing.assert_allclose(outputs, expected, rtol=1e-12)
    np.testing.assert_allclose(found, tf.transpose(slopes, [0, 2, 1]), rtol=1e-9, atol=1e-12)


@pytest.mark.statistics
def test_tensorflow_logs_nothing_of_the_derivatives_of_convolutions():
    spec = spec_of(layers.Conv2D(2, 2), layers.Flatten(), layers.Dense(1), shape=(3, 3, 1))
    with tensorflow_log() as records:
        output_jacobian(spec, tf.ones(spec.num_parameters), tf.ones((9, 2)))
    assert not records


def test_what_tensorflow_cannot_vectorise_is_named():
    theta, x = tf.ones(2, tf.float64), tf.ones((1, 3), tf.float64)
    assert keras_network.jacobian_obstacle(lambda theta, x: theta[:, None] * x, theta, x) is None

    def by_python(theta, x):
        sines = tf.ensure_shape(tf.py_function(np.sin, [x], tf.float64), x.shape)
        return theta[:, None] * sines

    found = keras_network.jacobian_obstacle(by_python, theta, x)
    assert "no derivatives of all rows' outputs" in found and "PyFunc" in found


def test_outputs_that_do_not_depend_smoothly_on_inputs_have_no_slope():
    network = keras.Sequential(
        [keras.Input((2,)), layers.Embedding(3, 2), layers.Flatten(), layers.Dense(1)]
    )
    spec = tfbnn.BayesianModel(network, likelihood=tfbnn.likelihoods.Gaussian(1.0)).spec
    draws = np.ones((1, 1, spec.num_parameters), spec.dtype)
    ensemble = SimpleNamespace(spec=spec, draws=draws, num_draws=1)
    outputs, slopes = tensorflow_forward.input_gradients(ensemble, np.array([[0.0, 2.0]]))
    assert outputs.shape == (1, 1, 1)
    np.testing.assert_array_equal(slopes, np.zeros((1, 1, 2, 1)))


@pytest.mark.statistics
def test_a_recurrent_layer_has_no_such_derivatives_and_says_so():
    spec = KINDS["recurrent"].model().spec
    assert "recurrent" in spec.network.no_jacobian
    with pytest.raises(
        ValueError, match="recurrent layer at once, unless it has unroll=True. Use kernel='nuts'"
    ):
        SMMALA().check_model(spec, row_noise=False)
    assert KINDS["attention"].model().spec.network.no_jacobian is None


@pytest.mark.parametrize("name", statistics_but(CHEAP, KERAS_ONLY))
def test_the_readout_is_found_and_gives_the_outputs(name):
    kind = KINDS[name]
    spec = kind.model(prior=Normal(1.0), dtype="float64").spec
    slots = spec.readout.layer
    theta = tf.constant(np.random.default_rng(4).normal(size=(2, spec.num_parameters)))
    x = tf.constant(kind.rows(4)[0].reshape(4, -1).T)
    features = hidden_units(spec, theta, x)
    kernel = tf.reshape(theta[:, slots.kernel.weights], [2, *slots.kernel.shape])
    bias = theta[:, slots.bias.weights][..., None]
    outputs = tf.matmul(kernel, features, transpose_a=True) + bias
    np.testing.assert_allclose(outputs, network_outputs(spec, theta, x), rtol=1e-10, atol=1e-12)


class Tied(keras.Model):
    """The last layer's kernel is also a variable of the model, so that its bias does not follow it."""

    def __init__(self, with_bias):
        super().__init__()
        self.hidden, self.out = layers.Dense(2, activation="tanh"), layers.Dense(2)
        for layer in (self.hidden, self.out):
            layer.build((None, 2))
        self.with_bias, self.first = with_bias, self.out.kernel
        if with_bias:
            self.second = self.hidden.bias
        self(np.zeros([1, 2]))

    def call(self, x):
        return self.out(self.hidden(x))

    def get_config(self):
        return {"with_bias": self.with_bias}


@pytest.mark.parametrize("with_bias", [False, True])
def test_a_bias_elsewhere_is_that_of_no_readout(with_bias):
    assert tfbnn.BayesianModel(Tied(with_bias)).spec.readout is None


def test_without_a_linear_last_layer_there_is_no_readout():
    ending = layers.Dense(4), layers.Dense(1, activation="tanh")
    assert spec_of(*ending, y_transform=None).readout is None
    for seed in range(2):  # a ReLU that does nothing to the trial rows
        keras.utils.set_random_seed(seed)
        inside = [layers.Dense(8, "tanh"), layers.Dense(1), layers.ReLU()]
        assert spec_of(*inside, y_transform=None).readout is None
    frozen = KINDS["batch norm"].make()
    frozen.get_layer("last").trainable = False
    assert tfbnn.BayesianModel(frozen).spec.readout is None


@pytest.mark.statistics
def test_a_layer_in_a_model_of_its_own_is_what_it_is_without():
    """The head of a network whose base is given; scales and shifts; units that a kernel adds up."""
    base = stacked(layers.Dense(4, "tanh"), shape=(6,))
    base.trainable = False
    spec = spec_of(base, stacked(layers.Dense(2), shape=(4,)), shape=(6,))
    assert spec.readout.layer.kernel.shape[0] == 4 and len(spec.sampled) == 2 == len(spec.frozen)
    for layer, shape in (
        (layers.TimeDistributed(layers.LayerNormalization()), (2, 3)),
        (layers.DepthwiseConv2D(3), (4, 4, 2)),
    ):
        found = []
        for first in (layer, stacked(layer, shape=shape)):
            spec = spec_of(first, layers.Flatten(), layers.Dense(1), shape=shape)
            found.append([(one.shape, one.fan_in, one.prior) for one in spec.sampled])
        assert found[0] == found[1]


def test_the_slopes_of_a_prelu_are_no_kernel():
    spec = spec_of(layers.Dense(4), layers.PReLU(), layers.Dense(1))
    assert [one.fan_in for one in spec.sampled] == [3, 1, 1, 4, 1]


def test_the_model_that_was_passed_stays_as_it_is():
    model = KINDS["batch norm"].make()
    before = [variable.numpy().copy() for variable in model.variables]
    spec = tfbnn.BayesianModel(model).spec
    theta = tf.constant(np.ones((1, spec.num_parameters), "float32"))
    network_outputs(spec, theta, tf.ones([3, 7]))
    for variable, value in zip(model.variables, before):
        np.testing.assert_array_equal(variable.numpy(), value)
    assert keras.config.floatx() == "float32"


def test_layers_of_ones_own_are_known_by_their_place():
    spec = KINDS["subclassed"].model(prior=Normal(1.0), dtype="float32").spec
    assert spec.facts.custom == (f"{Residual.__module__}:Residual",)


def test_an_edited_class_of_the_same_name_takes_the_place_of_the_old_one():
    def made(factor):
        class Edited(layers.Layer):
            def call(self, x):
                return factor * x

        inside = [
            keras.Input((3,), name="start"),
            Edited(name="edited"),
            layers.Dense(1, name="last"),
        ]
        return tfbnn.BayesianModel(keras.Sequential(inside, name="model")).spec

    old, new = made(1.0), made(3.0)
    assert old.facts == new.facts and old.architecture == new.architecture and old != new
    theta, x = tf.ones((1, old.num_parameters)), tf.ones((3, 1))
    of_old, of_new = (network_outputs(spec, theta, x).numpy().item() for spec in (old, new))
    assert of_new > of_old + 1.0
    assert network_outputs(old, theta, x).numpy().item() == of_old


def swapped(spec):
    first, bias, second, *others = spec.sampled
    exchanged = replace(first, index=second.index), bias, replace(second, index=first.index)
    return {"sampled": (*exchanged, *others)}


def widened(spec):
    architecture = json.loads(spec.architecture)
    for layer in architecture["config"]["layers"]:
        layer.pop("build_config", None)
        if layer["config"].get("units") == 3:
            layer["config"]["units"] = 60_000_000
    return {"architecture": json.dumps(architecture)}


BROKEN = {
    "swapped": swapped,
    "renamed": lambda spec: {"sampled": (replace(spec.sampled[0], path="x"), *spec.sampled[1:])},
    "fewer": lambda spec: {"sampled": spec.sampled[:-1]},
    "wide": widened,
}


@cache
def of_two_equal_layers():
    return spec_of(layers.Dense(3), layers.Rescaling(1.0), layers.Dense(3), layers.Dense(1))


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_variables_of_another_model_are_refused_before_they_are_made(change, monkeypatch):
    def build(*arguments):
        raise AssertionError("it is built")

    spec = of_two_equal_layers()
    monkeypatch.setattr(keras_network, "build", build)
    with pytest.raises(ValueError, match="not those of the Keras model's architecture: expected"):
        tfbnn.BayesianModel.from_spec(replace(spec, **change(spec)))


def _repeated(times):
    row = keras.Input((3,))
    rows = layers.RepeatVector(times)(row)
    return keras.Model(row, layers.Dense(1)(layers.GlobalAveragePooling1D()(rows)))


def _tiled(times):
    row = keras.Input((3,))
    wide = keras.ops.sum(keras.ops.tile(row, (1, times)), axis=1, keepdims=True)
    return keras.Model(row, layers.Dense(1)(wide))


@pytest.mark.parametrize("make", [_repeated, _tiled])
def test_a_file_that_asks_for_gigabytes_is_refused_before_anything_is_computed(make):
    spec = tfbnn.BayesianModel(make(7)).spec
    large = spec.architecture.replace('"n": 7', f'"n": {10**9}').replace("[1, 7]", f"[1, {10**9}]")
    assert large != spec.architecture
    with pytest.raises(ValueError, match=f"of a row at once, found one that computes {3 * 10**9}"):
        tfbnn.BayesianModel.from_spec(replace(spec, architecture=large))


def test_threads_record_their_own_calls():
    """As chains do that renew their maps at the same time."""
    spec = spec_of(layers.Dense(8, activation="tanh"), layers.Dense(1), shape=(3,))
    x = tf.constant(np.random.default_rng(0).normal(size=(3, 50)), spec.dtype)
    thetas = [
        tf.constant(draw_parameters(spec, np.random.default_rng(k))[None], spec.dtype)
        for k in range(4)
    ]
    alone = [hidden_units(spec, theta, x).numpy() for theta in thetas]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            found = list(pool.map(lambda theta: hidden_units(spec, theta, x).numpy(), thetas))
            for one, expected in zip(found, alone):
                np.testing.assert_array_equal(one, expected)


@cache
def of_words():
    return spec_of(layers.Embedding(10, 3), layers.Flatten(), layers.Dense(1), shape=(4,))


def test_a_file_that_lets_other_words_through_than_the_table_has_is_refused():
    spec = of_words()
    tfbnn.BayesianModel.from_spec(spec)
    with pytest.raises(ValueError, match="num_words must be at most 10, .* found 11"):
        tfbnn.BayesianModel.from_spec(replace(spec, facts=replace(spec.facts, num_words=11)))


def test_outputs_of_the_tables_alone_are_kept_when_words_are_counted(monkeypatch):
    kept, original = [], trial.recorded_calls

    def recorded_calls(inner):
        kept.extend(type(layer).__name__ for layer in inner)
        return original(inner)

    spec = of_words()
    tfbnn.BayesianModel.from_spec(spec)  # the first time in this process all layers are described
    monkeypatch.setattr(trial, "recorded_calls", recorded_calls)
    tfbnn.BayesianModel.from_spec(spec)
    assert kept == ["Embedding"]


def test_weights_that_are_initialised_transposed_are_no_numbers_of_a_row():
    inside = [layers.Dense(32, kernel_initializer="orthogonal"), layers.LayerNormalization()]
    spec = spec_of(*inside, layers.Dense(1), shape=(8,))
    assert keras_network.network_of(spec, spec.dtype).largest < 8 * 32


def test_rows_are_predicted_in_parts_whatever_the_facts_of_a_file_say(monkeypatch):
    spec = tfbnn.BayesianModel(_repeated(7)).spec
    theta, x = tf.ones((2, spec.num_parameters)), tf.random.normal((3, 5))
    whole = tensorflow_forward._keras_outputs(spec)(theta, x)[0]
    monkeypatch.setattr(tensorflow_forward, "_MOST_VALUES", 2 * 3 * 7)
    in_parts = tensorflow_forward._keras_outputs.__wrapped__(spec)(theta, x)[0]
    np.testing.assert_allclose(in_parts, whole, rtol=1e-5)


def test_default_precision_is_not_touched_for_layers_of_keras(monkeypatch):
    def set_floatx(dtype):
        raise AssertionError("it is one for all threads")

    monkeypatch.setattr(keras.config, "set_floatx", set_floatx)
    spec = tfbnn.BayesianModel(unnamed_stack(5), dtype="float64").spec
    theta = tf.ones((1, spec.num_parameters), tf.float64)
    assert network_outputs(spec, theta, tf.ones((3, 1), tf.float64)).dtype == tf.float64


def test_an_adapted_normalization_is_taken_with_its_statistics():
    x = np.random.default_rng(0).normal(100.0, 10.0, (60, 3))
    adapted = layers.Normalization()
    adapted.adapt(x)
    model = stacked(adapted, layers.Dense(1))
    spec = tfbnn.BayesianModel(model, prior=Normal(1.0)).spec
    assert spec.x_transform == ()  # inputs are not scaled twice
    theta = np.concatenate([one.numpy().ravel() for one in model.trainable_variables])
    found = network_outputs(spec, tf.constant(theta[None]), tf.constant(x.T, "float32"))
    assert len(theta) == spec.layout.num_weights
    np.testing.assert_allclose(found[0], model(x).numpy().T, rtol=1e-4, atol=1e-4)


def unnamed_stack(width=2):
    return stacked(layers.Dense(width), layers.LayerNormalization(), layers.Dense(1))


def unnamed_graph():
    row = keras.Input((3,))
    hidden = layers.Dense(3)(row)
    inner = keras.Sequential([layers.Dense(3), layers.LayerNormalization()])
    return keras.Model(row, layers.Dense(1)(keras.ops.tanh(hidden + inner(hidden))))


def unnamed_class():
    model = Residual()
    model(np.zeros((2, 3), "float32"))
    return model


@pytest.mark.parametrize("make", [unnamed_graph, unnamed_class])
def test_the_same_code_makes_the_same_network_each_time(make):
    first, second = make(), make()
    assert first.variables[0].path != second.variables[0].path
    second.set_weights(first.get_weights())
    assert tfbnn.BayesianModel(first).spec == tfbnn.BayesianModel(second).spec


def test_a_prior_goes_by_the_names_that_keras_shows():
    keras.layers.Dense(1), keras.layers.Dense(1)
    model = unnamed_stack()
    last = model.layers[-1].name
    spec = tfbnn.BayesianModel(model, prior={f"*{last}/kernel": Normal(0.5)}).spec
    assert [one.prior == Normal(0.5) for one in spec.sampled] == [False, False, True, False]


def test_layers_inside_of_others_have_the_names_that_keras_gave():
    keras.backend.clear_session()
    base = keras.Sequential([keras.Input((6,)), layers.Dense(5), layers.Dense(4)], name="base")
    model = stacked(base, layers.LayerNormalization(), layers.Dense(1), shape=(6,))
    spec = tfbnn.BayesianModel(model).spec
    shapes = {one.path: tuple(one.shape) for one in model.variables}
    assert all(shapes[one.path] == one.shape for one in (*spec.sampled, *spec.frozen))


def test_names_that_the_user_gave_stay_and_are_not_given_again():
    named = [("Dense", "dense_7"), ("Rescaling", "dense"), ("Dense", "mine"), ("Dense", "dense_8")]
    assert counted_anew(named) == {"dense_7": "dense_1", "dense_8": "dense_2"}


def test_another_keras_model_as_earlier_one_is_refused_in_few_words():
    here, there = (tfbnn.BayesianModel(unnamed_stack(width)).spec for width in (2, 3))
    with pytest.raises(ValueError, match="must be a model of the same Keras model") as caught:
        refuse_other_network("initial_state", here, there)
    assert len(str(caught.value)) < 300
