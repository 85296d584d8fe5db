"""How a fit ends: its error bars held to its own rows."""

from __future__ import annotations

from dataclasses import replace

from tfbnn.posterior.calibration.calibrating import calibrate_by_leaving_out
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.choices import AUTO
from tfbnn.spec.rows import Rows

# As many rows say how long error bars are, to a hundredth of their length, and take a minute with the
# draws of a short run of a million rows.
_MOST_ROWS = 2**16


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
