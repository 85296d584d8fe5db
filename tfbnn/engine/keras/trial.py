"""A trial call of a model, before anything is compiled: what it gives, and whether it may be sampled."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import Tensor, keras, tf
from tfbnn.engine.keras.building import call, state_after
from tfbnn.engine.keras.calls import Call, inner_layers, recorded_calls
from tfbnn.engine.keras.describing import fan_in
from tfbnn.engine.keras.network import KerasNetwork, Values
from tfbnn.engine.keras.refusals import check_stays_as_it_is
from tfbnn.system.arrays import Array

_NUM_ROWS = 3
# Draws of large weights that a readout has to give the outputs of.
_NUM_LARGE = 8
# Draws of large weights with which outputs have to pass either end, and these ends: of a network that
# is not bounded the chance that none does is below 1e-7.
_NUM_WIDE, _LARGE = 32, 2.0
# What outputs of a row alone and among others may differ by, and those of the model that was built
# again, relative to their size.
_TOLERANCE = {"float32": 1e-4, "float64": 1e-8}
# What class likelihoods do to the outputs themselves.
_LINKS = ("softmax", "sigmoid")
_RANDOM = ("Dropout", "Noise", "Random")


class Trial(NamedTuple):
    """What a trial call has found.

    Attributes:
        num_outputs, num_units, widest: Numbers that the model gives for a row, that all its layers
            give, and the most that one of them takes or gives.
        num_products: Products of all its layers for a row, about.
        readout: Place among the model's variables of the kernel of a last Dense layer without an
            activation, or None.
        on_inputs: Places of the kernels of Dense layers that receive the inputs themselves.
        num_words: Rows of the smallest table of an Embedding that does, or None.
        random_layers: Names of layers that are random in training, and off here.
        ending: "softmax" or "sigmoid" where the outputs come out of one, else None.
    """

    num_outputs: int
    num_units: int
    widest: int
    num_products: int
    readout: int | None
    on_inputs: tuple[int, ...]
    num_words: int | None
    random_layers: tuple[str, ...]
    ending: str | None


def trial_rows(model: Any, input_shape: tuple[int, ...]) -> Array:
    """Rows [n, *input_shape] to try a model on: small whole numbers where it looks them up."""
    generator = np.random.default_rng(0)
    sizes = [_num_words(one) for one in inner_layers(model) if _is_table(one)]
    if sizes:
        return generator.integers(0, min(sizes), (_NUM_ROWS, *input_shape)).astype(np.float64)
    return generator.standard_normal((_NUM_ROWS, *input_shape))


def check_words(network: KerasNetwork, num_words: int | None) -> None:
    """Refuses more words than the tables have that inputs are looked up in, as files say how many.

    Raises:
        ValueError: Says how many there are.
    """
    # Outputs of all layers at once can be more than there is memory for.
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
    """Rows of the smallest table among the layers that receive the inputs, or None."""
    return min(map(_num_words, filter(_is_table, first)), default=None)


def flat_rows(model: Any, network: KerasNetwork) -> Tensor:
    """`trial_rows` as the network takes them: [D, n]."""
    rows = trial_rows(model, network.input_shape)
    return tf.constant(rows.reshape(len(rows), -1).T, network.dtype)


def check_range(model: Any, network: KerasNetwork, flat: Tensor, num_targets: int) -> None:
    """Refuses outputs that cannot be of either sign and any size, as transformed targets are.

    Args:
        model: The user's own.
        network: The same, built again.
        flat: `flat_rows`.
        num_targets: Outputs that stand for targets, the first ones.

    Raises:
        ValueError: Says what to do.
    """
    low, high = np.full(num_targets, np.inf), np.full(num_targets, -np.inf)
    for seed in range(_NUM_WIDE):
        given = network.outputs(_large_weights(network, seed), flat).numpy()[:num_targets]
        low, high = np.minimum(low, given.min(axis=1)), np.maximum(high, given.max(axis=1))
        if not ((low >= -_LARGE) | (high <= _LARGE)).any():
            return
    raise ValueError(
        "keras_model must give numbers of either sign and any size for targets that are transformed, "
        f"received {model.name!r}, whose outputs are bounded. Pass y_transform=None, where targets "
        "within these bounds keep their units, or end the model with a Dense layer without activation."
    )


def _is_table(layer: Any) -> bool:
    return type(layer).__name__ == "Embedding"


def _num_words(layer: Any) -> int:
    return int(layer.input_dim)


def try_model(model: Any, network: KerasNetwork, values: Values) -> Trial:
    """Calls the network.

    Args:
        model: The user's own, which it has to equal.
        network: The same, built again.
        values: Of its sampled variables, as the user's model has them.

    Raises:
        ValueError: Where the model gives no [N, K], something else each time or by the other rows,
            or is not the one that its config describes.
    """
    x = tf.constant(trial_rows(model, network.input_shape), network.dtype)
    flat = flat_rows(model, network)
    with recorded_calls(inner_layers(network.model)) as calls:
        given = network.outputs(values, flat)
    before = [variable.value for variable in network.model.non_trainable_variables]
    after = state_after(network.model, x, network.dtype)
    check_stays_as_it_is(before, after, network.model.non_trainable_variables)
    _check_outputs(model, network, values, flat, given)
    sizes = [size for one in calls for size in _row_sizes(one.given)]
    first = [one.layer for one in calls if np.array_equal(one.received, x)]
    random = [one.layer.name for one in calls if _is_random(one.layer)]
    return Trial(
        num_outputs=int(given.shape[0]),
        num_units=max(1, sum(sizes)),
        widest=max([prod(network.input_shape), *sizes]),
        num_products=sum(_products(one) for one in calls),
        readout=_readout(network, calls, flat, given),
        on_inputs=_on_inputs(network, first),
        num_words=_words_of(first),
        random_layers=tuple(dict.fromkeys(random)),
        ending=_ending(model, network, calls, flat, given.numpy()),
    )


def _check_outputs(
    model: Any, network: KerasNetwork, values: Values, flat: Tensor, given: Tensor
) -> None:
    own = model(network.rows(tf.cast(flat, model.dtype)), training=False).numpy()
    if own.ndim != 2:
        raise ValueError(
            f"keras_model must give numbers [N, K], received {model.name!r}, which gives "
            f"{[None, *own.shape[1:]]}. End it with Flatten, pooling or Dense."
        )
    tolerance = max(_TOLERANCE[network.dtype], _TOLERANCE[model.dtype])
    if not np.allclose(given.numpy().T, own, rtol=tolerance, atol=tolerance, equal_nan=True):
        raise ValueError(
            f"keras_model must be the one that its config describes, received {model.name!r}, which "
            "gives other numbers when it is built again. Put all that its layers depend on into "
            "get_config, and state into weights."
        )
    alone = network.outputs(values, flat[:, :1]).numpy()
    if not np.allclose(alone, given.numpy()[:, :1], rtol=tolerance, atol=tolerance, equal_nan=True):
        raise ValueError(
            f"keras_model must take every row by itself, received {model.name!r}, in which a row's "
            "outputs depend on the rows beside it. Leave `training` of BatchNormalization to Keras."
        )


def _row_sizes(given: Any) -> list[int]:
    """Numbers per row of what a layer gave."""
    shapes = [tuple(one.shape) for one in tf.nest.flatten(given) if hasattr(one, "shape")]
    return [prod(shape[1:]) for shape in shapes if len(shape) > 1 and None not in shape]


def _products(call: Call) -> int:
    """Products of a layer's kernels for a row: each is used wherever the layer has an output."""
    if list(call.layer._flatten_layers(include_self=False)):
        return 0  # those inside count by themselves
    given = max(_row_sizes(call.given), default=0)
    kernels = [one for one in call.layer.variables if fan_in(call.layer, one) > 1]
    return sum(given * fan_in(call.layer, one) for one in kernels)


def _is_random(layer: Any) -> bool:
    return any(part in type(layer).__name__ for part in _RANDOM)


def _readout(network: KerasNetwork, calls: list[Call], flat: Tensor, given: Tensor) -> int | None:
    """Place of the kernel of a Dense layer whose sums are the outputs, called once."""
    for layer, received, sums in calls:
        is_linear = (
            type(layer) is keras.layers.Dense and layer.activation is keras.activations.linear
        )
        if not (is_linear and layer.use_bias and received.shape.rank == 2):
            continue
        is_last = np.array_equal(tf.transpose(sums), given) and sums.shape == given.shape[::-1]
        is_once = sum(one.layer is layer for one in calls) == 1
        if is_last and is_once and _gives_the_outputs(network, layer, flat):
            return _place(network, layer.kernel)
    return None


def _gives_the_outputs(network: KerasNetwork, layer: Any, flat: Tensor) -> bool:
    """Whether a layer's sums are the outputs whatever the weights: a ReLU behind may do nothing to some."""
    for seed in range(_NUM_LARGE):
        with recorded_calls([layer]) as calls:
            given = network.outputs(_large_weights(network, seed), flat).numpy()
        if not np.array_equal(calls[0].given.numpy().T, given, equal_nan=True):
            return False
    return True


def _on_inputs(network: KerasNetwork, first: list[Any]) -> tuple[int, ...]:
    """Places of the kernels of Dense layers among those that receive the inputs."""
    dense = [layer for layer in first if type(layer) is keras.layers.Dense]
    return tuple(_place(network, layer.kernel) for layer in dense)


def _place(network: KerasNetwork, variable: Any) -> int:
    """Of a variable among all of the model's."""
    return next(k for k, one in enumerate(network.model.variables) if one is variable)


def _large_weights(network: KerasNetwork, seed: int) -> Values:
    """Weights of any size for all of a model that can be trained."""
    generator = np.random.default_rng(seed)
    return {
        place: tf.constant(10.0 * generator.standard_normal(variable.shape), network.dtype)
        for place, variable in enumerate(network.model.variables)
        if variable.trainable
    }


def _ending(
    model: Any, network: KerasNetwork, calls: list[Call], flat: Tensor, given: Array
) -> str | None:
    """What makes probabilities of the sums, by whichever layer or operation, or in the model's call."""
    found = [_activation_name(one.layer) for one in calls if np.array_equal(one.given, given.T)]
    last = getattr(model, "outputs", None)  # a subclassed model does not say
    if last:
        found.append(type(last[0]._keras_history.operation).__name__.lower())
    if len(given) > 1 and (given >= 0.0).all() and np.allclose(given.sum(axis=0), 1.0, atol=1e-6):
        found.append("softmax")
    named = next((name for name in found if name in _LINKS), None)
    return "sigmoid" if named is None and _gives_probabilities(network, flat) else named


def _gives_probabilities(network: KerasNetwork, flat: Tensor) -> bool:
    """Whether outputs stay from 0 to 1 with weights of any size, which sums do not."""
    given = network.outputs(_large_weights(network, 1), flat).numpy()
    return bool((given >= 0.0).all() and 0.0 < given.max() <= 1.0)


def _activation_name(layer: Any) -> str:
    """Of a layer, with those that are an activation; "" where it has none."""
    if type(layer) is keras.layers.Softmax:
        return "softmax"
    return getattr(getattr(layer, "activation", None), "__name__", "")
