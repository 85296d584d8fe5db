"""The spec of the sampled network, from a Keras model and settings.

Models that cannot be sampled raise an error with their name, in most cases before any computation.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tfbnn.data.validation import check_integer
from tfbnn.engine.basis.libraries import Tensor, keras, tf
from tfbnn.engine.keras.describing import (
    Described,
    all_layers,
    bare_operations,
    describe,
    inner_layers,
    renamed_path,
)
from tfbnn.engine.keras.keras_network import KerasNetwork, built, jacobian_obstacle
from tfbnn.engine.keras.trial import KerasTrial, trial_rows, try_model
from tfbnn.spec.activations import activation_name
from tfbnn.spec.choices import Choice, is_auto
from tfbnn.spec.keras_priors import default_keras_prior, resolve_keras_priors
from tfbnn.spec.keras_spec import KerasSpec, check_keras_spec
from tfbnn.spec.likelihoods import Likelihood
from tfbnn.spec.model_spec import make_spec
from tfbnn.spec.network_parts import FrozenVariable, KerasFacts, SampledVariable
from tfbnn.spec.network_spec import (
    NetworkSpec,
    check_likelihood,
    common_settings,
    no_scales_of_inputs,
)
from tfbnn.spec.own_classes import known_layers

_WANTED = "keras_model must be a built Keras 3 model on the TensorFlow backend"
# TensorFlow operations, in lower case: links that class likelihoods apply themselves, those for
# rates of counts, and those whose results are bounded on at least one side.
_LINKS = ("softmax", "sigmoid")
_RATES = ("exp", "softplus", "relu", "elu")
_BOUNDED = (
    *_LINKS,
    *("abs", "elu", "exp", "logsoftmax", "relu", "relu6", "selu", "softplus", "softsign", "square"),
    "tanh",
)


def check_keras_model(model: Any) -> None:
    """Check that this is a Keras 3 model with weights, one input tensor and one output tensor.

    Raises:
        TypeError: If it is not a Keras 3 model.
        ValueError: If the model cannot be sampled.
    """
    if any(kind.__module__.startswith("tf_keras.") for kind in type(model).__mro__):
        raise TypeError(
            f"{_WANTED}, received one of tf_keras, Keras 2. Use `import keras`, version 3."
        )
    if not isinstance(model, keras.Model):
        found = "a layer" if isinstance(model, keras.Layer) else repr(model)
        raise TypeError(
            f"{_WANTED}, received {found:.200}. Pass a keras.Sequential or keras.Model."
        )
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
        if {policy.variable_dtype, policy.compute_dtype} not in ({"float32"}, {"float64"}):
            raise ValueError(
                f"{_WANTED} in float32 or float64, received {layer.name!r} with the dtype policy "
                f"{policy.name!r}. Build the model without mixed precision or quantisation."
            )


def check_constraints(variables: Iterable[Any]) -> None:
    """Check that sampled weights have no constraints, which draws would not satisfy.

    Raises:
        ValueError: If there is one; names the first.
    """
    for variable in variables:
        if variable.constraint is not None:
            raise ValueError(
                "keras_model must have no constraints on weights that are sampled, which draws would "
                f"not keep, received {type(variable.constraint).__name__} on {variable.path!r}. Leave "
                "it out, or keep the weights as they are by layer.trainable = False."
            )


def check_ending(model: Any, ending: str, likelihood: Likelihood, is_transformed: bool) -> None:
    """Check that outputs for logits or transformed targets are not bounded.

    Only the last operation is checked, not operations on bounded numbers before it.

    Args:
        model: The Keras model.
        ending: Name of its last operation.
        likelihood: Likelihood of its outputs.
        is_transformed: Whether the outputs predict transformed targets.

    Raises:
        ValueError: If they are bounded; says what to leave out.
    """
    is_class, is_count = likelihood.has_classes, likelihood.has_counts
    if (is_class and ending in _LINKS) or (is_count and ending in _RATES):
        what = "logits" if is_class else "logarithms of rates"
        raise ValueError(
            f"keras_model must give {what}, received {model.name!r}, which ends in {ending}. End it "
            "with Dense(K) without activation: the likelihood has the link."
        )
    if ending in _BOUNDED and is_transformed:
        raise ValueError(
            f"keras_model must give any number where targets are transformed, received {model.name!r}, "
            "whose outputs are bounded. Pass y_transform=None, or end it with Dense without activation."
        )


def spec_of_keras_model(
    model: Any,
    *,
    prior: Any,
    likelihood: Any,
    input_shape: Any,
    x_transform: Any,
    dtype: Any,
    **settings: Any,
) -> NetworkSpec:
    """Make the spec of a Keras model; a plain stack of Dense layers gets the spec of a perceptron.

    Args:
        model: The Keras model.
        prior, likelihood, input_shape, x_transform, dtype, settings: As in `BayesianModel`.

    Raises:
        TypeError, ValueError: For a model or settings that cannot be sampled.
    """
    check_keras_model(model)
    check_likelihood(likelihood)
    described = describe(model, _given_shape(input_shape))
    if is_auto(x_transform):
        x_transform = None
        if _takes_plain_numbers(described) and not any(map(_is_adapted, all_layers(model))):
            x_transform = "standardize"
    settings |= {"likelihood": likelihood, "x_transform": x_transform, "dtype": dtype}
    stack = plain_stack(model)
    if stack is not None:
        priors = _priors_of_stack(prior, described, likelihood)
        if priors is not None:
            sizes, activations = stack
            check_constraints(model.trainable_variables)
            model(np.zeros((1, sizes[0])), training=False)  # a call makes its losses known
            spec = make_spec(sizes, activation=activations, prior=priors, **settings)
            return replace(spec, choices=(*spec.choices, *_left_out(model)))
    return _keras_spec(model, described, prior, **settings)


def _given_shape(shape: Any) -> tuple[int, ...] | None:
    if shape is None:
        return None
    if not isinstance(shape, (list, tuple)):
        shape = (shape,)
    return tuple(check_integer("input_shape", size, minimum=1) for size in shape)


def _takes_plain_numbers(described: Described) -> bool:
    """Check whether inputs are a row of numbers, and not an image, a sequence or word indices."""
    looked_up = any("Embedding" in one.layers for one in described.variables)
    return len(described.input_shape) == 1 and not looked_up


def _is_adapted(layer: Any) -> bool:
    """Check whether a layer normalises by the statistics of some rows."""
    return isinstance(layer, keras.layers.Normalization) and bool(
        np.any(np.asarray(layer.mean) != 0)
    )


def _priors_of_stack(prior: Any, described: Described, likelihood: Likelihood) -> Any:
    """Convert the prior to that of a perceptron; return None if some weights keep their values."""
    if not isinstance(prior, dict):
        return prior
    default, *_ = default_keras_prior(likelihood)
    found = resolve_keras_priors(prior, described.variables, default)
    if None in found:
        return None
    pairs = zip(found[::2], found[1::2])
    return [{"kernel": kernel, "bias": bias} for kernel, bias in pairs]


def _keras_spec(model: Any, described: Described, prior: Any, **settings: Any) -> KerasSpec:
    paths = {one.index: renamed_path(one.path, described.names) for one in described.variables}
    frozen = tuple(
        FrozenVariable.of(paths[one.index], one.index, value)
        for one, value in zip(described.variables, described.values)
    )
    # The model rebuilt with all of its own weights, which must give the same outputs.
    shape, layer_classes = described.input_shape, known_layers(described.custom)
    network = built(shape, described.architecture, (), frozen, layer_classes, "float64")
    trial = try_model(model, network)
    default, *_ = default_keras_prior(settings["likelihood"])
    resolve = partial(resolve_keras_priors, variables=described.variables, default=default)
    found, common = common_settings(
        trial.facts["num_outputs"], default_keras_prior, resolve, prior=prior, **settings
    )
    sampled = tuple(
        SampledVariable(paths[one.index], one.index, one.shape, one.fan_in, chosen)
        for one, chosen in zip(described.variables, found)
        if chosen is not None
    )
    for one in sampled:
        if one.prior.per_input and one.index not in trial.on_inputs:
            raise ValueError(no_scales_of_inputs(one.prior, one.path))
    check_constraints(model.variables[one.index] for one in sampled)
    common["choices"] = (*common["choices"], *_left_out(model))
    indices = [one.index for one in sampled]
    frozen = tuple(one for one in frozen if one.index not in indices)
    num_products = sum(prod(one.shape) for one in sampled)
    trial.facts["num_products"] = max(trial.facts["num_products"], num_products)
    facts = KerasFacts(
        title=described.title,
        keras_version=keras.__version__,
        input_shape=shape,
        is_smooth=described.is_smooth,
        readout=_sampled_readout(trial, indices),
        no_jacobian=_jacobian_obstacle(model, sampled, network),
        custom=described.custom,
        **trial.facts,
    )
    spec = KerasSpec(
        facts=facts,
        architecture=described.architecture,
        sampled=sampled,
        frozen=frozen,
        layer_classes=layer_classes,
        **common,
    )
    check_keras_spec(spec)
    check_ending(model, trial.ending, spec.likelihood, bool(spec.y_transform))
    return spec


def _left_out(model: Any) -> tuple[Choice, ...]:
    """Return a Choice on losses that Keras adds, which are left out of the posterior.

    The model must have been called before.
    """
    named = [layer.name for layer in inner_layers(model) if layer.losses]
    if not model.losses:
        return ()
    why = f"the prior stands for what Keras adds to the loss, of {', '.join(named) or model.name}"
    return (Choice("regularizers", "left out", why),)


def _sampled_readout(trial: KerasTrial, indices: list[int]) -> int | None:
    """Return the position of the readout's kernel among the sampled variables, or None.

    Its bias, the variable after the kernel, must be sampled, too.
    """
    if trial.readout is None or not {trial.readout, trial.readout + 1} <= set(indices):
        return None
    return indices.index(trial.readout)


def _jacobian_obstacle(
    model: Any, sampled: tuple[SampledVariable, ...], network: KerasNetwork
) -> str | None:
    if any(isinstance(one, keras.layers.RNN) and not one.unroll for one in inner_layers(model)):
        return (
            "TensorFlow takes no derivatives of all rows of a recurrent layer at once, unless it has "
            "unroll=True"
        )
    sizes = [prod(one.shape) for one in sampled]

    def summed_outputs(theta: Tensor, x: Tensor) -> Tensor:
        parts = zip(sampled, tf.split(theta, sizes))
        values = {one.index: tf.reshape(part, one.shape) for one, part in parts}
        # The derivative of the sum goes through the same operations as those of the single outputs.
        return tf.reduce_sum(network.outputs(values, x), axis=0, keepdims=True)

    rows = trial_rows(model, network.input_shape)
    x = tf.constant(rows.reshape(len(rows), -1).T, "float64")
    return jacobian_obstacle(summed_outputs, tf.zeros([sum(sizes)], "float64"), x)


_OFF = ("Dropout", "AlphaDropout", "GaussianDropout", "GaussianNoise", "ActivityRegularization")


def plain_stack(model: Any) -> tuple[list[int], list[str]] | None:
    """Return (widths, activation of each hidden layer) if a model is a plain stack of Dense layers.

    Widths run from inputs to outputs. All layers must be Dense, with a bias and trainable, except
    for separate activations and layers that are inactive outside training. The last layer must have
    no activation. Return None for other models.
    """
    sizes: list[int] = []
    activations: list[Any] = []
    for layer in _chain(model):
        kind = type(layer)
        if kind is keras.layers.Dense:
            if not (layer.use_bias and all(one.trainable for one in layer.variables)):
                return None
            sizes.append(layer.units)
            activations.append(activation_name(layer.activation))
        elif kind is keras.layers.Activation and activations and activations[-1] == "identity":
            activations[-1] = activation_name(layer.activation)
        elif not (kind.__name__ in _OFF and kind is getattr(keras.layers, kind.__name__)):
            return None
    are_known = all(isinstance(name, str) for name in activations)
    if not sizes or not are_known or activations[-1] != "identity":
        return None
    return [model.input_shape[1], *sizes], activations[:-1]


def _chain(model: Any) -> list[Any]:
    """Return the layers of a Sequential or Functional model if each is called once, else no layers.

    The model must have no operations that are not layers, `keras.ops` and sums of outputs. The
    layers of a plain stack do not join several inputs, so that they are then a chain.
    """
    if type(model) is not keras.Sequential and type(model).__name__ != "Functional":
        return []
    layers = [one for one in model.layers if type(one) is not keras.layers.InputLayer]
    is_called_again = any(len(one._inbound_nodes) > 1 for one in layers)
    has_rows_of_numbers = len(model.input_shape) == 2 and model.input_shape[1] is not None
    is_chain = has_rows_of_numbers and not is_called_again and not bare_operations([model])
    return layers if is_chain else []
