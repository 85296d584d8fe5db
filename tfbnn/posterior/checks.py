"""Checks of a user's rows and inputs against an ensemble."""

from typing import Any

from numpy.typing import ArrayLike

from tfbnn.data.bad_rows import positions_named
from tfbnn.data.coding import as_inputs
from tfbnn.data.transforms import checked_forward
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.rows import (
    NetworkRows,
    Rows,
    check_network_inputs,
    data_hash,
    known_name,
    prepare_rows,
)
from tfbnn.system.arrays import Array
from tfbnn.system.words import warn

# Most bytes of arrays with a number for every draw.
_MOST_BYTES = 4e9


def check_bytes(what: str, num_bytes: float, advice: str) -> None:
    """Refuse arrays that are too large, before they are computed.

    Raises:
        ValueError: Its message begins with `what`, which ends in a verb, and ends with the advice.
    """
    if num_bytes > _MOST_BYTES:
        size = f"{num_bytes / 1e9:.1f} GB, more than {_MOST_BYTES / 1e9:.0f}"
        raise ValueError(f"{what} {size}. {advice}")


def checked_inputs(ensemble: Ensemble, x: ArrayLike) -> Array:
    """Check inputs, and return them [N, D] on the scale the network sees, float64.

    Raises:
        TypeError, ValueError: If the ensemble cannot take them.
    """
    return checked_points(ensemble, x)[1]


def checked_points(ensemble: Ensemble, x: ArrayLike) -> tuple[Array, Array]:
    """Return checked inputs [N, D] in original units, columns of text coded, and transformed."""
    x = ensemble.spec.flat_inputs(ensemble.known.select(x, "x"))
    with positions_named(x):
        inputs = as_inputs(x, "x", ensemble.spec.num_inputs, ensemble.coding)
        with positions_named(names=inputs.names):
            transformed = checked_forward(ensemble.x_pipeline, inputs.values, "x")
            check_network_inputs(ensemble.spec, "x", transformed)
    return inputs.values, transformed


def checked_rows(
    ensemble: Ensemble,
    x: Any,
    y: Any,
    noise_scale: Any,
    what: str,
    name: str = "",
) -> tuple[Rows, NetworkRows]:
    """Check rows with targets that are to be compared with an ensemble.

    Args:
        ensemble: Ensemble.
        x, y, noise_scale: As in `BayesianMLP.evaluate`.
        what: Name of the caller, for messages.
        name: Prefix of x and y in messages.

    Returns:
        (Rows in original units, the same on the scale the network sees).

    Raises:
        TypeError, ValueError: If the ensemble cannot take them.
    """
    x = ensemble.known.select(x, f"{name}x")
    rows = prepare_rows(ensemble.spec, x, y, noise_scale, name, ensemble.known)
    require_noise(ensemble, rows.noise, what)
    with positions_named(x):
        return rows, ensemble.transform(rows)


def given_together(what: str, x: object, y: object) -> bool:
    """Return True if inputs and targets are given, False if neither is.

    Raises:
        ValueError: For one without the other.
    """
    if (x is None) != (y is None):
        raise ValueError(
            f"{what} needs x and y together, received {'x' if x is None else 'y'}=None."
        )
    return x is not None


def require_noise(ensemble: Ensemble, noise: Array | None, what: str) -> None:
    """Refuse rows without known noise after a fit that had known noise."""
    if ensemble.row_noise and noise is None:
        raise ValueError(
            f"{what} needs {known_name(ensemble.spec)}, received None: the fit had one. Pass that of "
            "these rows."
        )


def rows_given_or_fitted(
    ensemble: Ensemble, fitted: Rows | None, x: Any, y: Any, noise_scale: Any, what: str
) -> Rows:
    """Return the rows of the fit that a user passes again, or those of a fit in this process.

    Args:
        ensemble: Ensemble.
        fitted: Training rows that the model has, or None.
        x, y, noise_scale: Arguments of the caller, all None for the rows of the fit.
        what: Name of the caller, for messages.

    Raises:
        ValueError: For another number of rows than in the fit.

    Warns:
        UserWarning: If the rows differ from those of the fit.
    """
    if not given_together(what, x, y):
        return rows_of_the_fit(fitted, noise_scale, what, "x and y")
    rows, _ = checked_rows(ensemble, x, y, noise_scale, what)
    origin = ensemble.provenance
    if origin.num_training_rows is not None and origin.num_training_rows != len(rows.x):
        raise ValueError(
            f"{what} needs the {origin.num_training_rows} rows of the fit, received {len(rows.x)}."
        )
    if origin.data_sha256 is not None and origin.data_sha256 != data_hash(rows):
        warn(
            f"{what} needs the rows of the fit in their order, received others: the density will differ."
        )
    return rows


def rows_of_the_fit(rows: Rows | None, noise_scale: Any, what: str, names: str) -> Rows:
    """Return the training rows of a fit in this process.

    Args:
        rows: Training rows that the model has, or None.
        noise_scale: The argument of the caller, which must be None.
        what: Name of the caller, for messages.
        names: Names of the arguments that could be passed instead.

    Raises:
        ValueError: For a noise_scale, and if there are no rows.
    """
    if noise_scale is not None:
        raise ValueError(
            f"noise_scale or offset needs {names}. Leave it out for the rows of the fit, which have theirs."
        )
    if rows is None:
        raise ValueError(f"{what} needs the training rows, which files do not hold. Pass {names}.")
    return rows
