"""A trial call of a model before compilation, which measures it and checks that it can be sampled."""

import re
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, keras, tf
from tfbnn.engine.keras.describing import Call, fan_in, inner_layers, recorded_calls
from tfbnn.engine.keras.keras_network import KerasNetwork, call, has_own_layers, precision
from tfbnn.system.arrays import Array

_NUM_ROWS = 3
# Allowed relative difference between outputs of a row alone and among others, and between outputs
# of the model and the rebuilt model.
_TOLERANCE = {"float32": 1e-4, "float64": 1e-8}
_RANDOM = re.compile("Dropout|Noise|Random")


class KerasTrial(NamedTuple):
    """Results of a trial call.

    Attributes:
        facts: Facts of `KerasFacts` that the call reveals, by name.
        readout: Index among the model's variables of the kernel of a last Dense layer without an
            activation, or None.
        on_inputs: Indices of the kernels of Dense layers that receive the inputs directly.
        ending: Name of the last TensorFlow operation, such as "softmax".
    """

    facts: dict[str, Any]
    readout: int | None
    on_inputs: tuple[int, ...]
    ending: str


def trial_rows(model: Any, input_shape: tuple[int, ...]) -> Array:
    """Draw rows [n, *input_shape] to test a model; small integers if it has an Embedding."""
    generator = np.random.default_rng(0)
    sizes = [int(one.input_dim) for one in inner_layers(model) if _is_table(one)]
    if sizes:
        return generator.integers(0, min(sizes), (_NUM_ROWS, *input_shape)).astype(np.float64)
    return generator.standard_normal((_NUM_ROWS, *input_shape))


def check_words(network: KerasNetwork, num_words: int | None) -> None:
    """Check that the number of words in a file is at most the size of the Embedding tables.

    Raises:
        ValueError: If it is larger; gives the size of the tables.
    """
    # Record only the tables, because the outputs of all layers may not fit into memory.
    tables = list(filter(_is_table, inner_layers(network.model)))
    if num_words is None or not tables:
        return
    x = tf.constant(trial_rows(network.model, network.input_shape), network.dtype)
    with recorded_calls(tables) as calls:
        call(network.model, {}, x, network.dtype)
    found = _words_of([one.layer for one in calls if np.array_equal(one.received, x)])
    if found is None or num_words > found:
        raise ValueError(
            f"num_words must be at most {found}, as of the Embedding, found {num_words}"
        )


def _words_of(first: list[Any]) -> int | None:
    """Return the number of rows of the smallest table among the first layers, or None."""
    return min((int(one.input_dim) for one in first if _is_table(one)), default=None)


def _is_table(layer: Any) -> bool:
    return type(layer).__name__ == "Embedding"


def try_model(model: Any, network: KerasNetwork) -> KerasTrial:
    """Call the rebuilt network, compare it to the user's model, and collect facts about it.

    Args:
        model: The user's own model.
        network: The same model rebuilt with all of its own weights.

    Raises:
        ValueError: If the outputs are not [N, K], differ between calls, depend on the other rows,
            or differ from those of the network that the config describes.
    """
    x = tf.constant(trial_rows(model, network.input_shape), network.dtype)
    with recorded_calls(inner_layers(network.model)) as calls:
        given = call(network.model, {}, x, network.dtype)
    _check_stays_as_it_is(network, x)
    _check_outputs(model, network, x, given)
    sizes = [size for one in calls for size in _row_sizes(one.given)]
    first = [one.layer for one in calls if np.array_equal(one.received, x)]
    dense = [layer for layer in first if type(layer) is keras.layers.Dense]
    names = [one.layer.name for one in calls if _RANDOM.search(type(one.layer).__name__)]
    facts = {
        "num_outputs": int(given.shape[1]),
        "num_units": max(1, sum(sizes)),
        "widest": max([prod(network.input_shape), *sizes]),
        "num_products": sum(_products(one) for one in calls),
        "random_layers": tuple(dict.fromkeys(names)),
        "num_words": _words_of(first),
    }
    on_inputs = tuple(_index_of(network, layer.kernel) for layer in dense)
    return KerasTrial(
        facts, _readout(network, calls, given), on_inputs, _last_operation(network, x)
    )


def _check_stays_as_it_is(network: KerasNetwork, x: Tensor) -> None:
    """Check that a prediction does not change the state, as random numbers or counters would.

    Raises:
        ValueError: If it does; names the first variable that changes.
    """
    model = network.model
    with precision(network.dtype, has_own_layers(model)), keras.StatelessScope() as scope:
        model(x, training=False)
    for variable in model.non_trainable_variables:
        after = scope.get_current_value(variable)
        if after is not None and np.any(variable.value.numpy() != after.numpy()):
            raise ValueError(
                f"keras_model must predict the same each time, received one in which a prediction "
                f"changes {variable.path!r}. Leave training=True out, and build RNNs with stateful=False."
            )


def _check_outputs(model: Any, network: KerasNetwork, x: Tensor, given: Tensor) -> None:
    own = model(tf.cast(x, model.dtype), training=False)
    if not tf.is_tensor(own) or own.shape.rank != 2:
        kind = [None, *own.shape[1:]] if tf.is_tensor(own) else f"a {type(own).__name__}"
        raise ValueError(
            f"keras_model must give numbers [N, K], received {model.name!r}, which gives {kind}. End it "
            "with Flatten, pooling or Dense."
        )
    tolerance = max(_TOLERANCE[network.dtype], _TOLERANCE[model.dtype])
    if not np.allclose(given, own, rtol=tolerance, atol=tolerance, equal_nan=True):
        raise ValueError(
            f"keras_model must be what its config says, received {model.name!r}, which gives other numbers "
            "when it is built again. Put all that its layers depend on into get_config."
        )
    alone = call(network.model, {}, x[:1], network.dtype)
    if not np.allclose(alone, given[:1], rtol=tolerance, atol=tolerance, equal_nan=True):
        raise ValueError(
            f"keras_model must take every row by itself, received {model.name!r}, whose outputs depend on "
            "the rows beside it. Leave `training` of BatchNormalization to Keras."
        )


def _row_sizes(given: Any) -> list[int]:
    """Return the number of values per row of each output of a layer."""
    shapes = [tuple(one.shape) for one in tf.nest.flatten(given) if hasattr(one, "shape")]
    return [prod(shape[1:]) for shape in shapes if len(shape) > 1 and None not in shape]


def _products(call: Call) -> int:
    """Count the products of a layer's kernels per row: each kernel is used for every output value."""
    if list(call.layer._flatten_layers(include_self=False)):
        return 0  # nested layers are counted separately
    given = max(_row_sizes(call.given), default=0)
    kernels = [one for one in call.layer.variables if fan_in(call.layer, one) > 1]
    return sum(given * fan_in(call.layer, one) for one in kernels)


def _readout(network: KerasNetwork, calls: list[Call], given: Tensor) -> int | None:
    """Return the index of the kernel of a linear Dense layer, called once, that gives the outputs.

    None if there is no such layer, or if its bias is not the variable after the kernel.
    """
    for layer, received, sums in calls:
        is_linear = (
            type(layer) is keras.layers.Dense and layer.activation is keras.activations.linear
        )
        is_once = sum(one.layer is layer for one in calls) == 1
        if sums is given and is_linear and layer.use_bias and received.shape.rank == 2 and is_once:
            kernel = _index_of(network, layer.kernel)
            following = network.model.variables[kernel + 1 : kernel + 2]
            return kernel if following and following[0] is layer.bias else None
    return None


def _index_of(network: KerasNetwork, variable: Any) -> int:
    """Return the index of a variable among all variables of the model."""
    return next(k for k, one in enumerate(network.model.variables) if one is variable)


def _last_operation(network: KerasNetwork, x: Tensor) -> str:
    """Return the name of the operation that computes the outputs, skipping Identity and Reshape."""
    traced = compiled(
        lambda x: call(network.model, {}, x, network.dtype),
        jit_compile=False,
        signature=[tf.TensorSpec(x.shape, x.dtype)],
    ).get_concrete_function()
    operation = traced.outputs[0].op
    while operation.type in ("Identity", "Reshape"):
        operation = operation.inputs[0].op
    return operation.type.lower()
