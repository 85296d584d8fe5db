"""Numbers of a diagnosis: summaries over quantities, as text, and as plain values for JSON."""

import numpy as np


def defined(values):
    """The entries that are not NaN, in one dimension."""
    return values[~np.isnan(values)]


def upper(values):
    """Median, 95 % quantile and maximum, for numbers of which large ones are bad."""
    found = defined(values)
    if not found.size:
        return {"median": np.nan, "q95": np.nan, "max": np.nan}
    # "higher" takes an element as it is; interpolating between infinite ones gives NaN.
    median, q95 = np.quantile(found, [0.5, 0.95], method="higher")
    return {"median": median, "q95": q95, "max": found.max()}


def lower(values):
    """Minimum and median, for numbers of which small ones are bad."""
    found = defined(values)
    if not found.size:
        return {"min": np.nan, "median": np.nan}
    return {"min": found.min(), "median": np.median(found)}


def number_text(value):
    """Three decimals, or three digits of a large number."""
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.3g}"


def rhat_text(values):
    """A line out of the dict from `upper`."""
    median, q95, largest = (number_text(values[key]) for key in ("median", "q95", "max"))
    return f"R-hat median {median}, 95 % quantile {q95}, max {largest}"


def ess_text(name, values):
    """A line out of the dict from `lower`."""
    return f"{name} min {values['min']:.0f}, median {values['median']:.0f}"


def plain(value):
    """Plain Python values for JSON: NaN becomes None, infinity the string "inf"."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, (str, int)):
        return value
    if np.isnan(value):
        return None
    return float(value) if np.isfinite(value) else "inf"
