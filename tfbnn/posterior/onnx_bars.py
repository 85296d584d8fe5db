"""Calibrated bars in an ONNX graph; the numbers of `tfbnn.posterior.prediction`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tfbnn.posterior.calibration.exported import BarConstants

Operation = Callable[..., str]


def add_bars(op: Operation, constants: BarConstants, x: str, centre: str, spread: str) -> str:
    """Adds lower end, median and upper end [3, K, N], transformed.

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
    """Whether inputs are not inside, and whether they are outside the training inputs [1, N]."""
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
