"""What a kernel is given to sample."""

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.gauss_newton import gauss_newton_matrices
from tfbnn.engine.density.rungs import likelihood_weights
from tfbnn.engine.density.value_and_gradient import compiled_value_and_gradient


class Target:
    """The log density as a function of preconditioned coordinates z [C, P] -> [C].

    A kernel that needs to know more than this function asks for it here.
    """

    def __init__(self, potential, data, linear_map, reference, temperatures):
        """
        Args:
            potential: Density.
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
        value_and_gradient = self._potential.value_and_gradient
        if tf.executing_eagerly():
            # Where kernels are started: the function that looks for starts and step sizes is at hand,
            # and operation by operation a gradient takes a tenth of a second.
            value_and_gradient = compiled_value_and_gradient(self._potential)

        @tf.custom_gradient
        def log_prob(z):
            # No tape need look inside: it would have the compiled function differentiated, for a second.
            theta = self._linear_map.forward(tf.stop_gradient(z))
            value, by_theta = value_and_gradient(theta, self._data, weights)
            gradient = self._linear_map.pull_back(by_theta)
            value = tf.cast(value - self._reference, z.dtype)

            def pull_back(upstream, variables=()):
                # A log density of one's own may hold variables, which are constants here.
                by_z = upstream[:, None] * gradient
                return (by_z, [None] * len(variables)) if variables else by_z

            return value, pull_back

        return log_prob(z)

    def log_prob(self, z):
        """The log density [C] without its gradient, which costs several times as much."""
        weights = likelihood_weights(self._temperatures, z.shape[0])
        value = self._potential.log_prob(self._linear_map.forward(z), self._data, weights)
        return tf.cast(value - self._reference, z.dtype)

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
        weights = likelihood_weights(self._temperatures, z.shape[0])
        return self._potential.hessian(*self._in_float64(z), weights)

    def gauss_newton(self, z):
        """Gauss-Newton matrices, float64 [C, P, P]; needs coordinates as they are."""
        weights = likelihood_weights(self._temperatures, z.shape[0])
        weights = tf.broadcast_to(tf.cast(weights, tf.float64), z.shape[:1])
        return gauss_newton_matrices(self._potential.spec, *self._in_float64(z), weights)

    def box(self):
        """Lower and upper limits of z, float64 [C, P] each; needs coordinates that are scaled only."""
        scale = tf.cast(self._linear_map.scale, tf.float64)
        low, high = self._potential.limits
        return low / scale, high / scale

    def _in_float64(self, z):
        theta = self._linear_map.forward(z)
        return tf.cast(theta, tf.float64), self._data.cast("float64")
