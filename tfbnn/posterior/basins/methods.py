"""The method of a model that says where its chains are; the work is done beside."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

from tfbnn.posterior.basins.record import Basins
from tfbnn.posterior.checks import checked_rows, require_rows_of_fit
from tfbnn.posterior.sampled_model import SampledModel


class BasinMethods(SampledModel):
    """What the average over the chains is an average over."""

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
        143). Where the two hardly overlap, as with hundreds of parameters, it is known between two
        bounds only, and the error says so.

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
        from tfbnn.posterior.basins.finding import basins_of

        ensemble = self._fitted()
        if ensemble.no_chains is not None:
            raise ValueError(
                f"basins is about chains, which this model has none of. {ensemble.no_chains}."
            )
        if x is None and y is None:
            rows = self.rows_of_the_fit(noise_scale, "basins without rows", "x and y")
        elif x is None or y is None:
            raise ValueError(
                "basins needs x and y together, received "
                f"{'x' if x is None else 'y'}=None. Pass all rows of the fit, or neither."
            )
        else:
            rows, _ = checked_rows(ensemble, x, y, noise_scale, "basins")
            require_rows_of_fit(ensemble, rows, "basins")
        found = basins_of(ensemble, ensemble.transform(rows))
        self._ensemble = replace(ensemble, basins=found)
        return found
