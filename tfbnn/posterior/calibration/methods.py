"""The methods of a model that hold its error bars to rows; the work is done beside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from tfbnn.data.frames import refuse_other_order
from tfbnn.data.labels import group_numbers
from tfbnn.data.validation import check_choice
from tfbnn.posterior.calibration.record import BY, METHODS, SCALES, Calibration
from tfbnn.posterior.checks import checked_rows
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.habits import explains_keywords
from tfbnn.spec.rows import Rows, num_known
from tfbnn.system.arrays import Array
from tfbnn.system.warn import warn

# From this share of rows of the fit on, scores tell of the fit and not of new rows.
_MOST_OF_THE_FIT = 0.5


class CalibrationMethods(SampledModel):
    """Error bars that hold as often as they say."""

    @property
    def calibration(self) -> Calibration | None:
        """The `Calibration` of the predictions with noise, or None without one."""
        return self._fitted().calibration

    @explains_keywords
    def calibrate(
        self,
        x_calibration: ArrayLike | None = None,
        y_calibration: ArrayLike | None = None,
        *,
        noise_scale: ArrayLike | None = None,
        by: str | None = None,
        method: str = "split",
        scale: str = "stddev",
        groups: Any = None,
    ) -> Calibration:
        """Makes error bars hold as often as they say, by rows that the fit has not seen.

        Scores of these rows, targets less predicted means over predicted standard deviations, say
        how wide an interval has to be, on either side: a conformal predictive system (Vovk, Gammerman
        and Shafer 2022, Algorithmic Learning in a Random World, chapter 7). For new rows like these,
        intervals then hold with their probability whatever the noise and however wrong the model,
        on average over rows; beyond the outermost ranks by a Student's t that is fitted to the
        scores. Means stay what they are. Every later `predict(include_noise=True)`, score, plot and
        saved file uses it; `calibrated=False` asks for the predictions of the posterior.

        Where inputs lie outside the training inputs, whose errors no row tells, bars are the wider
        ones of the two (`predict(return_trust=True)` says where). Stacking and compression take the
        calibration away, as it is about the draws as they were: calibrate after them.

        Args:
            x_calibration: Inputs [N, D] of rows that the fit has not seen; 20 at least, 150 say 1 and
                2 standard deviations, 700 or more the third. Rows that stopped ADAM early are fine,
                those that `stack_chains` was given are not.
            y_calibration: Their targets [N, K] or [N], original units.
            noise_scale: Known standard deviations of these rows, in the units of y; required after a
                fit that had them.
            by: None (default): one distribution of scores for all rows. "stddev": up to three, of
                rows with small, middle and large predicted standard deviations; "trust": two, inside
                the training inputs and at their edge; so that each group is right by itself.
                150 rows at least in each.
            method: "split" (default) by the rows that are given. "loo" takes none: by the rows of the
                fit, each left out in turn by its leverage, the variance of the function there over
                that of the noise. It is exact for Gaussian noise and a Gaussian posterior in each
                group of chains that represent the same functions. Needs the model as it was fitted,
                or of a run folder.
            scale: What bars are in proportion to. "stddev" (default): the predicted standard
                deviations. "misfit": these times the root mean square of the scores of the rows of
                the fit around each input, so that bars grow where the networks fit badly: rows count
                by how far a network that becomes exact there moves its prediction here, after
                Swinburne and Perez 2025, Mach. Learn.: Sci. Technol. (POPS, arXiv:2402.01810). Of
                nearly noise-free targets it tells which errors are large, of plain noise it
                tells nothing (benchmarks/results/pops.md). Needs the rows of the fit with either
                method, and at most 1000 weights per output in the last layer; files grow by four
                matrices of up to 1000 x 1000 numbers for each target, and exports to ONNX and
                SavedModel have no calibrated bars.
            groups: Labels [N] of rows that belong together, such as those of one subject; text or
                integers. With "loo" the rows of a label are left out together, by default those that
                the fit was given, so that bars hold for new subjects; with "split" they are
                together where `coverage_after` is judged. Not with "loo" and "misfit".

        Returns:
            `Calibration`: num_rows, bars, coverage_before, coverage_after, `summary()`.

        Raises:
            NotFittedError: Before a fit.
            TypeError, ValueError: For unusable rows, too few of them, more than half of them rows of
                the fit; for class likelihoods; for "loo" and "misfit" without the rows of the fit,
                where most rows decide their own prediction, and where chains hardly moved, so that
                their draws do not tell; for "loo" with networks that are not sampled, but those of
                `fit_laplace`.

        Warns:
            UserWarning: Where some of the rows took part in the fit.

        Example:
            model.fit_posterior(x, y)
            print(model.calibrate(x_held_out, y_held_out).summary())
            low, high = model.predict(x_new, include_noise=True, quantiles=[0.16, 0.84]).quantiles
        """
        from tfbnn.posterior.calibration.calibrating import (
            calibrate_by_leaving_out,
            calibrate_by_rows,
        )
        from tfbnn.posterior.diagnosing import diagnose_ensemble

        ensemble = self._fitted()
        if by not in BY:
            raise ValueError(f"by must be None, 'stddev' or 'trust', received {by!r}.")
        check_choice("method", method, METHODS)
        check_choice("scale", scale, SCALES)
        if ensemble.spec.has_classes:
            raise ValueError(
                f"calibrate is about numbers, this model has {type(ensemble.spec.likelihood).__name__}."
                " evaluate tells the calibration error of its probabilities."
            )
        if method == "loo":
            if x_calibration is not None or y_calibration is not None:
                raise ValueError(
                    "method='loo' takes the rows of the fit, received others. Leave x_calibration "
                    "and y_calibration out, or use method='split'."
                )
            if ensemble.provenance.not_sampled is not None and ensemble.mode is None:
                raise ValueError(
                    "method='loo' needs draws of a posterior, whose spread tells the leverage of "
                    f"rows, received {ensemble.provenance.not_sampled}. Pass x_calibration and "
                    "y_calibration."
                )
            names = "x_calibration and y_calibration"
            rows = self.rows_of_the_fit(noise_scale, "method='loo'", names)
            found = calibrate_by_leaving_out(
                ensemble, ensemble.transform(rows), by, scale, _groups(groups, rows)
            )
        elif x_calibration is None or y_calibration is None:
            raise ValueError(
                "calibrate needs x_calibration and y_calibration, received None. Pass rows that the "
                "fit has not seen, or method='loo' for those of the fit."
            )
        else:
            rows, transformed = checked_rows(
                ensemble, x_calibration, y_calibration, noise_scale, "calibrate", "calibration "
            )
            refuse_other_order(x_calibration, groups, "groups", "x_calibration")
            rows = replace(rows, groups=_groups(groups, rows))
            _require_new_rows(rows, num_known(ensemble.row_digests, rows))
            of_the_fit = None
            if scale == "misfit":
                instead = "scale='stddev', or calibrate the model as it was fitted or a run folder"
                of_the_fit = ensemble.transform(
                    self.rows_of_the_fit(None, "scale='misfit'", instead)
                )
            found = calibrate_by_rows(ensemble, rows, transformed, by, of_the_fit)
        self._ensemble = ensemble = replace(ensemble, calibration=found)
        # A run folder has its rows and no diagnosis, other models have one or neither.
        known = row_groups = None
        if ensemble.diagnostics is None and self._training_rows is not None:
            known = ensemble.transform(self._training_rows)
            row_groups = self._training_rows.groups
        if ensemble.no_chains is None and (known is not None or ensemble.diagnostics is not None):
            told = diagnose_ensemble(ensemble, None, known, found.checked, row_groups).to_dict()
            self._ensemble = replace(ensemble, diagnostics=told)
        return found


def _groups(labels: Any, rows: Rows) -> Array | None:
    """Which rows belong together, by labels or as the fit was told."""
    return rows.groups if labels is None else group_numbers(labels, len(rows.x))


def _require_new_rows(rows: Rows, of_the_fit: int) -> None:
    if of_the_fit > _MOST_OF_THE_FIT * len(rows.x):
        raise ValueError(
            f"calibrate needs rows that the fit has not seen, received {len(rows.x)} of which "
            f"{of_the_fit} are rows of the fit, whose errors are smaller. Hold rows out, or use "
            "method='loo'."
        )
    if of_the_fit:
        warn(
            f"{of_the_fit} of the {len(rows.x)} rows took part in the fit: their errors are smaller "
            "than those of new rows.",
        )
