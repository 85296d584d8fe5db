"""Models that cannot be sampled, refused by name before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tfbnn.engine.basis.libraries import keras
from tfbnn.engine.keras.calls import all_layers
from tfbnn.spec.likelihoods import Likelihood

_WANTED = "keras_model must be a built Keras 3 model on the TensorFlow backend"
# Operations of TensorFlow, in lower case: what class likelihoods do to the outputs themselves, and
# those whose results have a bound on one side at least.
_LINKS = ("softmax", "sigmoid")
_BOUNDED = (
    *_LINKS,
    *("abs", "elu", "exp", "logsoftmax", "relu", "relu6", "selu", "softplus", "softsign", "square"),
    "tanh",
)


def check_keras_model(model: Any) -> None:
    """Refuses what is no model, one of another Keras, one without weights, and several tensors.

    Raises:
        TypeError: For what is no Keras 3 model.
        ValueError: For a model that cannot be sampled.
    """
    _check_kind(model)
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise ValueError(
            f"{_WANTED}, received one on {backend!r}. Set KERAS_BACKEND=tensorflow before Keras is "
            "imported."
        )
    if not model.built or not model.variables:
        raise ValueError(
            f"{_WANTED}, received {model.name!r}, which has no weights yet. Call it once on some rows, "
            "or begin it with keras.Input(shape)."
        )
    for name, word in (("inputs", "input"), ("outputs", "output")):
        tensors = getattr(model, name, None)  # a subclassed model does not say
        if isinstance(tensors, (list, tuple)) and len(tensors) != 1:
            raise ValueError(
                f"{_WANTED} of one input and one output tensor, received {model.name!r} with "
                f"{len(tensors)} {name}. Concatenate them into one {word}."
            )
    for layer in all_layers(model):
        policy = layer.dtype_policy
        if policy.variable_dtype != policy.compute_dtype or policy.compute_dtype not in (
            "float32",
            "float64",
        ):
            raise ValueError(
                f"{_WANTED} in float32 or float64, received {layer.name!r} with the dtype policy "
                f"{policy.name!r}. Build the model without mixed precision or quantisation."
            )


def _check_kind(model: Any) -> None:
    places = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    if "tf_keras" in places:
        raise TypeError(
            f"{_WANTED}, received one of tf_keras, Keras 2. Build it with `import keras`, version 3."
        )
    if not isinstance(model, keras.Model):
        found = "a layer" if isinstance(model, keras.Layer) else repr(model)
        raise TypeError(
            f"{_WANTED}, received {found:.200}. Pass a keras.Sequential or keras.Model."
        )


def check_constraints(variables: Iterable[Any]) -> None:
    """Refuses constraints of weights that are sampled, which draws would not keep.

    Raises:
        ValueError: Names the first.
    """
    for variable in variables:
        if variable.constraint is not None:
            raise ValueError(
                "keras_model must have no constraints on weights that are sampled, which draws would "
                f"not keep, received {type(variable.constraint).__name__} on {variable.path!r}. Leave "
                "it out: weights above zero are softplus(kernel) in a layer of your own, and "
                "layer.trainable = False keeps weights as they are."
            )


def check_stays_as_it_is(before: list[Any], after: list[Any], variables: list[Any]) -> None:
    """Refuses a model whose state a prediction changes: one that draws random numbers, or counts.

    Args:
        before, after: Values of its variables around a prediction.
        variables: The variables.

    Raises:
        ValueError: Names the first that changes.
    """
    for variable, old, new in zip(variables, before, after):
        if np.any(old.numpy() != new.numpy()):
            raise ValueError(
                f"keras_model must predict the same each time, received one in which a prediction "
                f"changes {variable.path!r}. Switch the random layer or the state off: leave training "
                "to Keras (layer(x), not layer(x, training=True)), and build RNNs with stateful=False."
            )


def check_ending(model: Any, ending: str, likelihood: Likelihood, is_transformed: bool) -> None:
    """Refuses outputs that do not take every value where logits or transformed targets do.

    The last operation tells: what a model computes of bounded numbers afterwards is not looked at.

    Args:
        model: The Keras model.
        ending: Name of its last operation.
        likelihood: Of its outputs.
        is_transformed: Whether they stand for targets that are transformed.

    Raises:
        ValueError: Says what to leave out.
    """
    if ending in _LINKS and likelihood.has_classes:
        raise ValueError(
            f"keras_model must give logits for {type(likelihood).__name__}, received {model.name!r}, "
            f"which ends in {ending}: it would be applied twice. End it with Dense(K) without "
            "activation: the likelihood has the link."
        )
    if ending in _BOUNDED and is_transformed:
        raise ValueError(
            "keras_model must give numbers of either sign and any size for targets that are transformed, "
            f"received {model.name!r}, whose outputs are bounded. Pass y_transform=None, where targets "
            "within these bounds keep their units, or end the model with a Dense layer without activation."
        )
