"""How a fit ends: its error bars held to its own rows, and judged."""

from __future__ import annotations

from dataclasses import replace

from tfbnn.diagnostics.verdict import Predictions
from tfbnn.posterior.calibration.calibrating import calibrate_by_leaving_out
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.fit_checking import check_held_out
from tfbnn.run.definition import FitDefinition
from tfbnn.spec.choices import AUTO
from tfbnn.spec.rows import Rows

# As many rows say how long error bars are, to a hundredth of their length, and take a minute with the
# draws of a short run of a million rows.
_MOST_ROWS = 2**16
# Of the time that this and the diagnosis take on two cores, by draws and rows, weights and reference
# inputs (benchmarks/results/limits.md): up to 8 s there.
_MOST_SEEN, _NUM_REFERENCE = 1000, 200
_SECONDS_OF_R_HAT = 5e-7
_LEAST_SECONDS, _SECONDS_OF_A_VALUE, _SECONDS_OF_A_FLOP = 0.5, 1e-7, 1.2e-11


def calibrated_at_the_end(ensemble: Ensemble, rows: Rows) -> tuple[Ensemble, tuple[str, ...]]:
    """(The ensemble with error bars that its rows calibrate, or as it was; a note on why not).

    A fit may have taken a day: what its rows cannot tell is said, and never an error.

    Args:
        ensemble: Ensemble of a regression.
        rows: The rows of its fit, original units.
    """
    try:
        part = rows.part(_MOST_ROWS)
        found = calibrate_by_leaving_out(
            ensemble, ensemble.transform(part), AUTO, row_groups=part.groups
        )
    except ValueError as error:
        return ensemble, (f"Error bars are those of the posterior, not calibrated: {error}",)
    return replace(ensemble, calibration=found), ()


def seconds_to_end(definition: FitDefinition, num_results: int) -> float:
    """About how long calibration and diagnosis of so many draws per chain take."""
    draws = num_results * definition.sampling.num_chains
    calibrated = min(definition.num_rows, _MOST_ROWS) if definition.calibrate else 0
    seen = calibrated + min(definition.num_rows, _MOST_SEEN)
    judged = min(definition.spec.num_parameters, _MOST_SEEN) + _NUM_REFERENCE
    of_a_row = _SECONDS_OF_A_VALUE + 2.0 * definition.spec.num_products * _SECONDS_OF_A_FLOP
    return _LEAST_SECONDS + draws * (seen * of_a_row + judged * _SECONDS_OF_R_HAT)


def judged_predictions(ensemble: Ensemble, validation: Rows | None) -> Predictions | None:
    """Whether error bars hold, by rows that calibrated nothing.

    Args:
        ensemble: Ensemble, calibrated or not.
        validation: Validation rows of the fit, original units, or None.

    Returns:
        Predictions by validation rows, else by those that calibrated, in halves; None without either.
    """
    found = None if validation is None else check_held_out(ensemble, validation, "validation rows")
    if found is not None and found.coverage:
        return found
    return None if ensemble.calibration is None else ensemble.calibration.checked
