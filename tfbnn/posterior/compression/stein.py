"""Stein thinning: draws that stand for the posterior density, whatever the chains did.

Reference:
    Riabiz, Chen, Cockayne, Swietach, Niederer, Mackey and Oates (2022), "Optimal thinning of MCMC
    output", J. R. Stat. Soc. B 84(4), 1059, arXiv:2005.03952.
"""

import numpy as np

from tfbnn.posterior.compression.thinning import stride
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.rows import Rows, data_hash
from tfbnn.system.arrays import Array
from tfbnn.system.extras import required
from tfbnn.system.warn import warn

# Draws from which the length scale is found.
_MAX_MEDIAN_DRAWS = 1000
# Chain weights closer than this to each other are equal.
_EQUAL_WEIGHTS = 1e-9


def stein_thinning(theta: Array, scores: Array, count: int) -> Array:
    """Draws chosen greedily to lower the kernel Stein discrepancy (Riabiz et al. 2022).

    The kernel is the inverse multiquadric (1 + |r|^2 / l^2)^(-1/2) of parameters that are scaled
    by their mean absolute deviations, with l the median distance over the square root of
    log(count). The discrepancy compares with the density whose gradient is given, not with the
    draws: how often chains visited a region plays no role.

    Args:
        theta: Draws [N, P].
        scores: Gradients of the log density there [N, P].
        count: Number of draws to choose.

    Returns:
        Draws [count], ascending.

    Raises:
        ImportError: When SciPy is not installed.
        ValueError: When all draws are the same.
    """
    spatial = required("scipy.spatial.distance", "compress needs SciPy", "fit")
    scale = np.mean(np.abs(theta - theta.mean(axis=0)), axis=0)
    moves = scale > 0
    if not moves.any():
        raise ValueError("All draws have the same parameters, so that there is nothing to choose.")
    points, scores = theta[:, moves] / scale[moves], scores[:, moves] * scale[moves]
    some = stride(np.full(len(points), 1.0 / len(points)), min(len(points), _MAX_MEDIAN_DRAWS))
    distances = spatial.pdist(points[some])
    typical = np.median(distances[distances > 0])  # chains that stand still repeat themselves
    precision = np.log(max(count, 3)) / typical**2
    # Of the kernel with itself: r = 0.
    total = 0.5 * (points.shape[1] * precision + np.square(scores).sum(axis=1))
    chosen = np.empty(count, int)
    for place in range(count):
        chosen[place] = np.argmin(total)
        total += _stein_kernel(points, scores, chosen[place], precision)
    return np.sort(chosen)


def _stein_kernel(points: Array, scores: Array, place: int, precision: float) -> Array:
    """Stein kernel of all draws [N] with the one at `place`.

    Out of the derivatives of (1 + l^-2 r^2)^-1/2.
    """
    apart = points - points[place]
    square = precision * np.square(apart).sum(axis=1)
    along = precision * np.einsum("np,np->n", apart, scores - scores[place])
    base = 1.0 + square
    curvature = points.shape[1] * precision + along - 3.0 * precision * square / base
    kernel: Array = curvature / base**1.5 + scores @ scores[place] / base**0.5
    return kernel


def posterior_scores(ensemble: Ensemble, theta: Array, rows: Rows) -> Array:
    """Gradients of the sampled log density, float64.

    Args:
        ensemble: Ensemble.
        theta: Parameters [N, P].
        rows: Checked Rows of the fit.

    Returns:
        [N, P].

    Raises:
        ImportError: When TensorFlow is not installed.
        ValueError: When draws cannot be compared with the density: unequal chain weights, or a
            Uniform prior, at whose edges the kernel's mean does not vanish.

    Warns:
        UserWarning: When the rows are not those of the fit.
    """
    spec = ensemble.spec
    if np.ptp(ensemble.chain_weights) > _EQUAL_WEIGHTS:
        raise ValueError(
            "method='stein' aims at the posterior, but the chains of this model are weighted "
            "unequally. Use method='kernel_thinning', which keeps the weighted predictions."
        )
    if any(prior.is_bounded for prior, _, _ in spec.weight_groups()):
        raise ValueError(
            "method='stein' needs a density without edges, but this model has a Uniform prior. Use "
            "method='kernel_thinning'."
        )
    expected = ensemble.provenance.data_sha256
    if expected is not None and expected != data_hash(rows):
        warn(
            "The rows for method='stein' are not exactly those of the fit, so that the draws are "
            "held against another posterior. Pass all training rows, in their order.",
        )
    from tfbnn.engine.density.value_and_gradient import log_prob_gradients

    gradients = log_prob_gradients(spec, theta, *ensemble.transform(rows))
    return gradients.astype(np.float64)
