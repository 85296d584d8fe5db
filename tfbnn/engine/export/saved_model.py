"""Writes mean and spread of all networks, and calibrated bars, as a TensorFlow SavedModel."""

from functools import partial
from typing import Any

import numpy as np

from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.basis.libraries import Tensor, tf
from tfbnn.spec.activations import ACTIVATIONS
from tfbnn.spec.likelihoods import LINKS
from tfbnn.spec.model_spec import perceptron

# Draws x units x rows computed at once, a bound on memory.
_MOST_VALUES = 4_000_000


def write_saved_model(networks: Any, constants: Any, path: str) -> None:
    """Writes `MomentNetworks` to the folder `path`; what it holds is said in `to_savedmodel`.

    Args:
        networks: MomentNetworks.
        constants: BarConstants of calibrated bars, or None.
        path: Folder.
    """
    module = _Moments(networks, constants)
    tf.saved_model.save(module, path, signatures=module.__call__)


class _Moments(tf.Module):  # type: ignore[misc, name-defined]  # TensorFlow has no types
    """Mean and spread over draws; the weights are variables, as a graph must not exceed 2 GiB."""

    def __init__(self, networks: Any, constants: Any) -> None:
        super().__init__()
        self._constants = constants
        self._names = ("mean", "stddev", *(() if constants is None else constants.names))
        ensemble = networks.ensemble
        self._spec = perceptron(ensemble.spec, "to_savedmodel")
        self._pipelines = ensemble.x_pipeline, ensemble.y_pipeline
        variable = partial(tf.Variable, trainable=False)
        self._kernels = [variable(w[..., :-1]) for w in networks.weights]
        self._biases = [variable(w[..., -1:]) for w in networks.weights]
        self._draw_weights = variable(ensemble.draw_weights[:, None, None, None])
        self._in_closed_form, self._roots_shape = networks.in_closed_form, networks.roots_shape
        self._unit = networks.ensemble.target_unit[:, None] if networks.in_closed_form else None
        values_per_row = ensemble.num_draws * max(w.shape[1] for w in networks.weights)
        self._rows_at_once = max(1, _MOST_VALUES // values_per_row)
        signature = tf.TensorSpec([None, ensemble.spec.num_inputs], tf.float64, name="x")
        self.__call__ = compiled(self._moments, jit_compile=False, signature=[signature])

    def _moments(self, x: Tensor) -> dict[str, Tensor]:
        """Inputs [N, D] -> dict name -> [N, K], tile by tile."""
        step = self._rows_at_once
        # One tile at least, or there would be nothing to concatenate for no rows.
        count = tf.maximum(1, -(-tf.shape(x)[0] // step))
        tiles = [tf.TensorArray(tf.float64, count, infer_shape=False) for _ in self._names]

        def one_tile(index: Tensor, *found: Any) -> tuple[Any, ...]:
            values = self._outputs_of_tile(x[index * step : (index + 1) * step])
            return index + 1, *(tile.write(index, value) for tile, value in zip(found, values))

        _, *found = tf.while_loop(
            lambda index, *_: index < count, one_tile, [0, *tiles], parallel_iterations=1
        )
        shape = [None, self._spec.num_predicted]
        return {
            name: tf.ensure_shape(tile.concat(), shape) for name, tile in zip(self._names, found)
        }

    def _outputs_of_tile(self, x: Tensor) -> list[Tensor]:
        x_pipeline, y_pipeline = self._pipelines
        for step in x_pipeline.steps:
            x = step.forward_tensorflow(tf, x)
        x = tf.transpose(x)
        outputs = tf.cast(self._network_outputs(tf.cast(x, self._spec.dtype)), tf.float64)

        def inverse(values: Tensor) -> Tensor:
            for step in reversed(y_pipeline.steps):
                values = step.inverse_tensorflow(tf, values)
            return values

        location = outputs[:, : self._spec.num_predicted]
        roots = self._roots(outputs) if self._in_closed_form else None
        ends = []
        if self._constants is not None or roots is not None:
            mean, stddev = self._moments_of(location, roots)
        if self._constants is not None:
            ends = tf.unstack(inverse(bars(self._constants, x, mean, stddev)))
        if roots is not None:
            mean, stddev = inverse(mean), stddev * self._unit
        else:
            location = inverse(LINKS[self._spec.likelihood.link].tensorflow(tf, location))
            mean, stddev = self._moments_of(location, None)
        return [tf.transpose(values) for values in (mean, stddev, *ends)]

    def _moments_of(self, location: Tensor, roots: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation [K, n] of [S, K, n], with roots of a variance or none."""
        location = location[:, :, None]
        mean = self._average(location)
        deviations = location - mean
        if roots is not None:
            deviations = tf.concat([deviations, roots], axis=2)
        return mean[0, :, 0], self._root_mean_square(deviations)[0, :, 0]

    def _average(self, values: Tensor) -> Tensor:
        """Weighted sum over draws and sum over lines: [S, K, L, n] -> [1, K, 1, n]."""
        return tf.reduce_sum(self._draw_weights * values, axis=[0, 2], keepdims=True)

    def _root_mean_square(self, values: Tensor) -> Tensor:
        """Return the root mean square as `tfbnn.posterior.averages` does, in units of the largest: [1, K, 1, n]."""
        largest = tf.reduce_max(tf.abs(values), axis=[0, 2], keepdims=True)
        unit = tf.where(largest == 0.0, tf.ones_like(largest), largest)
        return unit * tf.sqrt(self._average(tf.square(values / unit)))

    def _roots(self, outputs: Tensor) -> Tensor:
        """The lines behind the outputs, for every target: [S, K + G p, n] -> [S, K, p, n]."""
        num_outputs, num_rows = self._spec.num_outputs, tf.shape(outputs)[2]
        num_groups, num_features = self._roots_shape
        roots = tf.reshape(outputs[:, num_outputs:], [-1, num_groups, num_features, num_rows])
        return tf.broadcast_to(
            roots, [self._draw_weights.shape[0], num_outputs, num_features, num_rows]
        )

    def _network_outputs(self, x: Tensor) -> Tensor:
        """Outputs of all networks [S, their lines, n] at transformed inputs [D, n]."""
        hidden = x
        for index, (kernel, bias) in enumerate(zip(self._kernels, self._biases)):
            hidden = tf.matmul(kernel, hidden) + bias
            if index < len(self._spec.activations):
                hidden = ACTIVATIONS[self._spec.activations[index]].tensorflow(tf, hidden)
        return hidden


def bars(constants: Any, x: Tensor, centre: Tensor, spread: Tensor) -> Tensor:
    """Lower end, median and upper end [3, K, n], transformed.

    Args:
        constants: `tfbnn.posterior.calibration.exported.BarConstants`.
        x: Transformed inputs [D, n].
        centre, spread: Mean and standard deviation of the function [K, n], transformed.
    """
    stddev = tf.sqrt(tf.square(spread) + np.square(constants.noise))
    at_edge, is_outside = _places(constants, x)
    scores, narrower = constants.scores[0] + 0.0 * stddev, constants.narrower[0] + 0.0 * stddev
    for number in range(1, len(constants.scores)):
        begins = at_edge if constants.is_by_trust else stddev > constants.edges[number - 1]
        step = tf.cast(begins, tf.float64)
        scores += constants.scores[number] * step
        narrower += constants.narrower[number] * step
    left = tf.logical_and(narrower > 0.5, is_outside)
    return centre + stddev * tf.where(left, constants.plain, scores)


def _places(constants: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether inputs are not inside, and whether they are outside the training inputs [n]."""
    beyond = tf.maximum(constants.low - x, x - constants.high)
    distance = tf.norm(tf.matmul(constants.whitening, x - constants.mean), axis=0)
    inside = tf.logical_and(tf.reduce_all(beyond <= 0, axis=0), distance <= constants.usual)
    far = tf.reduce_any(beyond > constants.reach, axis=0)
    return ~inside, tf.logical_or(far, distance > constants.largest)
