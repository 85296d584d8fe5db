"""Whether a log density is the one that a run was begun with, as far as its values tell."""

import numpy as np

from tfbnn.engine.density.data import no_rows
from tfbnn.engine.density.potential import FunctionDensity
from tfbnn.engine.density.value_and_gradient import make_value_and_gradient
from tfbnn.exceptions import RunFolderError
from tfbnn.spec.density_spec import DensitySpec, Sampled
from tfbnn.system.arrays import Array

# Relative; what programs compiled otherwise may differ by.
_TOLERANCE = {"float32": 1e-5, "float64": 1e-9}


def check_same_density(
    spec: DensitySpec, theta: Array, then: Array, where: str, largest: float = 0.0
) -> None:
    """Refuses a log density with other values than those taken down.

    Args:
        spec: The log density, with its functions.
        theta: Positions [C, P].
        then: The log densities that the run had there [C].
        where: What the positions are, for messages.
        largest: Size of log densities that were subtracted on the way to these.

    Raises:
        RunFolderError: When it has others here.
    """
    now, _ = make_value_and_gradient(FunctionDensity(spec), no_rows(spec.dtype))(theta)
    refuse_other_values(spec, now, then, where, largest)


def refuse_other_values(
    spec: Sampled, now: Array, then: Array, where: str, largest: float = 0.0
) -> None:
    """Refuses log densities `now` [C] that are not those taken down `then`; the rest as above."""
    tolerance = _TOLERANCE[spec.dtype]
    if not np.allclose(now, then, rtol=tolerance, atol=tolerance * (1.0 + largest)):
        raise RunFolderError(
            f"log_prob is not the one that the run was begun with: at {where} it is {now} here and "
            f"was {then} there. Pass the same {' and '.join(spec.own_names)} of the same data, "
            "or another folder."
        )
