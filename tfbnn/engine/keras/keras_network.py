"""The network of a `KerasSpec`, rebuilt by Keras and called as a pure function.

Models are built from their architecture in either precision. An outline without memory is checked
first, because a file may request variables that are not those of the spec, or gigabytes.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from math import prod
from typing import Any

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, keras, tf
from tfbnn.engine.keras.describing import (
    all_layers,
    inner_layers,
    is_seed,
    recorded_calls,
    stem,
)
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.network_parts import FrozenVariable, Place
from tfbnn.spec.own_classes import is_of_keras
from tfbnn.system.arrays import Array
from tfbnn.system.threads import awaited
from tfbnn.system.words import without_controls


def check_variables(model: Any, architecture: str, variables: Iterable[Place]) -> None:
    """Check that the variables of a spec are exactly those of its model.

    Args:
        model: Model built from the architecture; its variables need no values.
        architecture: Config as JSON text.
        variables: Place of every variable in the spec, sampled or not.

    Raises:
        ValueError: If they differ; names the first difference.
    """
    named = {one.index: one for one in variables}
    own = {
        index: Place(one.path, index, tuple(one.shape))
        for index, one in enumerate(model.variables)
        if not is_seed(one)
    }
    names: set[str | None] = set()  # names of layers in the config
    json.loads(architecture, object_hook=lambda config: names.add(config.get("name")))
    for index in sorted(own.keys() | named.keys()):
        expected, found = own.get(index), named.get(index)
        if expected is None or found is None or not _agree(found, expected, names):
            raise ValueError(
                "the variables are not those of the Keras model's architecture: expected "
                f"{expected!r:.300}, found {found!r:.300}."
            )


def _agree(found: Place, expected: Place, names: set[str | None]) -> bool:
    """Check whether shapes are equal, and paths as far as both contain the surrounding layers.

    Names that Keras generates and no config contains are numbered on from model to model, so their
    numbers are ignored.
    """
    ours, own = (
        [part if part in names else stem(part) for part in one.path.split("/")]
        for one in (found, expected)
    )
    shared = min(len(ours), len(own))
    is_named = shared >= min(2, len(own)) and ours[-shared:] == own[-shared:]
    return is_named and found.shape == expected.shape


_lock = threading.RLock()
_FLOATS = ("float32", "float64")


@contextmanager
def precision(dtype: str, own_layers: bool) -> Iterator[None]:
    """Build layers of this thread in this dtype while the context is active.

    Keras' own layers create constants in their own dtype. A user's layers may create them in the
    default `floatx`, which Keras shares between all threads. It is changed only for such layers.
    """
    with ExitStack() as stack:
        # The policy belongs to this thread only.
        stack.callback(keras.config.set_dtype_policy, keras.config.dtype_policy())
        keras.config.set_dtype_policy(dtype)
        if own_layers:
            stack.enter_context(_lock)
            stack.callback(keras.config.set_floatx, keras.config.floatx())
            keras.config.set_floatx(dtype)
        yield


def build(
    architecture: str,
    input_shape: Sequence[int],
    layer_classes: Sequence[type],
    dtype: str,
    values: Mapping[int, Array],
) -> Any:
    """Build the model in a dtype.

    Args:
        architecture: Config as JSON text, which has passed `check_config`.
        input_shape: Shape of one row.
        layer_classes: Classes of layers that are not part of Keras.
        dtype: "float32" or "float64".
        values: Values of variables, by their index among all variables.

    Raises:
        ValueError: If Keras cannot build it, or its variables have other shapes.
    """
    with precision(dtype, bool(layer_classes)):
        row = keras.ops.zeros((1, *input_shape), dtype)
        model = _deserialised(architecture, layer_classes, dtype, row)
        for index, value in values.items():
            if index >= len(model.variables) or tuple(model.variables[index].shape) != value.shape:
                raise ValueError("the variables are not those of the Keras model's architecture")
            model.variables[index].assign(value)
        for layer in all_layers(model):
            if isinstance(layer, keras.layers.Normalization):
                layer.finalize_state()  # it computes constants from its variables
    return model


def outline(architecture: str, input_shape: Sequence[int], dtype: str) -> tuple[Any, int]:
    """Build a model of Keras' own layers without memory, and find its largest tensor for one row.

    Its variables have shapes, but no values. The arguments are those of `build`. Call it in a
    thread that builds nothing afterwards, because Keras would create the missing values there.

    Returns:
        (model, most numbers that it computes at once for a row, not counting variables).

    Raises:
        ValueError: If Keras cannot build it.
    """
    with precision(dtype, False), keras.StatelessScope(initialize_variables=False):
        row = keras.KerasTensor((1, *input_shape), dtype)
        model = _deserialised(architecture, (), dtype, row)
        with _named_as_its_fault():
            signature = [tf.TensorSpec(row.shape, dtype)]
            traced = compiled(
                lambda x: model(x, training=False), jit_compile=False, signature=signature
            ).get_concrete_function()
    # Some initialisers, such as Orthogonal, create variables transposed.
    variables = {tuple(sorted(one.shape)) for one in model.variables}
    tensors = [one for operation in traced.graph.get_operations() for one in operation.outputs]
    shapes = [tuple(one.shape) for one in tensors if one.shape.rank is not None]
    sizes = (prod(size or 1 for size in s) for s in shapes if tuple(sorted(s)) not in variables)
    return model, max(sizes)


@contextmanager
def _named_as_its_fault() -> Iterator[None]:
    """Convert any error of Keras or of a user's class to a ValueError."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"Keras cannot build the model out of its config ({type(error).__name__}: {error})."
        ) from error


def _deserialised(architecture: str, layer_classes: Sequence[type], dtype: str, row: Any) -> Any:
    classes = {kind.__name__: kind for kind in layer_classes}
    config = _to_be_built(json.loads(architecture), dtype, classes)
    with _named_as_its_fault():
        model = keras.saving.deserialize_keras_object(
            config, custom_objects=classes, safe_mode=True
        )
        if not model.built:
            model(row)
    return model


def call(model: Any, values: Mapping[int, Tensor], x: Tensor, dtype: str) -> Tensor:
    """Compute the outputs [n, K] of the model at rows x [n, *input_shape] with these variables.

    This is a pure function that leaves the model's own variables unchanged. Dropout and noise are
    off.
    """
    with precision(dtype, has_own_layers(model)):
        mapping = [(model.variables[index], value) for index, value in values.items()]
        with keras.StatelessScope(state_mapping=mapping):
            return model(x, training=False)


def has_own_layers(model: Any) -> bool:
    """Check whether the model or one of its layers has a class of the user's."""
    return not all(is_of_keras(type(layer)) for layer in all_layers(model))


def _to_be_built(config: Any, dtype: str, classes: Mapping[str, type]) -> Any:
    """Set the precision of all layers in a config that have one.

    The user's classes are found by their class names, not by their registered names: older Keras
    imports the module of a class that it finds by neither.
    """
    if isinstance(config, list):
        return [_to_be_built(value, dtype, classes) for value in config]
    if not isinstance(config, dict):
        return config
    name = config.get("class_name")
    if name == "DTypePolicy":
        return {**config, "config": {"name": dtype}}
    if name in classes:
        config = {**config, "registered_name": name}
    return {
        key: dtype if key == "dtype" and value in _FLOATS else _to_be_built(value, dtype, classes)
        for key, value in config.items()
    }


# 128 MiB in float32; a file that requests more was not written by this package.
MOST_AT_ONCE = 2**25
# Values of sampled variables, by their index among all variables of the model.
Values = Mapping[int, Tensor]


class KerasNetwork:
    """A rebuilt model in one precision, whose variables are never assigned again.

    Attributes:
        model: The Keras model.
        dtype: Precision of the model.
        input_shape: Shape of one row.
        largest: Most numbers that it computes at once for a row; 1 with layers of a user.
    """

    def __init__(self, model: Any, dtype: str, input_shape: tuple[int, ...], largest: int) -> None:
        self.model, self.dtype, self.input_shape = model, dtype, input_shape
        self.largest = largest

    def outputs(self, values: Values, x: Tensor) -> Tensor:
        """Compute the outputs [K, n] at transformed inputs x [D, n]."""
        return tf.transpose(call(self.model, values, self.rows(x), self.dtype))

    def features(self, values: Values, x: Tensor, kernel: int) -> Tensor:
        """Compute the inputs [units, n] of the Dense layer with this kernel, which must be called only once."""
        variable = self.model.variables[kernel]
        dense = [one for one in inner_layers(self.model) if type(one) is keras.layers.Dense]
        layer = next(one for one in dense if one.kernel is variable)
        with recorded_calls([layer]) as calls:
            call(self.model, values, self.rows(x), self.dtype)
        return tf.transpose(calls[0].received)

    def rows(self, x: Tensor) -> Tensor:
        """Reshape inputs [D, n] to those of the model [n, *input_shape]."""
        return tf.reshape(tf.transpose(x), [-1, *self.input_shape])


def network_of(spec: KerasSpec, dtype: str) -> KerasNetwork:
    """Return the network of a spec in one precision, shared by all specs of the same network.

    Raises:
        ValueError: If Keras cannot build it, or its variables are not those of the spec.
    """
    shape = spec.facts.input_shape
    sampled = tuple(Place(one.path, one.index, one.shape) for one in spec.sampled)
    return built(shape, spec.architecture, sampled, spec.frozen, spec.layer_classes, dtype)


@lru_cache(maxsize=32)
def built(
    input_shape: tuple[int, ...],
    architecture: str,
    sampled: tuple[Place, ...],
    frozen: tuple[FrozenVariable, ...],
    layer_classes: tuple[type, ...],
    dtype: str,
) -> KerasNetwork:
    """Build and cache the network with this architecture and these variables."""
    values = {one.index: one.array for one in frozen}
    variables = (*sampled, *(Place(one.path, one.index, one.shape) for one in frozen))
    largest = 1
    if not layer_classes:  # a user's layers may not work without values
        without_memory, largest = awaited(outline, architecture, input_shape, dtype)
        check_variables(without_memory, architecture, variables)
        if largest > MOST_AT_ONCE:
            raise ValueError(
                f"a Keras model must compute at most {MOST_AT_ONCE} numbers of a row at once, found "
                f"one that computes {largest}"
            )
    # In a separate thread, because this one may be tracing a program, which cannot create
    # variables.
    model = awaited(build, architecture, input_shape, layer_classes, dtype, values)
    check_variables(model, architecture, variables)
    return KerasNetwork(model, dtype, input_shape, largest)


# Function (theta [P], x [D, n]) -> outputs [K, n].
Outputs = Callable[[Tensor, Tensor], Tensor]


def row_jacobians(outputs: Outputs, theta: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Compute (derivatives [K, P, n] of the outputs in theta, outputs [K, n]).

    There is one back-propagation per output and row, with all rows in one vectorised program.

    Args:
        outputs: A network.
        theta: Parameters [P].
        x: Transformed inputs [D, n].
    """

    def of_row(column: Tensor) -> tuple[Tensor, Tensor]:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(theta)
            found = outputs(theta, column[:, None])[:, 0]
            each = tf.unstack(found)
        slopes = [tape.gradient(one, theta, unconnected_gradients="zero") for one in each]
        return tf.stack(slopes), found

    with _silence():
        jacobian, found = tf.vectorized_map(of_row, tf.transpose(x), fallback_to_while_loop=False)
    return tf.transpose(jacobian, [1, 2, 0]), tf.transpose(found)


@contextmanager
def _silence() -> Iterator[None]:
    """Suppress TensorFlow's log messages from this thread while the context is active.

    TensorFlow would log the errors that it raises, and "Fix that!".
    """
    thread = threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger = tf.get_logger()
    logger.addFilter(is_of_others)
    try:
        yield
    finally:
        logger.removeFilter(is_of_others)


def jacobian_obstacle(outputs: Outputs, theta: Tensor, x: Tensor) -> str | None:
    """Return the reason why `row_jacobians` fails for a network, or None if it works."""
    try:
        compiled(partial(row_jacobians, outputs), jit_compile=False)(theta, x)
    except Exception as error:  # any error of an operation without a vectorised form
        reason = without_controls(str(error)).strip().splitlines() or [""]
        return (
            "TensorFlow takes no derivatives of all rows' outputs of this Keras model at once "
            f"({type(error).__name__}: {reason[0]:.99})"
        )
    return None
