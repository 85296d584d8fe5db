"""Graph of the mean and spread of all networks, and its export to ONNX with the package `onnx`.

The graph consists of operations of the ONNX standard that onnxruntime has for float32 and float64.
`tfbnn.engine.export.saved_model` has TensorFlow compute the same operations.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from tfbnn.data.training_inputs import MARGIN, TrainingInputs
from tfbnn.posterior.calibration.exported import BarConstants, bar_constants
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.function_moments import MomentNetworks, judging_networks, moment_networks
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.keras_spec import require_stack
from tfbnn.spec.likelihoods import LINKS
from tfbnn.spec.model_spec import perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import replacing
from tfbnn.system.version import __version__
from tfbnn.system.words import required

# Every operation used has the same meaning in all later versions of the standard, and runtimes
# since 2022 know this one.
_OPSET, _IR_VERSION = 17, 8
# Protocol buffers hold at most 2 GiB.
_MOST_BYTES = 2**31 - 2**20


class Operations(Protocol):
    """Operations of the ONNX standard on numbers of one dtype; results are names or tensors."""

    def __call__(self, kind: str, *inputs: Any, **attributes: Any) -> Any:
        """Add an operation, whose inputs are results, numbers or arrays, and return its result."""

    def cast(self, values: Any) -> Any:
        """Convert a result to the dtype of the numbers."""

    def activation(self, name: str, values: Any) -> Any:
        """Apply an activation function to a result."""


def write_onnx(ensemble: Ensemble, path: str | os.PathLike[str]) -> None:
    """Write the graph of an ensemble to `path`; `BayesianMLP.to_onnx` describes it.

    Args:
        ensemble: Ensemble, whose draws are networks.
        path: File.

    Raises:
        ImportError: If `onnx` is not installed.
        ValueError: If the draws do not fit into an ONNX file.
    """
    require_stack(ensemble.spec, "to_onnx")
    onnx = required("onnx", "to_onnx needs the package onnx", "onnx")
    networks, scored = moment_networks(ensemble), judging_networks(ensemble)
    ensemble = networks.ensemble
    constants = bar_constants(ensemble)
    scored = None if constants is None else scored
    parts = (networks,) if scored is None else (networks, scored)
    size = sum(weights.nbytes for one in parts for weights in one.weights)
    if size > _MOST_BYTES:
        raise ValueError(
            f"An ONNX file holds at most 2 GiB, the draws take {size / 2**30:.1f}. Use to_savedmodel."
        )
    nodes: list[Any] = []
    tensors: list[Any] = []
    operations = partial(_OnnxOperations, onnx, nodes, tensors)
    given = graph_weights(networks)
    judged = None if scored is None else (scored, *graph_weights(scored))
    found = moments_graph(networks, constants, *given, operations, judged, "x")
    double, size = onnx.TensorProto.DOUBLE, ensemble.spec.num_predicted
    describe = onnx.helper.make_tensor_value_info
    inputs = [describe("x", double, ["N", ensemble.spec.num_inputs])]
    outputs = [describe(name, double, ["N", size]) for name in found]
    nodes.extend(onnx.helper.make_node("Identity", [one], [name]) for name, one in found.items())
    graph = onnx.helper.make_graph(nodes, "tfbnn", inputs, outputs, tensors)
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="tfbnn",
        producer_version=__version__,
    )
    known: dict[str, Any] = {
        "feature_names": ensemble.feature_names,
        "classes": ensemble.classes,
        "coding": ensemble.coding and ensemble.coding.to_json(),
    }
    texts = {name: json.dumps(value) for name, value in known.items() if value is not None}
    onnx.helper.set_model_props(model, texts)
    with replacing(path) as temporary:
        onnx.save(model, temporary, format="protobuf")


class _OnnxOperations:
    """Builder of a graph; numbers among the inputs of an operation become constants of one dtype."""

    def __init__(self, onnx: ModuleType, nodes: list[Any], tensors: list[Any], dtype: Any) -> None:
        self._onnx, self._nodes, self._tensors = onnx, nodes, tensors
        self._dtype = np.dtype(dtype)

    def __call__(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """Add one operation.

        Args:
            kind: Name of an operation of the ONNX standard.
            inputs: Names of tensors, or numbers and arrays. Integer arrays stay integers.
            attributes: Attributes of the operation.

        Returns:
            Name of the result.
        """
        names = [entry if isinstance(entry, str) else self._constant(entry) for entry in inputs]
        result = f"t{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, names, [result], **attributes))
        return result

    def cast(self, values: str) -> str:
        """Add a conversion to the dtype of the constants."""
        to = self._onnx.helper.np_dtype_to_tensor_dtype(self._dtype)
        return self("Cast", values, to=to)

    def activation(self, name: str, values: str) -> str:
        """Add the operations of an activation function."""
        return ACTIVATIONS[name].onnx(self, values)

    def _constant(self, value: Any) -> str:
        value = np.asarray(value)
        if value.dtype.kind == "f":
            value = value.astype(self._dtype)
        name = f"c{len(self._tensors)}"
        self._tensors.append(self._onnx.numpy_helper.from_array(value, name))
        return name


def graph_weights(networks: MomentNetworks) -> tuple[list[tuple[Array, Array]], Array]:
    """Return (kernel, bias) of each layer, and the weights of the draws."""
    weights = [(one[..., :-1], one[..., -1:]) for one in networks.weights]
    return weights, networks.ensemble.draw_weights


def moments_graph(
    networks: MomentNetworks,
    constants: BarConstants | None,
    weights: Sequence[tuple[Any, Any]],
    draw_weights: Any,
    operations: Callable[[Any], Operations],
    judged: tuple[MomentNetworks, Any, Any] | None,
    x: Any,
) -> dict[str, Any]:
    """Build the graph and return its outputs [N, K] by name; inside it rows are innermost.

    Args:
        networks: MomentNetworks.
        constants: BarConstants of calibrated bars, or None.
        weights: (kernel, bias) of each layer, those of `networks` or variables that hold them.
        draw_weights: Weights of the draws [S].
        operations: Function that returns the Operations of a dtype.
        judged: `judging_networks` with their weights and those of their draws, or None.
        x: Inputs [N, D].
    """
    ensemble, spec = networks.ensemble, networks.ensemble.spec
    op, network_op = operations(np.float64), operations(spec.dtype)
    for step in ensemble.x_pipeline.steps:
        x = step.forward_onnx(op, x)
    x = op("Transpose", x, perm=[1, 0])

    def inverse(values: Any) -> Any:
        for step in reversed(ensemble.y_pipeline.steps):
            values = step.inverse_onnx(op, values)
        return values

    def parts(one: MomentNetworks, weights: Any, draw_weights: Any) -> tuple[Any, Any, Any]:
        lines = op.cast(_network_outputs(network_op, spec, weights, network_op.cast(x)))
        location = op("Slice", lines, *np.array([[0], [spec.num_predicted], [1]]))
        roots = _roots(op, lines, one) if one.in_closed_form else None
        return location, roots, op("Reshape", draw_weights, np.array([-1, 1, 1, 1]))

    own = parts(networks, weights, draw_weights)
    location, roots, draw_weights = own
    found = {}
    if constants is not None or roots is not None:
        mean, stddev = _moments(op, *own)
    if constants is not None:
        if judged is not None:
            mean, stddev = _moments(op, *parts(*judged))
        ends = inverse(_bars(op, constants, x, mean, stddev))
        for number, name in enumerate(constants.names):
            found[name] = op("Gather", ends, np.array(number), axis=0)
    if roots is not None:
        mean, stddev = inverse(mean), op("Mul", stddev, networks.ensemble.target_unit[:, None])
    else:
        location = inverse(LINKS[spec.likelihood.link].onnx(op, location))
        mean, stddev = _moments(op, location, None, draw_weights)
    found = {"mean": mean, "stddev": stddev} | found
    return {name: op("Transpose", values, perm=[1, 0]) for name, values in found.items()}


def _moments(op: Operations, location: Any, roots: Any, draw_weights: Any) -> tuple[Any, Any]:
    """Return mean and standard deviation [K, N] of locations [S, K, N].

    Roots of a variance that is known in closed form are added to the spread, if there are any.
    """
    location = op("Unsqueeze", location, np.array([2]))
    mean = _average(op, location, draw_weights)
    deviations = op("Sub", location, mean)
    if roots is not None:
        deviations = op("Concat", deviations, roots, axis=2)
    stddev = _root_mean_square(op, deviations, draw_weights)
    return op("Squeeze", mean, np.array([0, 2])), op("Squeeze", stddev, np.array([0, 2]))


def _average(op: Operations, values: Any, draw_weights: Any) -> Any:
    """Return the weighted sum over draws and the sum over lines: [S, K, L, N] -> [1, K, 1, N]."""
    return op("ReduceSum", op("Mul", draw_weights, values), np.array([0, 2]))


def _root_mean_square(op: Operations, values: Any, draw_weights: Any) -> Any:
    """Return the root mean square in units of the largest value: [S, K, L, N] -> [1, K, 1, N].

    It is that of `tfbnn.posterior.averages`.
    """
    largest = op("ReduceMax", op("Abs", values), axes=[0, 2])
    unit = op("Where", op("Equal", largest, 0.0), 1.0, largest)
    scaled = op("Div", values, unit)
    return op("Mul", unit, op("Sqrt", _average(op, op("Mul", scaled, scaled), draw_weights)))


def _roots(op: Operations, outputs: Any, networks: MomentNetworks) -> Any:
    """Return the lines behind the outputs for every target: [S, K + G p, N] -> [S, K, p, N]."""
    num_groups, num_features = networks.roots_shape
    num_outputs = networks.ensemble.spec.num_outputs
    last = num_outputs + num_groups * num_features
    lines = op("Slice", outputs, *np.array([[num_outputs], [last], [1]]))
    # The number of rows may be 0, and has to be an axis that Reshape can copy.
    lines = op("Transpose", lines, perm=[0, 2, 1])
    lines = op("Reshape", lines, np.array([0, 0, num_groups, num_features]))
    lines = op("Transpose", lines, perm=[0, 2, 3, 1])
    return op("Expand", lines, np.array([1, num_outputs, 1, 1]))


def _network_outputs(
    op: Operations, spec: NetworkSpec, weights: Sequence[tuple[Any, Any]], x: Any
) -> Any:
    """Return the outputs of all networks [S, lines of the last layer, N] at transformed inputs [D, N]."""
    hidden, names = x, perceptron(spec, "An export").activations
    for index, (kernel, bias) in enumerate(weights):
        hidden = op("Add", op("MatMul", kernel, hidden), bias)
        if index < len(names):
            hidden = op.activation(names[index], hidden)
    return hidden


def _bars(op: Operations, constants: BarConstants, x: Any, centre: Any, spread: Any) -> Any:
    """Return the lower end, median and upper end of the error bars [3, K, N], transformed.

    Args:
        op: Operations in float64.
        constants: BarConstants.
        x: Transformed inputs [D, N].
        centre, spread: Mean and standard deviation of the function [K, N], transformed.
    """
    stddev = op("Sqrt", op("Add", op("Mul", spread, spread), np.square(constants.noise)))
    at_edge, is_outside = _outside_masks(op, constants.inputs, x)
    scores, narrower = (
        op("Add", op("Mul", stddev, 0.0), first)
        for first in (constants.scores[0], constants.narrower[0])
    )
    for number in range(1, len(constants.scores)):
        begins = at_edge
        if not constants.is_by_trust:
            begins = op("Greater", stddev, constants.edges[number - 1])
        step = op("Where", begins, 1.0, 0.0)
        scores = op("Add", scores, op("Mul", step, constants.scores[number]))
        narrower = op("Add", narrower, op("Mul", step, constants.narrower[number]))
    left = op("And", op("Greater", narrower, 0.5), is_outside)
    return op("Add", centre, op("Mul", stddev, op("Where", left, constants.plain, scores)))


def _outside_masks(op: Operations, inputs: TrainingInputs, x: Any) -> tuple[Any, Any]:
    """Return two masks [1, N]: inputs not inside, and inputs outside the training inputs."""
    low, high, mean = (one[:, None] for one in (inputs.low, inputs.high, inputs.mean))
    usual, largest = map(float, inputs.distances)
    beyond = op("Max", op("Sub", low, x), op("Sub", x, high))
    deviations = op("MatMul", inputs.whitening_matrix, op("Sub", x, mean))
    distance = op("ReduceL2", deviations, axes=[0])
    not_inside = _is_off(op, beyond, distance, usual)
    too_far = op("Sub", beyond, MARGIN * (high - low))
    return not_inside, _is_off(op, too_far, distance, (1.0 + MARGIN) * largest)


def _is_off(op: Operations, beyond: Any, distance: Any, limit: float) -> Any:
    """Return whether any entry of `beyond` [D, N] is above 0, or the distance [N] above the limit."""
    is_beyond = op("Greater", op("ReduceMax", beyond, axes=[0]), 0.0)
    return op("Or", is_beyond, op("Greater", distance, limit))
