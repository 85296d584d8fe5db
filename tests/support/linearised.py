"""Ensembles of draws around a mode, as `fit_laplace` leaves them, without a fit."""

from dataclasses import replace

import numpy as np

from tests.support.builders import synthetic_ensemble

LABEL = "fit_laplace: a normal distribution around one optimised network, linearised there"


def linearised_ensemble(num_results=7, width=0.3, **settings):
    """An Ensemble of draws [1, S, P] of this width around a random mode."""
    says = {"not_sampled": LABEL, "num_results_requested": num_results}
    settings = {"dtype": "float64"} | settings
    settings |= {"num_chains": 1, "chain_weights": None}
    ensemble = synthetic_ensemble(**settings, num_results=num_results + 1, provenance=says)
    mode, draws = ensemble.draws[0, 0], ensemble.draws[:, 1:]
    near = (mode + width * (draws - mode)).astype(ensemble.spec.dtype)
    chosen = ensemble.picked(lambda values: values[:, 1:])
    return replace(chosen, draws=near, mode=np.array(mode))


def finite_differences(ensemble, x, step=1e-5):
    """Network outputs at the mode plus their derivative towards each draw: [S, outputs, n]."""
    from tfbnn.posterior.forward import network_outputs

    centre, changes = ensemble.mode, ensemble.draws - ensemble.mode

    def outputs(draws):
        return network_outputs(replace(ensemble, draws=draws, mode=None), x)

    ahead, behind = (outputs(centre + sign * step * changes) for sign in (1, -1))
    return outputs(centre[None, None]) + (ahead - behind) / (2 * step)
