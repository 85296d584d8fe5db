"""Features of a `Misfit`, from a few networks of an ensemble, and its factors."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np

from tfbnn.posterior.calibration.calibration import Calibrated, Calibration, Misfit
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.forward import layers_at
from tfbnn.spec.model_spec import ModelSpec, perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array, row_slices

# As good as 16, for four chains (benchmarks/results/pops.md).
NUM_NETWORKS = 4
# Most features: the weights of the last layers, as many layers as have no more together, the last one
# in any case. Features of all weights tell more than those of the readout alone; their matrices have
# the square of this number of entries.
MOST_FEATURES = 1000
# Slices of rows whose features are computed together.
row_blocks = partial(row_slices, step=1024)


def misfit_networks(ensemble: Ensemble, count: int = NUM_NETWORKS) -> Ensemble:
    """Return the networks [M, 1, P] that give the features: evenly spaced by weight, M at most `count`.

    For four chains of equal weight these are the last draws of the chains; for draws around a mode
    it is the network at the mode.
    """
    if ensemble.mode is not None:
        return ensemble.at_mode
    weighted = ensemble.weighted
    reached = np.cumsum(weighted.draw_weights)
    levels = reached[-1] * np.arange(1, count + 1) / count
    # A tenth of a draw less, so that rounding decides nothing.
    chosen = np.searchsorted(reached, levels - 0.1 * weighted.draw_weights.min())
    # They ascend. np.unique would import more of NumPy, which a reader of untrusted files must not do.
    chosen = chosen[np.diff(chosen, prepend=-1) > 0]
    networks = weighted.flat[chosen][:, None].astype(np.float64)
    return weighted.with_draws(networks)


def num_features(spec: NetworkSpec) -> int:
    """Return the number of features P of a `Misfit`; 0 for a network without features."""
    return _hidden_layers(spec)[1] if isinstance(spec, ModelSpec) else 0


def _hidden_layers(spec: ModelSpec) -> tuple[list[int], int]:
    """Return the hidden layers whose weights are features, last one first, and the number of features."""
    sizes, chosen = spec.layer_sizes, []
    count = sizes[-2] + 1
    for index in reversed(range(len(sizes) - 2)):
        weights = sizes[index + 1] * (sizes[index] + 1)
        if count + weights > MOST_FEATURES:
            break
        chosen.append(index)
        count += weights
    return chosen, count


def misfit_features(network: Ensemble, x: Array) -> list[Array]:
    """Compute derivatives of each target's mean in theta at transformed x [n, D]: per target [P, n].

    In the readout only the weights of the target count: all others are zero.

    Args:
        network: Ensemble of one network.
        x: [n, D].
    """
    spec = perceptron(network.spec, "scale='misfit'")
    hidden_layers, _ = _hidden_layers(spec)
    _, layers = layers_at(network, x)
    scales = [network.input_scales(index)[0].astype(np.float64) for index in range(len(layers))]
    readout, hidden, _ = layers[-1]
    found = []
    for target in range(spec.num_targets):
        parts = [hidden * scales[-1][:, None]]
        back = np.repeat(readout[target, :-1, None].astype(np.float64), len(x), axis=1)
        for index in hidden_layers:
            weights, inputs, slopes = layers[index]
            back *= slopes
            products = back[:, None] * (inputs * scales[index][:, None])
            parts.append(products.reshape(-1, len(x)))
            back = weights[:, :-1].T.astype(np.float64) @ back
        found.append(np.concatenate(parts))
    return found


def single_networks(networks: Ensemble) -> list[Ensemble]:
    """Split the networks of an ensemble [M, 1, P] into ensembles of one network each."""
    return [networks.with_draws(draws[None]) for draws in networks.draws]


def misfit_factors(
    ensemble: Ensemble, misfit: Misfit, x: Array, own: tuple[Array, Array] | None = None
) -> Array:
    """Compute the root mean square of scores around transformed inputs x [n, D]: [n, K].

    Args:
        ensemble: Ensemble of a regression.
        misfit: Misfit.
        x: [n, D].
        own: For rows of the fit, their own terms in both sums of every network [M, n, K], left out.
    """
    networks = single_networks(misfit_networks(ensemble))
    found = np.zeros((len(x), ensemble.spec.num_targets))
    for rows in row_blocks(len(x)):
        for number, network in enumerate(networks):
            for target, features in enumerate(misfit_features(network, x[rows])):
                terms = [] if own is None else [sums[number, rows, target] for sums in own]
                found[rows, target] += misfit.mean_square(features, number, target, terms)
    return np.sqrt(found / len(networks))


def calibrated_at(ensemble: Ensemble, x: Array, centre: Array, stddev: Array) -> Calibrated:
    """Calibrate predictions [n, K] at transformed x [n, D]; see `Calibration.of`."""
    calibration = cast(Calibration, ensemble.calibration)
    trust = ensemble.trust(x)
    return calibration.of(centre, stddev, trust, scale_factors(ensemble, x))


def scale_factors(ensemble: Ensemble, x: Array) -> Array:
    """Return the factors by which the calibration multiplies predicted standard deviations: [n, K]."""
    misfit = None if ensemble.calibration is None else ensemble.calibration.misfit
    if misfit is None:
        return np.ones((len(x), ensemble.spec.num_targets))
    return misfit_factors(ensemble, misfit, x)
