"""The Gauss-Newton matrix of the potential: J^T Lambda J + prior curvature, in blocks of rows.

J is the Jacobian of the network outputs. Lambda is the Fisher information of the likelihood in the
outputs, times the power of the likelihood in the density. Noise scales and prior scales add their
Fisher information on the diagonal. Rows of an earlier posterior count like any others. The matrix
is positive semi-definite by construction, and positive definite if every prior has curvature.
Everything is float64, because the eigenvalues on nearly noise-free data range from 1 to more than
1e9. The products are left to BLAS, which uses their symmetry: it takes half the time of TensorFlow
at P = 562 and P = 1172, and XLA has no fast product of large float64 matrices on a CPU.

References:
    Schraudolph 2002, Neural Computation 14, 1723. Martens 2020, arXiv:1412.1193.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.engine.density.data import Data, earlier_data
from tfbnn.engine.density.densities import Noise, layer_scales
from tfbnn.engine.density.fisher import (
    Fisher,
    compiled_prior_curvature,
    likelihood_information,
    prior_curvature,
)
from tfbnn.engine.density.network import layer_weights, network_outputs
from tfbnn.engine.density.row_blocks import sum_over_blocks, taped
from tfbnn.engine.keras.keras_network import row_jacobians
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.layout import Slot
from tfbnn.spec.model_spec import ModelSpec, perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array
from tfbnn.system.threads import on_all_cores, single_threaded_blas

_BLOCK_ROWS = 1024
# Without a Jacobian blocks can be longer: with 4096 rows they take half the time.
_BLOCK_ROWS_OF_BEND = 4096
# Outputs are differenced over a tenth of a step, as in Transtrum and Sethna 2012.
_BEND = 0.1
# Number of shares of the blocks, summed in parallel into one matrix each. It does not depend on the
# number of cores, so that the order of the sum is always the same.
NUM_SHARES = 4


def gauss_newton_matrix(spec: NetworkSpec, theta: Array, data: Data) -> Array:
    """Compute the Gauss-Newton curvature of minus the log density at one network.

    Args:
        spec: NetworkSpec.
        theta: Parameters [P].
        data: Data.

    Returns:
        Symmetric matrix [P, P], float64.
    """
    theta = tf.constant(theta, tf.float64)
    total = np.diag(compiled_prior_curvature(spec)(theta).numpy())
    for one, rows in all_rows(spec, data):
        total = total + _of_rows(one, theta, rows)
    return total


def all_rows(spec: NetworkSpec, data: Data) -> Iterator[tuple[NetworkSpec, Data]]:
    """Yield (spec, Data) of the rows of a fit, then of the rows of earlier fits."""
    yield spec, data
    if spec.earlier is not None:
        yield spec.of_earlier(), earlier_data(spec, "float64")


def _of_rows(spec: NetworkSpec, theta: Tensor, data: Data) -> Array:
    """Compute the likelihood part of the matrix for some rows, on all cores."""
    scaled_columns = _of_blocks(_scaled_columns, spec)
    blocks = list(blocks_of(data))

    def sum_of(share: int) -> Array:
        total = np.zeros([spec.layout.num_parameters] * 2)
        for index, length in blocks[share::NUM_SHARES]:
            found = scaled_columns(theta, data, index, length)
            columns, noise = (array.numpy() for array in found)
            total += columns @ columns.T
            total[np.diag_indices_from(total)] += noise
        return total

    with single_threaded_blas():
        return np.asarray(sum(on_all_cores(sum_of, range(min(len(blocks), NUM_SHARES)))))


def gauss_newton_matrices(
    spec: NetworkSpec, theta: Tensor, data: Data, likelihood_weights: Tensor
) -> Tensor:
    """Compute the Gauss-Newton matrices at several networks, inside compiled programs.

    Args:
        spec: NetworkSpec.
        theta: Parameters [C, P], a float64 tensor.
        data: Data in float64.
        likelihood_weights: Powers of the likelihood in addition to that of the spec, float64 [C].

    Returns:
        Symmetric matrices [C, P, P], a float64 tensor.
    """
    total = likelihood_weights[:, None, None] * _matrices_of_rows(spec, theta, data)
    if spec.earlier is not None:
        total += _matrices_of_rows(spec.of_earlier(), theta, earlier_data(spec, "float64"))
    curvature = tf.vectorized_map(lambda theta: prior_curvature(spec, theta), theta)
    return total + tf.linalg.diag(curvature)


def _matrices_of_rows(spec: NetworkSpec, theta: Tensor, data: Data) -> Tensor:
    """Compute the likelihood part of the matrices of several networks for some rows: [C, P, P]."""
    # Keras models already vectorise the rows.
    each = tf.map_fn if isinstance(spec, KerasSpec) else tf.vectorized_map

    def information(rows: Data) -> Tensor:
        def of_network(theta: Tensor) -> Tensor:
            columns, noise = _scaled_columns(spec, theta, rows)
            return tf.matmul(columns, columns, transpose_b=True) + tf.linalg.diag(noise)

        return each(of_network, theta)

    num_networks, size = theta.shape
    zeros = tf.zeros([num_networks, size, size], tf.float64)
    return sum_over_blocks(information, zeros, data, _BLOCK_ROWS)


def gauss_newton_diagonal(spec: NetworkSpec, theta: Array, data: Data) -> Array:
    """Compute the diagonal [P] of the Gauss-Newton matrix, float64, without the matrix."""
    theta = tf.constant(theta, tf.float64)
    total = compiled_prior_curvature(spec)(theta)
    for one, rows in all_rows(spec, data):
        for index, length in blocks_of(rows):
            total = _of_blocks(_add_diagonal, one)(theta, rows, index, length, total)
    return total.numpy()


def scaled_jacobian(spec: NetworkSpec, theta: Array, data: Data) -> Array:
    """Compute Lambda^(1/2) J with one line per row and output [N * outputs, P], float64.

    Earlier rows come last. The whole matrix is useful only with fewer lines than parameters.
    """
    parts = [counted_columns(one, theta, rows) for one, rows in all_rows(spec, data)]
    return np.concatenate([columns.reshape(len(theta), -1).T for columns in chain(*parts)])


def counted_columns(spec: NetworkSpec, theta: Array, data: Data) -> Iterator[Array]:
    """Yield J^T Lambda^(1/2) [P, outputs, n] of the rows of `data` that count, NumPy, by blocks."""
    theta = tf.constant(theta, tf.float64)
    for index, length in blocks_of(data):
        columns, _ = _of_blocks(_scaled_columns, spec)(theta, data, index, length)
        counts = data.block(index, length).counts.numpy()
        yield columns.numpy().reshape(len(theta), -1, length)[:, :, counts]


def outputs_bend(spec: NetworkSpec, theta: Array, step: Array, data: Data) -> Array:
    """Compute J^T Lambda f'' [P], float64, with f'' the second derivative of the outputs along a step.

    The derivative is a central difference over a tenth of the step.

    Args:
        spec: NetworkSpec.
        theta, step: Parameters and step [P].
        data: Data.
    """
    theta, step = tf.constant(theta, tf.float64), tf.constant(step, tf.float64)
    total = tf.zeros_like(theta)
    for one, rows in all_rows(spec, data):
        for index, length in blocks_of(rows, _BLOCK_ROWS_OF_BEND):
            total = _of_blocks(_add_bend, one)(theta, rows, index, length, step, total)
    return total.numpy()


def blocks_of(data: Data, most: int = _BLOCK_ROWS) -> Iterator[tuple[Tensor, int]]:
    """Return (index, length) of the blocks that contain rows that count, with at most `most` rows each."""
    length = data.even_length(most)
    return ((tf.constant(index), length) for index in range(int(data.num_blocks(length))))


@lru_cache(maxsize=128)
def _of_blocks(function: Callable[..., Any], spec: NetworkSpec) -> Any:
    """Compile a function (spec, theta, rows, ...) into one of (theta, Data, block index, length, ...).

    Rows are cut inside the program: outside, this took a fifth of the time of a matrix.
    """

    def cut(theta: Tensor, data: Data, index: Tensor, length: int, *others: Any) -> Any:
        return function(spec, theta, data.block(index, length).cast("float64"), *others)

    return compiled(cut, jit_compile=False)


def _add_diagonal(spec: NetworkSpec, theta: Tensor, rows: Data, total: Tensor) -> Tensor:
    flat, noise = _scaled_columns(spec, theta, rows)
    return total + tf.reduce_sum(flat**2, axis=1) + noise


def _add_bend(spec: NetworkSpec, theta: Tensor, rows: Data, step: Tensor, total: Tensor) -> Tensor:
    with tf.GradientTape() as tape:
        tape.watch(theta)
        outputs = network_outputs(spec, theta[None], rows.x)[0]
    ahead = network_outputs(spec, (theta + _BEND * step)[None], rows.x)[0]
    behind = network_outputs(spec, (theta - _BEND * step)[None], rows.x)[0]
    bend = (ahead - 2.0 * outputs + behind) / _BEND**2
    weighted = _information(spec, theta, rows, outputs)[0].times(bend)
    return total + tape.gradient(outputs, theta, output_gradients=weighted)


def _scaled_columns(spec: NetworkSpec, theta: Tensor, rows: Data) -> tuple[Tensor, Tensor]:
    """Compute J^T Lambda^(1/2) [P, outputs * n] and the information in the noise scales [P]."""
    jacobian, outputs = output_jacobian(spec, theta, rows.x)
    information, noise = _information(spec, theta, rows, outputs)
    scaled = information.root_times(jacobian)
    return tf.reshape(tf.transpose(scaled, [1, 0, 2]), [theta.shape[0], -1]), noise


def _information(spec: NetworkSpec, theta: Tensor, rows: Data, outputs: Tensor) -> Fisher:
    """Compute (Lambda, information in the noise scales [P]), times the likelihood power."""
    span = spec.layout.log_noise_scale
    noise_of_rows = Noise(theta[span], rows.row_noise)
    information, noise = likelihood_information(spec.likelihood, outputs, noise_of_rows)
    counts = rows.counted(tf.ones([rows.length], outputs.dtype))
    counts = spec.likelihood_power * counts
    noise = tf.reduce_sum(noise * counts, axis=1)
    noise = tf.pad(noise, [[span.start, theta.shape[0] - span.stop]])
    return information.of_rows(counts), noise


def output_jacobian(spec: NetworkSpec, theta: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the Jacobian of the outputs in theta, and the outputs.

    It is written by hand with one back-propagation per output. A taped Jacobian of the same rows
    takes about ten times as long.

    Args:
        spec: NetworkSpec.
        theta: Parameters [P].
        x: Transformed inputs [D, n] in the dtype of theta.

    Returns:
        (Jacobian [num_outputs, P, n], outputs [num_outputs, n]).
    """
    if isinstance(spec, KerasSpec):
        return row_jacobians(lambda theta, x: network_outputs(spec, theta[None], x)[0], theta, x)
    layers, outputs = _forward(perceptron(spec, "This Jacobian"), theta, x)
    count, layout = outputs.shape[0], spec.layout
    back = tf.broadcast_to(tf.eye(count, dtype=x.dtype)[:, :, None], [count, *outputs.shape])
    columns: list[Tensor] = []
    scale_columns: list[Tensor] = []
    for (kernel_slot, bias_slot), layer in zip(reversed(layout.layers), reversed(layers)):
        received, effective_kernel, kernel_factors, bias_factor, slope = layer
        if slope is not None:
            back = back * slope
        kernel = (kernel_factors * received)[None, :, None, :] * back[:, None]
        kernel = tf.reshape(kernel, [count, -1, x.shape[-1]])
        bias = bias_factor * back
        columns = [kernel, bias, *columns]
        of_kernel = _scale_columns(spec, kernel, theta, kernel_slot)
        of_bias = _scale_columns(spec, bias, theta, bias_slot)
        scale_columns = [of_kernel, of_bias, *scale_columns]
        back = tf.matmul(effective_kernel, back)
    of_noise = tf.zeros([count, layout.num_noise, x.shape[-1]], x.dtype)
    return tf.concat([*columns, of_noise, *scale_columns], axis=1), outputs


def _scale_columns(spec: NetworkSpec, jacobian: Tensor, theta: Tensor, slot: Slot) -> Tensor:
    """Compute derivatives in the log prior scales of one kernel or bias: [num_outputs, m, n].

    Args:
        spec: NetworkSpec.
        jacobian: Derivatives in its weights [num_outputs, number of weights, n].
        theta: Parameters [P].
        slot: Slices of the weights and of the m scales in theta.
    """
    num_scales, (count, _, num_rows) = slot.scales.stop - slot.scales.start, jacobian.shape
    if not (spec.is_ntk and num_scales):
        return tf.zeros([count, num_scales, num_rows], jacobian.dtype)
    # In ntk a sampled prior scale s multiplies its weights, so d/d log s = sum of w d/dw.
    jacobian = tf.reshape(jacobian, [count, num_scales, -1, num_rows])
    return tf.einsum("kmpn,mp->kmn", jacobian, tf.reshape(theta[slot.weights], [num_scales, -1]))


def _forward(spec: ModelSpec, theta: Tensor, x: Tensor) -> tuple[list[tuple[Tensor, ...]], Tensor]:
    """Return (layers, outputs), with (input, kernel, kernel factors, bias factor, slope) of each layer.

    The kernel [I, O] is the effective one, its parameters times the factors [I or 1, 1]. The bias
    factor is [1].
    """
    layers, hidden = [], x
    for index, (layer, prior) in enumerate(zip(spec.layout.layers, spec.priors)):
        kernel, bias = (values[0] for values in layer_weights(spec, theta[None], index))
        kernel_factors, bias_factor = tf.ones([1, 1], theta.dtype), tf.ones([1], theta.dtype)
        if spec.is_ntk:
            kernel_scales, bias_scale = layer_scales(layer, prior, theta[None])
            kernel_factors = kernel_scales[0, :, None] / layer.kernel.shape[0] ** 0.5
            bias_factor = bias_scale[0]
        total = tf.matmul(kernel, hidden, transpose_a=True) + bias[:, None]
        received, slope = hidden, None
        if index < len(spec.activations):
            activation = ACTIVATIONS[spec.activations[index]]
            hidden, slope = taped(partial(activation.tensorflow, tf), total)
        layers.append((received, kernel, kernel_factors, bias_factor, slope))
    return layers, total
