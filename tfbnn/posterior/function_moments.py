"""Mean and spread of the function over all draws.

`predict` and the exports use it, so that their numbers agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from tfbnn.posterior.averages import moments, root_mean_square
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.forward import network_outputs
from tfbnn.posterior.mixture import Mixture
from tfbnn.spec.likelihoods import NormalNoise
from tfbnn.system.arrays import Array


@dataclass(frozen=True, eq=False)
class MomentNetworks:
    """Networks whose outputs give the moments of the function.

    Attributes:
        ensemble: The draws, with their mirror images if there is no closed form.
        in_closed_form: Whether all readouts are integrated out. The outputs then hold the means of
            the readouts, followed by G p further lines. The squares of the lines of a target, one
            of G groups, add up to the variance of its readout. Moments are taken on the scale the
            network sees, and converted to original units by `Ensemble.target_unit`.
    """

    ensemble: Ensemble
    in_closed_form: bool

    @property
    def weights(self) -> list[Array]:
        """Weights of each layer, the bias last: [C * S, out, in + 1]."""
        stacked = self.ensemble.stacked_weights if self.in_closed_form else None
        return self.ensemble.effective_weights if stacked is None else stacked

    @property
    def roots_shape(self) -> tuple[int, int]:
        """Shape (G, p) of the lines behind the outputs; p counts the bias and the last hidden units."""
        _, num_lines, num_features = self.weights[-1].shape
        return (num_lines - self.ensemble.spec.num_outputs) // num_features, num_features

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Compute mean and standard deviation [n, K] at inputs x [n, D], all of it transformed.

        Only for networks in closed form.
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
    """Return the networks for the moments in `space`, of the chains with a positive weight.

    They are in closed form if readouts were collapsed and their distributions kept. This holds up
    to affine transforms only: any other maps a normal distribution to one with other moments.
    """
    ensemble = ensemble.weighted
    is_affine = space == "transformed" or ensemble.y_pipeline.is_affine
    in_closed_form = is_affine and ensemble.stacked_weights is not None
    return MomentNetworks(ensemble if in_closed_form else ensemble.averaged, in_closed_form)


def judging_networks(ensemble: Ensemble) -> MomentNetworks | None:
    """Return the networks of calibrations if they differ from those of the moments, else None.

    Calibrations are of the scale that the network sees, on which collapsed readouts are in closed form.
    """
    scored = moment_networks(ensemble, "transformed")
    differs = scored.in_closed_form and not ensemble.y_pipeline.is_affine
    return scored if differs and ensemble.calibration is not None else None


def moments_of_target(ensemble: Ensemble, mixture: Mixture) -> tuple[Array, Array]:
    """Compute mean and standard deviation of a new target in original units [n, K], noise included.

    Both are infinite if the transform is not affine and the noise has tails like those of a
    Student-t.
    """
    likelihood, weights, location, scale = mixture
    pipeline, found = ensemble.y_pipeline, None
    if not ensemble.has_mean_of_target:
        nothing = np.full(location.shape[1:], np.inf)
        return nothing, nothing.copy()
    if pipeline.is_affine or isinstance(likelihood, NormalNoise):
        found = pipeline.moments_of_normal(location, cast(Array, scale))
    if found is None:
        points, weights = mixture.points()
        return moments(pipeline.inverse(points), weights)
    mean, between = moments(found[0], weights)
    return mean, np.hypot(between, root_mean_square(found[1], weights))
