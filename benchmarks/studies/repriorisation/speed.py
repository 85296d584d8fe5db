"""Milliseconds per leapfrog step of the three methods, and what the arithmetic alone would take."""

import time

import numpy as np
import tensorflow as tf

from benchmarks.lib.blocks import make_group
from benchmarks.studies.repriorisation.chains import LEAPFROG_STEPS, METHODS, Watch, kernel, start

__all__ = ["arithmetic", "measure_speed"]

# Edge of the square matrices whose product gives the machine's rate.
_EDGE = 1024
# On which the time of a step does not depend.
STEP_SIZE = 0.001


def measure_speed(case, rounds):
    """Medians over rounds in which the methods take turns, as JSON values.

    Args:
        case: Case.
        rounds: Turns of every method: one block of at least 0.05 s each.
    """
    spec, (x, y, _) = case.spec, case.rows
    theta, groups = start(case, 0), {}
    for method in METHODS:
        settings = kernel(method, step_size=STEP_SIZE)
        one, _ = make_group(spec, settings, x, y, theta, 1, 3, sink=Watch(_nothing))
        count = _affordable(one)
        group, _ = make_group(spec, settings, x, y, theta, count, rounds + 1, sink=Watch(_nothing))
        groups[method] = group
    milliseconds, rates = {method: [] for method in METHODS}, {"float32": [], "float64": []}
    for group in groups.values():
        group.advance()
    for _ in range(rounds):
        for method, group in groups.items():
            steps = group.program.plan.block_length * LEAPFROG_STEPS
            milliseconds[method].append(1e3 * _seconds(group.advance) / steps)
        for dtype, found in rates.items():
            found.append(_matmul_rate(dtype))
    rates = {dtype: float(np.median(found)) for dtype, found in rates.items()}
    return {
        "milliseconds": {m: float(np.median(found)) for m, found in milliseconds.items()},
        "quickest": {m: float(np.min(found)) for m, found in milliseconds.items()},
        "overhead": {
            m: float(np.median(np.divide(found, milliseconds["standard"])))
            for m, found in milliseconds.items()
        },
        "rates": rates,
        "bound": {
            "standard": _bound(arithmetic(case, spec.layout.num_parameters)["gradient"], rates),
            "repriorised": sum(
                _bound(part, rates)
                for part in arithmetic(case, spec.layout.num_parameters).values()
            ),
        },
    }


def arithmetic(case, num_parameters):
    """Operations of one gradient: dict part -> (those in float32, those in float64).

    A product of [a, b] and [b, c] counts 2 a b c. With n the smaller and m the larger of features
    and rows, the Gram matrix takes 2 n^2 m, its Cholesky factor n^3 / 3, the inverse 2 n^3 by two
    triangular solves, its product with the features 2 n^2 m.
    """
    features, rows = case.width + 1, case.num_rows
    small, large = sorted((features, rows))
    return {
        # Once forwards, and backwards by weights and by units.
        "gradient": (6.0 * rows * num_parameters, 0.0),
        "gram": (0.0, 2.0 * small**2 * large),
        "factor": (0.0, small**3 / 3.0),
        "inverse": (0.0, 2.0 * small**3),
        "product": (2.0 * small**2 * large, 0.0),
    }


def _bound(operations, rates):
    """Milliseconds of operations in float32 and float64 at the rates of large products."""
    single, double = operations
    return 1e3 * (single / rates["float32"] + double / rates["float64"])


def _affordable(group):
    """Transitions that take about 0.05 s, a power of two."""
    group.advance()
    seconds = min(_seconds(group.advance) for _ in range(2))
    return 2 ** int(np.clip(np.ceil(np.log2(0.05 / seconds)), 0, 6))


def _matmul_rate(dtype):
    """Operations per second of one large product."""
    matrix = tf.ones([_EDGE, _EDGE], dtype)
    return 2.0 * _EDGE**3 / _seconds(lambda: tf.matmul(matrix, matrix).numpy())


def _seconds(function):
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def _nothing(theta):
    """Return a zero for each draw, which is all that is kept of it."""
    return np.zeros([*theta.shape[:2], 1], theta.dtype)
