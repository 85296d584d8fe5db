"""Write the mean and spread of all networks as one ONNX graph; needs the package `onnx`.

The graph is put together from the weights, without TensorFlow, in operations that onnxruntime has
for float32 and float64."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from tfbnn.posterior.calibration.exported import BarConstants, bar_constants
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.function_moments import MomentNetworks, moment_networks
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.likelihoods import LINKS
from tfbnn.spec.model_spec import perceptron
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import replacing
from tfbnn.system.version import __version__
from tfbnn.system.words import required

# Every operation used has the same meaning in all later versions of the standard, and runtimes
# since 2022 know this one.
_OPSET, _IR_VERSION = 17, 8
# Protocol buffers end at 2 GiB.
_MOST_BYTES = 2**31 - 2**20
Operation = Callable[..., str]


def write_onnx(ensemble: Ensemble, path: str | os.PathLike[str]) -> None:
    """Write the graph of an ensemble to `path`; `BayesianMLP.to_onnx` says what it holds.

    Args:
        ensemble: Ensemble, whose draws are networks.
        path: File.

    Raises:
        ImportError: When `onnx` is not installed.
        ValueError: When the draws do not fit into an ONNX file.
    """
    onnx = required("onnx", "to_onnx needs the package onnx", "onnx")
    networks = moment_networks(ensemble)
    ensemble = networks.ensemble
    size = sum(weights.nbytes for weights in networks.weights)
    if size > _MOST_BYTES:
        raise ValueError(
            f"An ONNX file holds at most 2 GiB, the draws take {size / 2**30:.1f}. Use to_savedmodel."
        )
    constants = bar_constants(ensemble)
    nodes: list[Any] = []
    tensors: list[Any] = []
    _add_moments(networks, constants, partial(_Operations, onnx, nodes, tensors))
    double, size = onnx.TensorProto.DOUBLE, ensemble.spec.num_predicted
    describe = onnx.helper.make_tensor_value_info
    inputs = [describe("x", double, ["N", ensemble.spec.num_inputs])]
    names = ("mean", "stddev", *(() if constants is None else constants.names))
    outputs = [describe(name, double, ["N", size]) for name in names]
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


class _Operations:
    """Add operations to a graph; numbers among their inputs become constants of one dtype."""

    def __init__(self, onnx: ModuleType, nodes: list[Any], tensors: list[Any], dtype: Any) -> None:
        self._onnx, self._nodes, self._tensors = onnx, nodes, tensors
        self._dtype = np.dtype(dtype)

    def __call__(
        self, kind: str, *inputs: Any, output: str | None = None, **attributes: Any
    ) -> str:
        """Add one operation.

        Args:
            kind: Name of an operation of the ONNX standard.
            inputs: Names of tensors, or numbers and arrays. Integer arrays stay integers.
            output: Name of the result; None: a new one.
            attributes: Of the operation.

        Returns:
            Name of the result.
        """
        names = [entry if isinstance(entry, str) else self._constant(entry) for entry in inputs]
        result = output or f"t{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, names, [result], **attributes))
        return result

    def cast(self, name: str) -> str:
        """Add a conversion to the dtype of the constants."""
        to = self._onnx.helper.np_dtype_to_tensor_dtype(self._dtype)
        return self("Cast", name, to=to)

    def _constant(self, value: Any) -> str:
        value = np.asarray(value)
        if value.dtype.kind == "f":
            value = value.astype(self._dtype)
        name = f"c{len(self._tensors)}"
        self._tensors.append(self._onnx.numpy_helper.from_array(value, name))
        return name


def _add_moments(
    networks: MomentNetworks,
    constants: BarConstants | None,
    operations: Callable[[Any], _Operations],
) -> None:
    """Add everything between x [N, D] and the outputs [N, K]; rows are innermost in between."""
    ensemble = networks.ensemble
    op, network_op = operations(np.float64), operations(ensemble.spec.dtype)
    x, spec = "x", ensemble.spec
    for step in ensemble.x_pipeline.steps:
        x = step.forward_onnx(op, x)
    x = op("Transpose", x, perm=[1, 0])
    outputs = op.cast(_network_outputs(network_op, networks, network_op.cast(x)))

    def inverse(values: str) -> str:
        for step in reversed(ensemble.y_pipeline.steps):
            values = step.inverse_onnx(op, values)
        return values

    location = op("Slice", outputs, *np.array([[0], [spec.num_predicted], [1]]))
    roots = _roots(op, outputs, networks) if networks.in_closed_form else None
    if constants is not None or roots is not None:
        mean, stddev = _moments(op, location, roots, ensemble.draw_weights)
    if constants is not None:
        ends = inverse(add_bars(op, constants, x, mean, stddev))
        for number, name in enumerate(constants.names):
            end = op("Gather", ends, np.array(number), axis=0)
            op("Transpose", end, perm=[1, 0], output=name)
    if roots is not None:
        mean, stddev = inverse(mean), op("Mul", stddev, networks.ensemble.target_unit[:, None])
    else:
        location = inverse(LINKS[spec.likelihood.link].onnx(op, location))
        mean, stddev = _moments(op, location, None, ensemble.draw_weights)
    op("Transpose", mean, perm=[1, 0], output="mean")
    op("Transpose", stddev, perm=[1, 0], output="stddev")


def _moments(op: _Operations, location: str, roots: str | None, weights: Array) -> tuple[str, str]:
    """Return mean and standard deviation [K, N] of locations [S, K, N], with roots of a variance or none."""
    location = op("Unsqueeze", location, np.array([2]))
    mean = _average(op, location, weights)
    deviations = op("Sub", location, mean)
    if roots is not None:
        deviations = op("Concat", deviations, roots, axis=2)
    stddev = _root_mean_square(op, deviations, weights)
    mean, stddev = (op("Squeeze", found, np.array([0, 2])) for found in (mean, stddev))
    return mean, stddev


def _average(op: _Operations, values: str, weights: Array) -> str:
    """Return the weighted sum over draws and sum over lines: [S, K, L, N] -> [1, K, 1, N]."""
    return op("ReduceSum", op("Mul", values, weights[:, None, None, None]), np.array([0, 2]))


def _root_mean_square(op: _Operations, values: str, weights: Array) -> str:
    """Return that of `tfbnn.posterior.averages`, in units of the largest: [S, K, L, N] -> [1, K, 1, N]."""
    largest = op("ReduceMax", op("Abs", values), axes=[0, 2])
    unit = op("Where", op("Equal", largest, 0.0), 1.0, largest)
    scaled = op("Div", values, unit)
    return op("Mul", unit, op("Sqrt", _average(op, op("Mul", scaled, scaled), weights)))


def _roots(op: _Operations, outputs: str, networks: MomentNetworks) -> str:
    """Return the lines behind the outputs, for every target: [S, K + G p, N] -> [S, K, p, N]."""
    num_groups, num_features = networks.roots_shape
    num_outputs = networks.ensemble.spec.num_outputs
    last = num_outputs + num_groups * num_features
    lines = op("Slice", outputs, *np.array([[num_outputs], [last], [1]]))
    # The number of rows, which may be 0, has to stand where Reshape can copy it.
    lines = op(
        "Reshape",
        op("Transpose", lines, perm=[0, 2, 1]),
        np.array([0, 0, num_groups, num_features]),
    )
    lines = op("Transpose", lines, perm=[0, 2, 3, 1])
    return op("Expand", lines, np.array([1, num_outputs, 1, 1]))


def _network_outputs(op: _Operations, networks: MomentNetworks, x: str) -> str:
    """Return the outputs of all networks [S, their lines, N] at transformed inputs [D, N]."""
    hidden, names = x, perceptron(networks.ensemble.spec, "to_onnx").activations
    for index, weights in enumerate(networks.weights):
        kernel, bias = weights[..., :-1], weights[..., -1:]
        hidden = op("Add", op("MatMul", kernel, hidden), bias)
        if index < len(names):
            hidden = ACTIVATIONS[names[index]].onnx(op, hidden)
    return hidden


def add_bars(op: Operation, constants: BarConstants, x: str, centre: str, spread: str) -> str:
    """Add lower end, median and upper end [3, K, N], transformed.

    Args:
        op: Adds an operation on float64, see `tfbnn.posterior.onnx`.
        constants: BarConstants.
        x: Name of the transformed inputs [D, N].
        centre, spread: Names of mean and standard deviation of the function [K, N], transformed.
    """
    squares = (op("Mul", spread, spread), np.square(constants.noise))
    stddev = op("Sqrt", op("Add", *squares))
    at_edge, is_outside = _places(op, constants, x)
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


def _places(op: Operation, constants: BarConstants, x: str) -> tuple[str, str]:
    """Return whether inputs are not inside, and whether they are outside the training inputs [1, N]."""
    beyond = op("Max", op("Sub", constants.low, x), op("Sub", x, constants.high))
    deviations = op("MatMul", constants.whitening, op("Sub", x, constants.mean))
    distance = op("ReduceL2", deviations, axes=[0], keepdims=1)
    not_inside = op(
        "Or",
        op("Greater", _largest(op, beyond), 0.0),
        op("Greater", distance, constants.usual),
    )
    too_far = op("Greater", _largest(op, op("Sub", beyond, constants.reach)), 0.0)
    return not_inside, op("Or", too_far, op("Greater", distance, constants.largest))


def _largest(op: Operation, values: str) -> str:
    return op("ReduceMax", values, axes=[0], keepdims=1)
