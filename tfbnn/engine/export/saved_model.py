"""Writes the mean and spread of all networks as a TensorFlow SavedModel."""

from functools import partial
from typing import Any

from tfbnn.engine.basis.libraries import tf
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.likelihoods.links import LINKS

# Draws x units x rows computed at once, a bound on memory.
_MOST_VALUES = 4_000_000


def write_saved_model(ensemble: Any, path: str) -> None:
    """Writes an ensemble to the folder `path`; what it holds is said in `to_savedmodel`."""
    module = _Moments(ensemble.weighted.mirrored)
    tf.saved_model.save(module, path, signatures=module.__call__)


class _Moments(tf.Module):
    """Mean and spread over draws; the weights are variables, as a graph must not exceed 2 GiB."""

    def __init__(self, ensemble):
        super().__init__()
        self._spec = ensemble.spec
        self._pipelines = ensemble.x_pipeline, ensemble.y_pipeline
        variable = partial(tf.Variable, trainable=False)
        self._kernels = [variable(w[..., :-1]) for w in ensemble.effective_weights]
        self._biases = [variable(w[..., -1:]) for w in ensemble.effective_weights]
        self._draw_weights = variable(ensemble.draw_weights[:, None, None])
        values_per_row = ensemble.num_draws * max(ensemble.spec.layer_sizes[1:])
        self._rows_at_once = max(1, _MOST_VALUES // values_per_row)
        signature = tf.TensorSpec([None, ensemble.spec.num_inputs], tf.float64, name="x")
        self.__call__ = tf.function(self._moments, input_signature=[signature])

    def _moments(self, x):
        """Inputs [N, D] -> {"mean": [N, K], "stddev": [N, K]}, tile by tile."""
        step = self._rows_at_once
        # One tile at least, or there would be nothing to concatenate for no rows.
        count = tf.maximum(1, -(-tf.shape(x)[0] // step))
        tiles = [tf.TensorArray(tf.float64, count, infer_shape=False) for _ in range(2)]

        def one_tile(index, mean, stddev):
            values = self._moments_of_tile(x[index * step : (index + 1) * step])
            return index + 1, mean.write(index, values[0]), stddev.write(index, values[1])

        _, mean, stddev = tf.while_loop(
            lambda index, *_: index < count, one_tile, [0, *tiles], parallel_iterations=1
        )
        shape = [None, self._spec.num_predicted]
        return {
            "mean": tf.ensure_shape(mean.concat(), shape),
            "stddev": tf.ensure_shape(stddev.concat(), shape),
        }

    def _moments_of_tile(self, x):
        x_pipeline, y_pipeline = self._pipelines
        for step in x_pipeline.steps:
            x = step.forward_tensorflow(tf, x)
        x = tf.transpose(x)
        outputs = tf.cast(self._network_outputs(tf.cast(x, self._spec.dtype)), tf.float64)
        location = outputs[:, : self._spec.num_predicted]
        values = LINKS[self._spec.likelihood.link].tensorflow(tf, location)
        for step in reversed(y_pipeline.steps):
            values = step.inverse_tensorflow(tf, values)
        mean = tf.reduce_sum(self._draw_weights * values, axis=0)
        variance = tf.reduce_sum(self._draw_weights * tf.square(values - mean), axis=0)
        return tf.transpose(mean), tf.transpose(tf.sqrt(variance))

    def _network_outputs(self, x):
        """Outputs of all networks [S, num_outputs, n] at transformed inputs [D, n]."""
        hidden = x
        for index, (kernel, bias) in enumerate(zip(self._kernels, self._biases)):
            hidden = tf.matmul(kernel, hidden) + bias
            if index < len(self._spec.activations):
                hidden = ACTIVATIONS[self._spec.activations[index]].tensorflow(tf, hidden)
        return hidden
