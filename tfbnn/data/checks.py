"""Checks of a user's rows and inputs: those of a fit, and against the ensemble they are for."""

from tfbnn.data.rows import check_range, prepare_rows, transform_rows
from tfbnn.data.transforms import check_domain
from tfbnn.data.validation import as_matrix, column_names


def rows_to_fit(spec, x, y, noise_scale, validation_data):
    """(Training Rows, validation Rows or None) of the arguments of `fit_posterior`.

    Raises:
        TypeError, ValueError: Where the model cannot take them.
    """
    rows = prepare_rows(spec, x, y, noise_scale)
    if validation_data is None:
        return rows, None
    if not isinstance(validation_data, (tuple, list)) or len(validation_data) not in (2, 3):
        raise ValueError(
            "validation_data must be (x, y) or (x, y, noise_scale), received "
            f"{type(validation_data).__name__}."
        )
    x, y, *noise = validation_data
    noise = noise[0] if noise else None
    validation = prepare_rows(spec, x, y, noise, name="validation ", classes=rows.classes)
    check_names(validation.feature_names, rows.feature_names, "validation x")
    return rows, validation


def checked_inputs(ensemble, x):
    """Inputs [N, D], float64.

    Raises:
        TypeError, ValueError: Where the ensemble cannot take them.
    """
    names = column_names(x)
    x = as_matrix(x, "x", num_columns=ensemble.spec.num_inputs)
    check_names(names, ensemble.feature_names, "x")
    check_domain(ensemble.x_pipeline, x, "x")
    check_range(ensemble.spec, "x", ensemble.x_pipeline.forward(x))
    return x


def checked_rows(ensemble, x, y, noise_scale, what, name=""):
    """Rows whose targets are to be held against the ensemble.

    Args:
        ensemble: Ensemble.
        x, y, noise_scale: As in `BayesianMLP.evaluate`.
        what: What needs them, for messages.
        name: Prefix of x and y in messages.

    Raises:
        TypeError, ValueError: Where the ensemble cannot take them.
    """
    rows = prepare_rows(ensemble.spec, x, y, noise_scale, name=name, classes=ensemble.classes)
    check_names(rows.feature_names, ensemble.feature_names, f"{name}x")
    require_noise(ensemble, rows.noise, what)
    transform_rows(ensemble.spec, ensemble.x_pipeline, ensemble.y_pipeline, rows)  # checks them
    return rows


def check_names(names, expected, what):
    """Refuses columns other than the expected ones, where both are known."""
    if names is not None and expected is not None and names != expected:
        raise ValueError(
            f"{what} must have the columns {list(expected)} in this order, received "
            f"{list(names)}. Select them by name."
        )


def require_noise(ensemble, noise, what):
    """Refuses rows without known noise after a fit that had it."""
    if ensemble.row_noise and noise is None:
        raise ValueError(
            f"The model was fitted with a known noise scale per row, so {what} needs noise_scale, "
            "received None. Pass the standard deviations of these rows."
        )
