"""Mean and spread of the function over all draws.

`predict` and the exports ask here, so that their numbers agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from tfbnn.posterior.averages import root_mean_square
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.forward import network_outputs
from tfbnn.posterior.mixture import Mixture
from tfbnn.spec.likelihoods import NormalNoise
from tfbnn.system.arrays import Array


@dataclass(frozen=True, eq=False)
class MomentNetworks:
    """Networks out of whose outputs come the moments.

    Attributes:
        ensemble: Theirs: the draws, with their mirror images where only those are known.
        in_closed_form: Whether all readouts are integrated out. The outputs then have means of
            readouts in place of readouts, and behind them G p further lines: the squares of those
            of a target, one of G, add up to the variance of its readout. Moments are taken on the
            scale the network sees, and carried to original units by `Ensemble.target_unit`.
    """

    ensemble: Ensemble
    in_closed_form: bool

    @property
    def weights(self) -> list[Array]:
        """Per layer what the network multiplies with, the bias last: [C * S, out, in + 1]."""
        stacked = self.ensemble.stacked_weights if self.in_closed_form else None
        return self.ensemble.effective_weights if stacked is None else stacked

    @property
    def roots_shape(self) -> tuple[int, int]:
        """(G, p) of the lines behind the outputs; p is the bias and the units of the last layer."""
        _, num_lines, num_features = self.weights[-1].shape
        return (num_lines - self.ensemble.spec.num_outputs) // num_features, num_features

    def moments(self, x: Array) -> tuple[Array, Array]:
        """(mean [n, K], standard deviation [n, K]) at inputs x [n, D], all of it transformed.

        For networks in closed form.
        """
        spec, weights = self.ensemble.spec, self.ensemble.draw_weights
        num_outputs = spec.num_outputs
        outputs = network_outputs(self.ensemble, x, self.weights).astype(np.float64)
        of_draw, roots = outputs[:, :num_outputs], outputs[:, num_outputs:]
        mean = np.einsum("s,skn->kn", weights, of_draw)
        # [C * S, p, G, n]; with G = 1 the same for all outputs.
        roots = roots.reshape(len(roots), *self.roots_shape, len(x)).swapaxes(1, 2)
        roots = np.broadcast_to(roots, (*roots.shape[:2], num_outputs, len(x)))
        deviations = np.concatenate([(of_draw - mean)[:, None], roots], axis=1)
        repeated = np.repeat(weights, deviations.shape[1])
        spread = root_mean_square(deviations.reshape(-1, num_outputs, len(x)), repeated)
        return mean.T, spread.T


def moment_networks(ensemble: Ensemble, space: str = "original") -> MomentNetworks:
    """Return the networks for the moments in `space`, of the chains that have a weight.

    In closed form where readouts were collapsed and their distributions kept, but only up to affine
    transforms: any other carries a normal distribution to one with moments of its own.
    """
    ensemble = ensemble.weighted
    is_affine = space == "transformed" or ensemble.y_pipeline.is_affine
    in_closed_form = is_affine and ensemble.stacked_weights is not None
    return MomentNetworks(ensemble if in_closed_form else ensemble.averaged, in_closed_form)


def mean_of_target(ensemble: Ensemble, mixture: Mixture) -> Array:
    """Mean of a new target in original units [n, K], noise included, without sampling it.

    It is infinite where the transform is not affine and the noise has tails such as a Student-t's.
    """
    likelihood, weights, location, scale = mixture
    pipeline, means = ensemble.y_pipeline, None
    if not ensemble.has_mean_of_target:
        return np.full(location.shape[1:], np.inf)
    if pipeline.is_affine:
        means = pipeline.inverse(location)
    elif isinstance(likelihood, NormalNoise):
        means = pipeline.mean_of_normal(location, cast(Array, scale))
    if means is None:
        points, weights = mixture.points()
        means = pipeline.inverse(points)
    return np.einsum("s,snk->nk", weights, means)
