"""What a kernel is given to sample."""

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.gauss_newton import gauss_newton_matrices
from tfbnn.engine.density.potential import support
from tfbnn.engine.density.row_blocks import rows_per_block, sum_over_blocks
from tfbnn.engine.density.rungs import likelihood_weights


class Target:
    """The log density as a function of preconditioned coordinates z [C, P] -> [C].

    A kernel that needs to know more than this function asks for it here.
    """

    def __init__(self, potential, data, linear_map, reference, temperatures):
        """
        Args:
            potential: The model's Potential.
            data: Data.
            linear_map: theta = linear_map.forward(z).
            reference: Log density [C], float64, subtracted before the rounding to the dtype of z.
            temperatures: Powers of the likelihood of a chain's rungs; see `tfbnn.engine.density.rungs`.
        """
        self._potential, self._data = potential, data
        self._linear_map, self._reference = linear_map, reference
        self._temperatures = temperatures

    def __call__(self, z):
        weights = likelihood_weights(self._temperatures, z.shape[0])

        @tf.custom_gradient
        def log_prob(z):
            theta = self._linear_map.forward(z)
            value, by_theta = self._potential.value_and_gradient(theta, self._data, weights)
            gradient = self._linear_map.pull_back(by_theta)
            value = tf.cast(value - self._reference, z.dtype)
            return value, lambda upstream: upstream[:, None] * gradient

        return log_prob(z)

    def log_likelihood(self, z):
        """Log likelihood [C], float64, to the power of the spec, whatever the rung."""
        theta = self._linear_map.forward(z)
        return self._potential.powered_log_likelihood(theta, self._data, 1.0)

    def gather(self, z, rows):
        """The states of other rows [C], each in the coordinates of the row that takes it: [C, P].

        Needs coordinates that are scaled only.
        """
        theta = tf.gather(self._linear_map.forward(z), rows)
        # Rows that keep their state keep its bits.
        keeps = rows == tf.range(z.shape[0])
        return tf.where(keeps[:, None], z, self._linear_map.inverse(theta))

    def hessian(self, z):
        """Second derivatives of the log density, float64 [C, P, P]; needs coordinates as they are."""
        theta, data = self._in_float64(z)
        potential, (num_networks, size) = self._potential, theta.shape
        weights = likelihood_weights(self._temperatures, num_networks)

        def of_likelihood(rows):
            return hessian(
                lambda point: potential.powered_log_likelihood(point, rows, weights), theta
            )

        length = rows_per_block(potential.spec, num_networks * size)
        zeros = tf.zeros([num_networks, size, size], tf.float64)
        likelihood = sum_over_blocks(of_likelihood, zeros, data, length)
        return hessian(potential.log_prior, theta) + likelihood

    def gauss_newton(self, z):
        """Gauss-Newton matrices, float64 [C, P, P]; needs coordinates as they are."""
        weights = likelihood_weights(self._temperatures, z.shape[0])
        weights = tf.broadcast_to(tf.cast(weights, tf.float64), z.shape[:1])
        return gauss_newton_matrices(self._potential.spec, *self._in_float64(z), weights)

    def box(self):
        """Lower and upper limits of z, float64 [C, P] each; needs coordinates that are scaled only."""
        scale = tf.cast(self._linear_map.scale, tf.float64)
        low, high = support(self._potential.spec)
        return low / scale, high / scale

    def _in_float64(self, z):
        theta = self._linear_map.forward(z)
        return tf.cast(theta, tf.float64), self._data.cast("float64")


def hessian(function, theta):
    """Second derivatives of a function at each of several points.

    The backward passes of the P components of the gradient are made as one batch, with the values of
    the forward pass in common: measured on 150 rows and P = 27, 85 us under XLA, against 180 us with
    P copies of the network. Always float64: TensorFlow 2.21 on oneDNN corrupts memory in the batched
    products of float32 matrices that arise here (tensorflow issue 117700).

    Args:
        function: theta [C, P] -> [C], each value of its own row only.
        theta: Points [C, P], float64.

    Returns:
        Symmetric matrices [C, P, P], float64.
    """
    with tf.GradientTape() as outer:
        outer.watch(theta)
        with tf.GradientTape() as inner:
            inner.watch(theta)
            value = function(theta)
        gradient = inner.gradient(value, theta, unconnected_gradients="zero")
    matrix = outer.batch_jacobian(gradient, theta, unconnected_gradients="zero")
    return 0.5 * (matrix + tf.linalg.matrix_transpose(matrix))
