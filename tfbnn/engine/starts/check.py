"""Starting points of chains: prior draws, noise scales, and the check that a chain can move."""

import numpy as np

from tfbnn.engine.basis import seeds
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.potential import Density, Potential
from tfbnn.engine.density.row_blocks import rows_per_block, sum_over_blocks
from tfbnn.exceptions import StartError
from tfbnn.spec.network_spec import NetworkSpec, draw_parameters
from tfbnn.system.arrays import Array

# Distance that starts keep from the ends of a Uniform prior, as a share of its width.
_MARGIN = 1e-3


def draw_prior(spec: NetworkSpec, seed: int, num_chains: int) -> Array:
    """Draw one start per chain from the prior, in the sampled coordinates: [C, P].

    If the prior is an earlier posterior, use its networks in turn instead. These are the networks
    where it is largest.
    """
    if spec.earlier is not None:
        networks = spec.earlier.networks.values
        return networks[np.arange(num_chains) % len(networks)].astype(spec.dtype)
    generators = [seeds.generator(seed, "prior", chain) for chain in range(num_chains)]
    return np.stack([draw_parameters(spec, generator) for generator in generators]).astype(
        spec.dtype
    )


def with_residual_noise(spec: NetworkSpec, theta: Array, data: Data) -> Array:
    """Set the learned noise scales [C, K] from the residuals, after subtracting known row noise.

    The noise scale of counts is relative and is left unchanged.
    """
    if not (spec.layout.num_noise and spec.has_additive_noise):
        return theta
    variance, known = (total / data.total_weight for total in _sums_of_squares(spec, theta, data))
    if data.row_noise is not None:
        # Keep at least a tenth of the residual scale, so that the noise scale can still move.
        variance = np.maximum(variance - known, 0.01 * variance)
    theta = theta.copy()
    log_scale = 0.5 * np.log(np.maximum(variance, np.finfo(theta.dtype).tiny))
    # `check_start` reports outputs that overflow, with their row.
    usable = np.isfinite(log_scale)
    theta[:, spec.layout.log_noise_scale][usable] = log_scale[usable]
    return theta


def residual_scales(spec: NetworkSpec, theta: Array, data: Data) -> Array:
    """Compute the root mean square residual [C, K] of each target for starts [C, P]."""
    squares, _ = _sums_of_squares(spec, theta, data)
    return np.sqrt(squares / data.total_weight)


def misfits(spec: NetworkSpec, theta: Array, data: Data) -> Array:
    """Compute the misfit of starts [C, P]: the residual scale of the worst target.

    It is measured in standard deviations of that target. Targets must be numbers. A constant
    target has misfit zero.
    """
    rows = data.rows()
    y = rows.y.numpy().astype(np.float64)
    weights = np.ones_like(y[:1]) if rows.weights is None else rows.weights.numpy()
    mean = np.average(y, axis=1, weights=weights[0])
    variance = np.average((y - mean[:, None]) ** 2, axis=1, weights=weights[0])
    spread = np.sqrt(np.where(variance > 0.0, variance, np.inf))
    return (residual_scales(spec, theta, data) / spread).max(axis=1)


def _sums_of_squares(spec: NetworkSpec, theta: Array, data: Data) -> list[Array]:
    """Sum the squares of residuals [C, K] and known row noise [K] over the rows; float64, NumPy."""
    theta = tf.convert_to_tensor(theta)

    def of_rows(rows: Data) -> tuple[Tensor, Tensor]:
        outputs = network_outputs(spec, theta, rows.x)
        residual = rows.y - outputs[:, : spec.num_targets]  # the first are locations
        known = tf.zeros_like(rows.y) if rows.row_noise is None else rows.row_noise
        return _sum_of_squares(residual, rows), _sum_of_squares(known, rows)

    num_targets = data.y.shape[-2]
    zeros = tuple(tf.zeros(shape, tf.float64) for shape in ([len(theta), num_targets], num_targets))
    length = rows_per_block(spec, len(theta))
    return [total.numpy() for total in sum_over_blocks(of_rows, zeros, data, length)]


def _sum_of_squares(values: Tensor, rows: Data) -> Tensor:
    return tf.reduce_sum(rows.counted(tf.cast(values, tf.float64) ** 2), axis=-1)


def inside_support(spec: NetworkSpec, theta: Array) -> Array:
    """Clip starts [C, P] to the boxes of Uniform priors, which ADAM does not respect."""
    low, high = Potential(spec).limits
    width = high - low
    margin = np.where(np.isfinite(width), _MARGIN * width, 0.0)
    return np.clip(theta, low + margin, high - margin).astype(theta.dtype)


def check_start(
    potential: Density, data: Data, theta: Array, value: Array, gradient: Array
) -> None:
    """Check that the log density and its gradient are finite at all starts.

    A kernel would silently reject every proposal from a point where they are not.

    Args:
        potential: Density.
        data: Data.
        theta: Starts [C, P].
        value: Log density [C].
        gradient: Its gradient in the potential's coordinates [C, number of them].

    Raises:
        StartError: If one is not finite. The message names the chain and the row or parameter.
    """
    spec = potential.spec
    for chain in range(len(theta)):
        if not np.isfinite(theta[chain]).all():
            index = int(np.flatnonzero(~np.isfinite(theta[chain]))[0])
            raise StartError(
                f"Chain {chain} starts with {spec.parameter_name(index)} = "
                f"{theta[chain, index]}. Lower Pretraining.learning_rate, or use pretraining=None."
            )
        if not np.isfinite(value[chain]):
            raise StartError(potential.why_not_finite(theta[chain : chain + 1], data, chain))
        if not np.isfinite(gradient[chain]).all():
            first = int(np.flatnonzero(~np.isfinite(gradient[chain]))[0])
            index = int(potential.in_theta[first])
            raise StartError(
                f"The gradient of the log density is not finite where chain {chain} starts: "
                f"{gradient[chain, first]} at {spec.parameter_name(index)} = "
                f"{theta[chain, index]}. Use dtype='float64' or a narrower prior."
            )
