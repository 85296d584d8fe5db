"""Products with the Gauss-Newton matrix of `gauss_newton`, without the matrix: many at one network.

Of a perceptron what layers receive, h, and the slopes of hidden units, s, are computed once. A product
is then linear algebra alone: tangents go forward, z' = K^T h' + dK^T h + db, h' = s z' for the next
layer, and the information times those of the outputs goes back; about 10 N P operations by BLAS.
Automatic differentiation, by which products of Keras models are computed, has 12 and the activation
functions, again in each: one forward-mode and one reverse-mode derivative.
"""

from functools import lru_cache

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.fisher import compiled_prior_curvature
from tfbnn.engine.density.gauss_newton import (
    NUM_SHARES,
    all_rows,
    block_functions,
    blocks_of,
    effective_layers,
)
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.system.threads import on_all_cores, single_threaded_blas

# Numbers of all blocks that are kept from product to product, 134 MB; of more they are computed again in
# each.
_MOST_KEPT = 2**24


class GaussNewtonProduct:
    """The matrix at one network, as a function of vectors [P], float64.

    Args:
        spec: NetworkSpec.
        theta: Parameters [P].
        data: Data.
    """

    def __init__(self, spec, theta, data):
        theta = tf.constant(theta, tf.float64)
        self._prior = compiled_prior_curvature(spec)(theta).numpy()
        self._parts = [_of_rows(one, theta, rows) for one, rows in all_rows(spec, data)]

    def __call__(self, vector):
        return self._prior * vector + sum(part(vector) for part in self._parts)


def _of_rows(spec, theta, data):
    kind = _RowsOfKeras if isinstance(spec, KerasSpec) else _RowsOfPerceptron
    return kind(spec, theta, data)


class _RowsOfKeras:
    """What the likelihood of rows adds to a product, by automatic differentiation."""

    def __init__(self, spec, theta, data):
        self._add_product = block_functions(spec).add_product
        self._theta, self._data = theta, data

    def __call__(self, vector):
        vector = tf.constant(vector, tf.float64)
        total = tf.zeros_like(vector)
        for index, length in blocks_of(self._data):
            total = self._add_product(self._theta, self._data, index, length, vector, total)
        return total.numpy()


class _RowsOfPerceptron:
    """The same of a network that is linearised once."""

    def __init__(self, spec, theta, data):
        self._theta, self._data = theta, data
        self._linearised = block_functions(spec).linearised
        self._weights = _effective_weights(spec)
        self._kernels = [kernel.numpy() for kernel, *_ in effective_layers(spec, theta)]
        self._places = list(blocks_of(data))
        per_row = spec.num_inputs + 2 * sum(spec.layer_sizes[1:-1])
        rows = sum(int(length) for _, length in self._places)
        blocks, self._kept = map(self._block, self._places), None
        if rows * per_row <= _MOST_KEPT:
            blocks = self._kept = list(blocks)
        self._noise = sum(noise for *_, noise in blocks)

    def __call__(self, vector):
        tangents = [array.numpy() for array in self._weights.push(self._theta, tf.constant(vector))]
        shares = range(min(len(self._places), NUM_SHARES))
        with single_threaded_blas():
            found = on_all_cores(lambda share: self._of_share(share, tangents), shares)
        back = [tf.constant(sum(of_shares)) for of_shares in zip(*found)]
        return self._weights.pull(self._theta, back).numpy() + self._noise * vector

    def _block(self, place):
        """What layers receive and slopes, as NumPy arrays, information, and that in noise scales."""
        received, slopes, information, noise = self._linearised(self._theta, self._data, *place)
        received, slopes = ([array.numpy() for array in arrays] for arrays in (received, slopes))
        return received, slopes, information, noise.numpy()

    def _of_share(self, share, tangents):
        """Sums of `_of_block` over every NUM_SHARES-th block."""
        blocks = range(len(self._places))[share::NUM_SHARES]
        found = [self._of_block(self._known(number), tangents) for number in blocks]
        return [sum(of_blocks) for of_blocks in zip(*found)]

    def _known(self, number):
        return self._block(self._places[number]) if self._kept is None else self._kept[number]

    def _of_block(self, block, tangents):
        """What rows send back to kernels and biases of all layers, in the order of `tangents`."""
        received, slopes, information, _ = block
        tangent = np.zeros_like(received[0])
        for layer, (inputs, kernel) in enumerate(zip(received, self._kernels)):
            of_kernel, of_bias = tangents[2 * layer : 2 * layer + 2]
            tangent = of_kernel.T @ inputs + kernel.T @ tangent + of_bias[:, None]
            if layer < len(slopes):
                tangent *= slopes[layer]
        back, found = information.times(tangent).numpy(), []
        for layer in reversed(range(len(received))):
            if layer < len(slopes):
                back = back * slopes[layer]
            found = [received[layer] @ back.T, back.sum(axis=1), *found]
            back = self._kernels[layer] @ back
        return found


class _EffectiveWeights:
    """Derivatives of kernels and biases, as layers multiply by them, in the parameters of one model."""

    def __init__(self, spec):
        self._spec = spec
        self.push = compiled(self._push, jit_compile=False)
        self.pull = compiled(self._pull, jit_compile=False)

    def _all(self, theta):
        return [
            array
            for kernel, bias, *_ in effective_layers(self._spec, theta)
            for array in (kernel, bias)
        ]

    def _push(self, theta, vector):
        with tf.autodiff.ForwardAccumulator(theta, vector) as forward:
            weights = self._all(theta)
        return [forward.jvp(array) for array in weights]

    def _pull(self, theta, back):
        with tf.GradientTape() as tape:
            tape.watch(theta)
            weights = self._all(theta)
        return tape.gradient(weights, theta, output_gradients=back)


_effective_weights = lru_cache(maxsize=32)(_EffectiveWeights)
