"""Scores of predicted class probabilities against known classes.

References:
    Brier 1950, Mon. Weather Rev. 78, 1. Guo, Pleiss, Sun and Weinberger 2017, arXiv:1706.04599.
"""

import numpy as np

from tfbnn.metrics import effective_draws, log_mean_exp, simplify
from tfbnn.predict import noise_tiles

__all__ = ["evaluate_classes", "expected_calibration_error"]

_NUM_BINS = 15


def evaluate_classes(ensemble, x, y):
    """Scores the class probabilities averaged over all draws on the rows (x, y).

    Args:
        ensemble: Ensemble of a class likelihood.
        x: Inputs [N, D], original units.
        y: Class numbers [N, K].

    Returns:
        Dict; see `BayesianMLP.evaluate` for the keys. Bernoulli targets count as two classes.
    """
    ensemble = ensemble.weighted
    probabilities, log_density = _row_scores(ensemble, x, y)
    truth = y.astype(int)
    best = probabilities.argmax(axis=-1)
    one_hot = np.arange(probabilities.shape[-1]) == truth[..., None]
    scores = {
        "accuracy": np.mean(best == truth, axis=0),
        "brier": np.mean(np.square(probabilities - one_hot).sum(axis=-1), axis=0),
        "ece": expected_calibration_error(probabilities.max(axis=-1), best == truth),
        "log_predictive_density": np.mean(log_density),
        "n_effective": effective_draws(ensemble, x),
        "num_rows": len(x),
    }
    return {name: simplify(value) for name, value in scores.items()}


def expected_calibration_error(confidence, correct):
    """Mean absolute gap of confidence and accuracy over 15 bins of equal width, by their rows.

    Args:
        confidence: Probability of the predicted class [N, K].
        correct: Whether the predicted class is the true one [N, K].

    Returns:
        Array [K].
    """
    # Bins are open below and closed above, as in Guo et al. 2017.
    bins = np.clip(np.ceil(confidence * _NUM_BINS).astype(int) - 1, 0, _NUM_BINS - 1)
    gaps = [
        np.abs(np.bincount(place, weights=gap)).sum()
        for place, gap in zip(bins.T, (correct - confidence).T)
    ]
    return np.array(gaps) / len(confidence)


def _row_scores(ensemble, x, y):
    """(probabilities [N, K, classes] averaged over draws, log density of each row [N])."""
    likelihood, weights = ensemble.spec.likelihood, ensemble.draw_weights
    shape = (*y.shape, ensemble.spec.num_classes)
    probabilities, log_density = np.empty(shape), np.empty(len(y))
    for rows, logits, _ in noise_tiles(ensemble, x):
        mean = np.einsum("s,snk->nk", weights, likelihood.inverse_link(logits))
        probabilities[rows] = likelihood.class_probabilities(mean)
        values = likelihood.log_density(y[rows], logits)
        log_density[rows] = log_mean_exp(values, weights)
    return probabilities, log_density
