"""Scores of the rivals in benchmarks/studies/default/run.py, by the definitions of `BayesianMLP.evaluate`."""

from typing import NamedTuple

import numpy as np

__all__ = ["NUM_GROUPS", "TargetSpace", "class_scores", "group_means", "mixture_scores"]

# Test rows i, i + 20, ... make a group, whose means give the error of a paired difference.
NUM_GROUPS = 20
NUM_POINTS, NUM_BINS = 400, 15


class TargetSpace(NamedTuple):
    """Space in which rivals fit: the target or its log10, standardised on the training rows."""

    log: bool
    mean: float
    spread: float

    @classmethod
    def of(cls, y, log):
        """The space for training targets [N]."""
        t = np.log10(y) if log else y
        return cls(log, float(t.mean()), float(t.std()) or 1.0)

    def forward(self, y):
        return ((np.log10(y) if self.log else y) - self.mean) / self.spread

    def inverse(self, t):
        values = self.mean + self.spread * t
        return 10.0**values if self.log else values

    def log_slope(self, y):
        """Log of the derivative of `forward`: what carries a log density to original units."""
        slope = 1.0 / self.spread
        return np.log(slope / (np.log(10.0) * y) if self.log else np.full(np.shape(y), slope))


def group_means(values):
    """Means of the values [N] of each group of test rows, rounded: a list."""
    groups = (values[start::NUM_GROUPS] for start in range(min(NUM_GROUPS, len(values))))
    return [round(float(np.mean(group)), 6) for group in groups]


def mixture_scores(space, location, scale, y):
    """Scores of a predictive mixture of normals.

    Args:
        space: TargetSpace in which the normals are.
        location, scale: [S, N]; S is 1 for a single normal.
        y: Targets [N], original units.

    Returns:
        Dict: rmse, lpd (mean log predictive density), crps, all in original units; coverage within
        1 and 2 standard deviations in `space`; lpd_groups; and of log targets rmse_log10.
    """
    t = space.forward(y)
    mean = location.mean(axis=0)
    stddev = np.sqrt(location.var(axis=0) + np.square(scale).mean(axis=0))
    log_density = -0.5 * ((t - location) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)
    log_density = np.logaddexp.reduce(log_density, axis=0) - np.log(len(location))
    log_density += space.log_slope(y)
    pull = np.abs(t - mean) / stddev
    scores = {
        "rmse": _rms(y - space.inverse(location).mean(axis=0)),
        "lpd": float(log_density.mean()),
        "crps": float(_crps(space.inverse(_points(location, scale)), y).mean()),
        "coverage": [float(np.mean(pull < k)) for k in (1, 2)],
        "lpd_groups": group_means(log_density),
    }
    if space.log:
        scores["rmse_log10"] = space.spread * _rms(t - mean)
    return scores


def _points(location, scale):
    """About 400 equally likely points [M, N] of each mixture."""
    from scipy.special import ndtri

    count = max(1, round(NUM_POINTS / len(location))) * len(location)
    quantiles = ndtri((np.arange(count) + 0.5) / count)
    # Neighbouring quantiles go to different normals of the mixture.
    order = np.random.default_rng(0).permutation(count) % len(location)
    return location[order] + scale[order] * quantiles[:, None]


def _crps(points, y):
    """E|X - y| - E|X - X'| / 2 (Gneiting and Raftery 2007) of equally likely points [M, N]: [N]."""
    count = len(points)
    weights = (2.0 * np.arange(count) + 1.0 - count) / count**2
    return np.abs(points - y).mean(axis=0) - weights @ np.sort(points, axis=0)


def _rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def class_scores(probabilities, y):
    """Scores of class probabilities [N, M] for the true classes y [N] (0 .. M - 1).

    Returns:
        Dict: accuracy, lpd (mean log probability of the true class), brier (summed over classes,
        0 to 2), ece in 15 bins, lpd_groups.
    """
    truth = np.arange(probabilities.shape[1]) == y[:, None]
    log_density = np.log(probabilities[truth])
    correct, confidence = probabilities.argmax(axis=1) == y, probabilities.max(axis=1)
    bins = np.clip(np.ceil(confidence * NUM_BINS).astype(int) - 1, 0, NUM_BINS - 1)
    gaps = np.bincount(bins, weights=correct - confidence)
    return {
        "accuracy": float(correct.mean()),
        "lpd": float(log_density.mean()),
        "brier": float(np.square(probabilities - truth).sum(axis=1).mean()),
        "ece": float(np.abs(gaps).sum() / len(y)),
        "lpd_groups": group_means(log_density),
    }
