"""Densities of pairs of weights over all draws, and of each weight chain by chain.

Reference: thesis of Ask 2022, Fig 8.5.
"""

import numpy as np
from matplotlib import pyplot
from scipy.stats import gaussian_kde

__all__ = ["plot_weight_planes"]

_NUM_POINTS = 90


def plot_weight_planes(model, weights):
    """Figure of Gaussian kernel estimates, of weights by their places in theta.

    Islands in a plane are modes between which chains have passed, or have not where chains have bumps
    of their own on the diagonal.
    """
    ensemble, count = model.posterior, len(weights)
    figure, axes = pyplot.subplots(
        count, count, figsize=(2.1 * count, 2.0 * count), sharex="col", layout="constrained"
    )
    draws = ensemble.draws[..., list(weights)].astype(float)
    low, high = draws.min(axis=(0, 1)), draws.max(axis=(0, 1))
    grids = np.linspace(low, high, _NUM_POINTS)
    for (row, column), axis in np.ndenumerate(axes):
        if row < column:
            axis.set_axis_off()
        elif row == column:
            for chain in draws[..., row]:
                axis.plot(grids[:, row], gaussian_kde(chain)(grids[:, row]))
        else:
            x, y = np.meshgrid(grids[:, column], grids[:, row])
            density = gaussian_kde(draws[..., [column, row]].reshape(-1, 2).T)
            axis.pcolormesh(x, y, density(np.stack([x.ravel(), y.ravel()])).reshape(x.shape))
    for number, index in enumerate(weights):
        axes[-1, number].set_xlabel(ensemble.spec.parameter_name(index))
        if number:
            axes[number, 0].set_ylabel(ensemble.spec.parameter_name(index))
    return figure
