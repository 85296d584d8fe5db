"""ADAM as the program of the thesis has it (timing_nuts.py of github.com/reneaas/BNN-Estimation-of-NLO-Cross-Sections).

Networks start from N(0, 1). The loss of a batch of 32 rows, in the order of the file, is the potential of that batch: half
the sum of squares, and the prior in full. The learning rate is .001, the other constants are those of Kingma and Ba
2015 (arXiv:1412.6980).
"""

import numpy as np

from tfbnn.engine.basis.libraries import tf
from tfbnn.engine.density.network import network_outputs

__all__ = ["adam_of_author"]

BATCH_SIZE, RATE, DECAYS, SMALLEST = 32, 1e-3, (0.9, 0.999), 1e-7
PRIOR_PRECISION = 1e-3


def adam_of_author(spec, x, y, epochs, seed):
    """The weights that ADAM ends at [P].

    Args:
        spec: ModelSpec of the network.
        x, y: Rows [N, D] and their targets [N], as the network sees them.
        epochs: Passes over all rows.
        seed: Of the start.
    """
    count = -(-len(x) // BATCH_SIZE)
    missing = count * BATCH_SIZE - len(x)
    batches = [
        tf.constant(np.pad(values, [(0, missing)] + [(0, 0)] * (values.ndim - 1)), tf.float32)
        for values in (x, y, np.ones(len(x)))  # rows that fill the last batch count nothing
    ]
    x, y, counted = (tf.reshape(one, [count, BATCH_SIZE, *one.shape[1:]]) for one in batches)

    @tf.function(jit_compile=True, autograph=False)
    def descend(theta):
        def step(number, theta, mean, square):
            batch = number % count
            with tf.GradientTape() as tape:
                tape.watch(theta)
                outputs = network_outputs(spec, theta[None], tf.transpose(x[batch]))[0, 0]
                misses = counted[batch] * (y[batch] - outputs)
                loss = 0.5 * tf.reduce_sum(misses**2)
                loss += 0.5 * PRIOR_PRECISION * tf.reduce_sum(theta**2)
            gradient = tape.gradient(loss, theta)
            first, second = DECAYS
            mean = first * mean + (1.0 - first) * gradient
            square = second * square + (1.0 - second) * gradient**2
            power = tf.cast(number + 1, tf.float32)
            rate = RATE * tf.sqrt(1.0 - second**power) / (1.0 - first**power)
            return number + 1, theta - rate * mean / (tf.sqrt(square) + SMALLEST), mean, square

        nothing = tf.zeros_like(theta)
        state = tf.constant(0), theta, nothing, nothing
        return tf.while_loop(lambda number, *_: number < count * epochs, step, state)[1]

    start = np.random.default_rng(seed).standard_normal(spec.layout.num_weights)
    return descend(tf.constant(start, tf.float32)).numpy()
