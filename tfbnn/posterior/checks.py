"""Checks of a user's rows and inputs against the ensemble that is to use them."""

from numpy.typing import ArrayLike

from tfbnn.data.transforms import checked_forward
from tfbnn.data.validation import as_matrix, column_names
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.rows import NetworkRows, Rows, check_names, check_range, prepare_rows
from tfbnn.system.arrays import Array


def checked_inputs(ensemble: Ensemble, x: ArrayLike) -> Array:
    """Inputs [N, D] on the scale the network sees, float64: transformed here, once for all uses.

    Raises:
        TypeError, ValueError: Where the ensemble cannot take them.
    """
    names = column_names(x)
    x = as_matrix(x, "x", num_columns=ensemble.spec.num_inputs)
    check_names(names, ensemble.feature_names, "x")
    transformed = checked_forward(ensemble.x_pipeline, x, "x")
    check_range(ensemble.spec, "x", transformed)
    return transformed


def checked_rows(
    ensemble: Ensemble,
    x: ArrayLike,
    y: ArrayLike,
    noise_scale: ArrayLike | None,
    what: str,
    name: str = "",
) -> tuple[Rows, NetworkRows]:
    """Rows whose targets are to be held against the ensemble.

    Args:
        ensemble: Ensemble.
        x, y, noise_scale: As in `BayesianMLP.evaluate`.
        what: What needs them, for messages.
        name: Prefix of x and y in messages.

    Returns:
        (Rows in original units, the same on the scale the network sees).

    Raises:
        TypeError, ValueError: Where the ensemble cannot take them.
    """
    rows = prepare_rows(ensemble.spec, x, y, noise_scale, name=name, classes=ensemble.classes)
    check_names(rows.feature_names, ensemble.feature_names, f"{name}x")
    require_noise(ensemble, rows.noise, what)
    return rows, ensemble.transform(rows)


def require_noise(ensemble: Ensemble, noise: Array | None, what: str) -> None:
    """Refuses rows without known noise after a fit that had it."""
    if ensemble.row_noise and noise is None:
        raise ValueError(
            f"The model was fitted with a known noise scale per row, so {what} needs noise_scale, "
            "received None. Pass the standard deviations of these rows."
        )
