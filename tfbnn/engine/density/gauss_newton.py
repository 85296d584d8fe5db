"""The Gauss-Newton matrix of the potential: J^T Lambda J + prior curvature, in blocks of rows.

J is the Jacobian of the network outputs and Lambda the Fisher information of the likelihood in
them, times the power to which the density has it; noise scales and prior scales add their Fisher
information on the diagonal. The matrix is
positive semi-definite by construction, and positive definite where every prior has curvature.
Everything is float64, because the eigenvalues on nearly noise-free data run from 1 to more than
1e9. The products stay with BLAS, which uses their symmetry: half the time of TensorFlow's at P = 562
and P = 1172, and XLA has no fast product of large float64 matrices on a CPU.

References:
    Schraudolph 2002, Neural Computation 14, 1723. Martens 2020, arXiv:1412.1193.
"""

from functools import lru_cache

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.earlier import likeliest_component
from tfbnn.engine.density.fisher import likelihood_information, prior_curvature
from tfbnn.engine.density.keras_network import keras_jacobian
from tfbnn.engine.density.network import network_outputs
from tfbnn.engine.density.prior_scales import layer_scales
from tfbnn.engine.density.row_blocks import sum_over_blocks
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.system.threads import on_all_cores, single_threaded_blas

_BLOCK_ROWS = 1024
# Shares of the blocks that are summed side by side, each into a matrix of its own. As many whatever
# the number of cores, so that the order of the sum is one.
_NUM_SHARES = 4


def gauss_newton_matrix(spec, theta, data):
    """Curvature of minus the log density at one network.

    Args:
        spec: NetworkSpec.
        theta: Parameters [P].
        data: Data.

    Returns:
        Symmetric matrix [P, P], float64.
    """
    theta = tf.constant(theta, tf.float64)
    scaled_columns = _block_functions(spec).scaled_columns

    def sum_of(share):
        total = np.zeros([spec.layout.num_parameters] * 2)
        for index in range(share, num_blocks, _NUM_SHARES):
            rows = data.block(tf.constant(index), length).cast("float64")
            columns, noise = (array.numpy() for array in scaled_columns(theta, rows))
            total += columns @ columns.T
            total[np.diag_indices_from(total)] += noise
        return total

    length = data.even_length(_BLOCK_ROWS)
    num_blocks = int(data.num_blocks(length))
    with single_threaded_blas():
        total = sum(on_all_cores(sum_of, range(min(num_blocks, _NUM_SHARES))))
    return total + prior_matrix(spec, theta).numpy()


def gauss_newton_matrices(spec, theta, data, likelihood_weights):
    """The same matrices at several networks, inside compiled programs.

    Args:
        spec: NetworkSpec.
        theta: Parameters [C, P], a float64 tensor.
        data: Data in float64.
        likelihood_weights: Powers of the likelihood, besides that of the spec, float64 [C].

    Returns:
        Symmetric matrices [C, P, P], a float64 tensor.
    """
    functions = _block_functions(spec)

    def information(rows):
        def of_network(theta):
            columns, noise = functions._scaled_columns(theta, rows)
            return tf.matmul(columns, columns, transpose_b=True) + tf.linalg.diag(noise)

        if isinstance(spec, KerasSpec):  # whose rows are vectorised already
            return tf.map_fn(of_network, theta)
        return tf.vectorized_map(of_network, theta)

    num_networks, size = theta.shape
    zeros = tf.zeros([num_networks, size, size], tf.float64)
    total = sum_over_blocks(information, zeros, data, _BLOCK_ROWS)
    prior = tf.vectorized_map(lambda theta: prior_matrix(spec, theta), theta)
    return likelihood_weights[:, None, None] * total + prior


def prior_matrix(spec, theta):
    """Curvature [P, P] of the prior at one theta [P], float64, with that of earlier rows."""
    diagonal = tf.linalg.diag(prior_curvature(spec, theta))
    return diagonal if spec.earlier is None else diagonal + earlier_matrix(spec, theta)


def earlier_matrix(spec, theta):
    """Gauss-Newton matrix [P, P] of the spec's `FunctionPrior` at one theta [P], float64."""
    prior, theta = spec.earlier, tf.cast(theta, tf.float64)
    index = likeliest_component(spec, theta)
    x = tf.constant(prior.inputs.values.T)
    jacobian, _ = output_jacobian(spec, theta, x)  # [K, P, M]
    jacobian = tf.reshape(tf.transpose(jacobian, [2, 0, 1]), [-1, theta.shape[0]])
    lines = tf.matmul(tf.constant(prior.lines.values)[index], jacobian)
    place = spec.layout.log_noise_scale
    of_noise = tf.constant(prior.log_noise_scale.values)[index] ** -2.0
    of_noise = tf.pad(of_noise, [[place.start, theta.shape[0] - place.stop]])
    return tf.matmul(lines, lines, transpose_a=True) + tf.linalg.diag(of_noise)


def gauss_newton_product(spec, theta, data, vector):
    """The Gauss-Newton matrix times a vector [P], float64, without the matrix.

    One forward-mode and one reverse-mode derivative, about three times the work of a gradient.
    """
    theta, vector = tf.constant(theta, tf.float64), tf.constant(vector, tf.float64)
    total = _sum_of_blocks(_block_functions(spec).add_product, theta, data, vector)
    total += prior_curvature(spec, theta) * vector
    if spec.earlier is not None:
        total += tf.linalg.matvec(earlier_matrix(spec, theta), vector)
    return total.numpy()


def gauss_newton_diagonal(spec, theta, data):
    """The diagonal [P] of the Gauss-Newton matrix, float64, without the matrix."""
    theta = tf.constant(theta, tf.float64)
    total = _sum_of_blocks(_block_functions(spec).add_diagonal, theta, data)
    total += prior_curvature(spec, theta)
    if spec.earlier is not None:
        total += tf.linalg.diag_part(earlier_matrix(spec, theta))
    return total.numpy()


def _sum_of_blocks(add_block, theta, data, *vector):
    total = tf.zeros_like(theta)
    for rows in _float64_blocks(data):
        total = add_block(theta, rows, *vector, total)
    return total


def scaled_jacobian(spec, theta, data):
    """Lambda^(1/2) J with one line per row and output [N * outputs, P], float64.

    Worth having whole only for fewer lines than parameters.
    """
    blocks = _counted_columns(spec, theta, data)
    return np.concatenate([columns.reshape(len(theta), -1).T for columns in blocks])


def row_leverages(spec, theta, data, factor):
    """How many parameters each row determines, the trace of Lambda J H^-1 J^T of it: [N], float64.

    Args:
        spec: NetworkSpec.
        theta: Parameters [P].
        data: Data.
        factor: Lower Cholesky factor of H [P, P].
    """
    found = []
    for columns in _counted_columns(spec, theta, data):
        lines = tf.linalg.triangular_solve(factor, columns.reshape(len(theta), -1)).numpy()
        found.append(np.square(lines).reshape(columns.shape).sum(axis=(0, 1)))
    return np.concatenate(found)


def _counted_columns(spec, theta, data):
    """J^T Lambda^(1/2) [P, outputs, n] of the rows that count, block by block."""
    theta = tf.constant(theta, tf.float64)
    for rows in _float64_blocks(data):
        columns = _block_functions(spec).scaled_columns(theta, rows)[0].numpy()
        yield columns.reshape(len(theta), -1, rows.length)[:, :, rows.counts.numpy()]


def _float64_blocks(data):
    """The rows that count in blocks of one length."""
    return (rows.cast("float64") for rows in data.blocks(_BLOCK_ROWS))


class _BlockFunctions:
    """The compiled sums over the rows of one block, for one model."""

    def __init__(self, spec):
        self.spec = spec
        self.add_product = compiled(self._add_product, jit_compile=False)
        self.add_diagonal = compiled(self._add_diagonal, jit_compile=False)
        self.scaled_columns = compiled(self._scaled_columns, jit_compile=False)

    def _add_diagonal(self, theta, rows, total):
        flat, noise = self._scaled_columns(theta, rows)
        return total + tf.reduce_sum(flat**2, axis=1) + noise

    def _add_product(self, theta, rows, vector, total):
        with tf.GradientTape() as tape, tf.autodiff.ForwardAccumulator(theta, vector) as forward:
            tape.watch(theta)
            outputs = network_outputs(self.spec, theta[None], rows.x)[0]
        information, noise = self._information(theta, rows, outputs)
        weighted = self.spec.likelihood_power * information.times(forward.jvp(outputs))
        return total + tape.gradient(outputs, theta, output_gradients=weighted) + noise * vector

    def _scaled_columns(self, theta, rows):
        """J^T Lambda^(1/2) [P, outputs * n], and the information in the noise scales, [P]."""
        jacobian, outputs = output_jacobian(self.spec, theta, rows.x)
        information, noise = self._information(theta, rows, outputs)
        scaled = self.spec.likelihood_power**0.5 * information.root_times(jacobian)
        return tf.reshape(tf.transpose(scaled, [1, 0, 2]), [theta.shape[0], -1]), noise

    def _information(self, theta, rows, outputs):
        """(Lambda to the power of one, the information in the noise scales with that of the spec)."""
        place = self.spec.layout.log_noise_scale
        information, noise = likelihood_information(
            self.spec.likelihood, outputs, theta[place], rows.row_noise
        )
        counts = tf.cast(rows.counts, outputs.dtype)
        noise = self.spec.likelihood_power * tf.reduce_sum(noise * counts, axis=1)
        noise = tf.pad(noise, [[place.start, theta.shape[0] - place.stop]])
        return information.of_rows(counts), noise


_block_functions = lru_cache(maxsize=32)(_BlockFunctions)


def output_jacobian(spec, theta, x):
    """Derivatives of the outputs in theta, and the outputs.

    By hand, one back-propagation per output: a taped Jacobian of the same rows takes about ten times
    as long.

    Args:
        spec: NetworkSpec.
        theta: Parameters [P].
        x: Transformed inputs [D, n] in the dtype of theta.

    Returns:
        (Jacobian [num_outputs, P, n], outputs [num_outputs, n]).
    """
    if isinstance(spec, KerasSpec):
        return keras_jacobian(spec, theta, x)
    layers, outputs = _forward(spec, theta, x)
    count, layout = outputs.shape[0], spec.layout
    back = tf.broadcast_to(tf.eye(count, dtype=x.dtype)[:, :, None], [count, *outputs.shape])
    columns, scale_columns = [], []
    for slot, layer in zip(reversed(layout.layers), reversed(layers)):
        received, effective_kernel, kernel_factors, bias_factor, slope = layer
        if slope is not None:
            back = back * slope
        kernel = (kernel_factors * received)[None, :, None, :] * back[:, None]
        kernel = tf.reshape(kernel, [count, -1, x.shape[-1]])
        bias = bias_factor * back
        columns = [kernel, bias, *columns]
        of_kernel = _scale_columns(spec, kernel, theta[slot.kernel], slot.kernel_scales)
        of_bias = _scale_columns(spec, bias, theta[slot.bias], slot.bias_scales)
        scale_columns = [of_kernel, of_bias, *scale_columns]
        back = tf.matmul(effective_kernel, back)
    of_noise = tf.zeros([count, layout.num_noise, x.shape[-1]], x.dtype)
    return tf.concat([*columns, of_noise, *scale_columns], axis=1), outputs


def _scale_columns(spec, jacobian, weights, place):
    """Derivatives in the log prior scales of one kernel or bias: [num_outputs, m, n].

    Args:
        spec: NetworkSpec.
        jacobian: Derivatives in its weights [num_outputs, number of them, n].
        weights: [number of them].
        place: Of the m scales in theta.
    """
    num_scales, (count, _, num_rows) = place.stop - place.start, jacobian.shape
    if not (spec.is_ntk and num_scales):
        return tf.zeros([count, num_scales, num_rows], jacobian.dtype)
    # In ntk a sampled prior scale s multiplies its weights: d/d log s = sum of w d/dw.
    jacobian = tf.reshape(jacobian, [count, num_scales, -1, num_rows])
    return tf.einsum("kmpn,mp->kmn", jacobian, tf.reshape(weights, [num_scales, -1]))


def _forward(spec, theta, x):
    """Layers as (input, effective kernel, factors [inputs or 1, 1] and [1], slope), the last sum."""
    layers, hidden = [], x
    for index, slot in enumerate(spec.layout.layers):
        kernel_factors, bias_factor = tf.ones([1, 1], x.dtype), tf.ones([1], x.dtype)
        if spec.is_ntk:
            kernel_scales, bias_scale = layer_scales(slot, spec.priors[index], theta[None])
            kernel_factors = kernel_scales[0, :, None] / slot.num_inputs**0.5
            bias_factor = bias_scale[0]
        kernel = kernel_factors * tf.reshape(theta[slot.kernel], slot.shape)
        bias = bias_factor * theta[slot.bias]
        total = tf.matmul(kernel, hidden, transpose_a=True) + bias[:, None]
        received, slope = hidden, None
        if index < len(spec.activations):
            with tf.GradientTape() as tape:
                tape.watch(total)
                hidden = ACTIVATIONS[spec.activations[index]].tensorflow(tf, total)
            slope = tape.gradient(hidden, total)
        layers.append((received, kernel, kernel_factors, bias_factor, slope))
    return layers, total
