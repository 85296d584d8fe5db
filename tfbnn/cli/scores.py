"""The table of scores that `evaluate` and `demo` print."""

import math

_LINES = (
    ("rmse", "RMSE", "original units"),
    ("r2", "R2", "original units, 1 is perfect"),
    ("rmse_log10", "RMSE of log10", "decades"),
    ("r2_log10", "R2 of log10", "1 is perfect"),
    ("crps", "CRPS", "original units, 0 is perfect"),
    ("log_predictive_density", "Log predictive density", "mean per row, higher is better"),
    ("pull_width", "Pull width", "1 is perfect, above 1: error bars too small"),
    ("accuracy", "Accuracy", "share of rows, 1 is perfect"),
    ("brier", "Brier score", "summed over classes, 0 is perfect"),
    ("ece", "Calibration error", "ECE in 15 bins, 0 is perfect"),
    ("n_effective", "Effective draws", "median over rows"),
)


def scores_text(scores, names, weighting=None):
    """Scores as aligned lines, observed against nominal coverage at the end.

    Args:
        scores: Dict from `BayesianMLP.evaluate`.
        names: Names of the targets.
        weighting: Line on how the chains are weighted, or None for equal weights.
    """
    lines = [_line("Rows", [str(scores["num_rows"])])]
    if len(names) > 1:
        lines.insert(0, _line("", names))
    for key, label, note in _LINES:
        if key in scores:
            lines.append(_line(label, [f"{value:.4g}" for value in _values(scores[key])], note))
    for k, observed in scores.get("coverage", {}).items():
        shares = [f"{100 * value:.2f} %" for value in _values(observed)]
        nominal = 100 * math.erf(k / math.sqrt(2))
        lines.append(
            _line(f"Within {k} sigma", shares, f"{nominal:.{2 if k < 4 else 4}f} % nominal")
        )
    if weighting is not None:
        lines.append(f"{'Chains':<24}{weighting}")
    return "\n".join(lines)


def _line(label, cells, note=""):
    text = f"{label:<24}" + "".join(f"{cell:>14}" for cell in cells)
    return f"{text}   {note}".rstrip()


def _values(value):
    return value.tolist() if hasattr(value, "tolist") else [value]
