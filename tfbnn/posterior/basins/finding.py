"""Find `Basins`: group chains by their functions, and weigh the groups by their evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tfbnn.diagnostics.statistics import rhat
from tfbnn.posterior.basins.evidence import (
    FEWEST_DRAWS,
    Evidence,
    RowsTarget,
    group_chains,
    log_evidence,
)
from tfbnn.posterior.basins.record import Basins
from tfbnn.posterior.checks import checked_rows, given_together, require_rows_of_fit
from tfbnn.posterior.prediction import function_of_chains
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.system.arrays import Array

# A Gauss-Newton matrix and its factors take some 8 P^2 bytes each: 0.5 GB at this P.
MOST_PARAMETERS = 8000


class BasinMethods(SampledModel):
    """Methods that find the basins that the average over the chains is over."""

    def basins(
        self,
        x: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        noise_scale: ArrayLike | None = None,
    ) -> Basins:
        """Says which chains represent the same functions, and how much of the posterior is there.

        Chains that do not agree may be in basins of very unequal mass, and their average then is no
        posterior. Chains are in one basin where their mean predictions at the reference inputs saved
        with the model are nearer to each other than two of their standard deviations, root mean
        square, or others connect them. The mass of a basin is found by bridge sampling (Meng and Wong
        1996, Statistica Sinica 6, 831) between up to 800 draws of each chain and a normal
        distribution beside them, made of half of the draws and the Gauss-Newton matrix at the best
        one, with its relative mean square error (Fruehwirth-Schnatter 2004, Econometrics Journal 7,
        143). Where the two hardly overlap, as with hundreds of parameters, it is not known: its error
        is infinite.

        The H! 2^H copies of a network that are the same function (units in another order, signs
        turned where the activation is odd) are as many in every basin and cancel in the weights.
        Weights are of the basins that were found; what no chain found does not count.

        The result is kept with the model and in its file.

        Args:
            x, y, noise_scale: All rows of the fit, as in `fit_posterior`. Default: those that this
                model was fitted to in this process, or those of the run folder it was loaded from.

        Returns:
            `Basins`: labels [C], log_weights and log_weight_stderr [B] in nats, rhat_within
            [B, N_ref, K], `report()`.

        Raises:
            NotFittedError: Before a fit.
            TypeError, ValueError: For unusable rows, rows that are not as many as those of the fit,
                a model without chains, fewer than eight draws per chain, and with several basins for
                more than 8000 parameters.

        Warns:
            UserWarning: When the rows are not those of the fit.

        Example:
            print(model.basins().report())
        """
        ensemble = self._fitted()
        if ensemble.no_chains is not None:
            raise ValueError(
                f"basins is about chains, which this model has none of. {ensemble.no_chains}."
            )
        if given_together("basins", x, y):
            rows, _ = checked_rows(ensemble, x, y, noise_scale, "basins")
            require_rows_of_fit(ensemble, rows, "basins")
        else:
            rows = self.rows_of_the_fit(noise_scale, "basins without rows", "x and y")
        found = find_basins(
            ensemble.draws,
            function_of_chains(ensemble),
            RowsTarget(ensemble.spec, ensemble.transform(rows)),
        )
        found = replace(found, chain_weights=ensemble.chain_weights)
        self._ensemble = replace(ensemble, basins=found)
        return found


def find_basins(draws: Array, function: Array, target: RowsTarget) -> Basins:
    """Return the Basins of chains of equal weights.

    Args:
        draws: [C, S, P].
        function: What they are compared by, at reference inputs [C, S, N_ref, K].
        target: The density of the model given its rows.

    Raises:
        ValueError: For fewer than eight draws per chain; with several basins for too many parameters,
            and where the Gauss-Newton matrix has no factor.
    """
    if draws.shape[1] < FEWEST_DRAWS:
        raise ValueError(
            f"basins needs at least {FEWEST_DRAWS} draws per chain, received {draws.shape[1]}."
        )
    labels = group_chains(function)
    groups = [np.flatnonzero(labels == group) for group in range(labels.max() + 1)]
    found = [Evidence(0.0, 0.0)]
    if len(groups) > 1:
        if draws.shape[2] > MOST_PARAMETERS:
            raise ValueError(
                f"basins weighs the {len(groups)} groups of chains by P x P matrices, for at most "
                f"{MOST_PARAMETERS} parameters, this model has {draws.shape[2]}. Use narrower layers."
            )
        found = [log_evidence(target, list(draws[group])) for group in groups]
    order = np.argsort([-one.value for one in found], kind="stable")
    values, errors = zip(*(found[group] for group in order))
    return Basins(
        labels=np.argsort(order, kind="stable")[labels],
        log_evidence=np.array(values),
        log_evidence_stderr=np.array(errors),
        rhat_within=np.stack([rhat(function[groups[group]]) for group in order]),
        chain_weights=np.full(len(draws), 1 / len(draws)),
    )
