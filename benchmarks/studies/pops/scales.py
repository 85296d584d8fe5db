"""The scales that benchmarks/studies/pops/run.py compares, from the features of one network per chain.

With features phi of all rows, divided by the noise, A = sum phi phi' + 1 and leverage h_i: row i becomes
exact by delta_i = A^-1 phi_i r_i / h_i (Swinburne and Perez 2025, arXiv:2402.01810). Every scale is a
root of sums over rows of c_i(x)^2 = (phi(x)' A^-1 phi_i)^2, with weights.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["held_out_of", "own_and_new", "scales_of"]

MANY = 16


class Rows(NamedTuple):
    """Transformed rows with their scores: [n, D], [n], [n], [n], and which scores are known [n]."""

    x: np.ndarray
    score: np.ndarray
    stddev: np.ndarray
    residual: np.ndarray
    judged: np.ndarray


def held_out_of(problem):
    """All rows that were not fitted, validation rows first."""
    parts = [part for part in (problem.validation, problem.test) if part is not None]
    return tuple(np.concatenate(arrays) for arrays in zip(*parts))


def own_and_new(model, x, y, held_out):
    """Rows of the fit, each left out, and held-out rows."""
    from tfbnn.posterior.calibration.left_out import left_out_moments
    from tfbnn.posterior.checks import checked_rows

    ensemble = model.posterior
    _, rows = checked_rows(ensemble, x, y, None, "this")
    mean, stddev, known = (values[:, 0] for values in left_out_moments(ensemble, rows))
    score = (rows.y[:, 0] - mean) / stddev
    fitted = model.predict(x, space="transformed").columns.mean[:, 0]
    own = Rows(rows.x, np.where(known, score, 0.0), stddev, rows.y[:, 0] - fitted, known)
    _, rows = checked_rows(ensemble, *held_out, None, "this")
    found = model.predict(held_out[0], include_noise=True, space="transformed", calibrated=False)
    error = rows.y[:, 0] - found.columns.mean[:, 0]
    stddev = found.columns.stddev[:, 0]
    return own, Rows(rows.x, error / stddev, stddev, error, np.ones(len(error), bool))


def scales_of(model, own, new):
    """Dict name -> (factors of the deviations of the rows of the fit, those of held-out rows)."""
    from tfbnn.posterior.calibration import misfit_features as features_of

    noise = float(np.exp(model.posterior.log_noise_scale).mean())
    readout = model.posterior.spec.layer_sizes[-2] + 1
    sums = {}
    for label, count, size in (
        ("readout", features_of.NUM_NETWORKS, readout),
        (f"readout of {MANY} networks", MANY, readout),
        ("all weights", features_of.NUM_NETWORKS, None),
    ):
        networks = features_of.misfit_networks(model.posterior, count)
        for network in features_of.single_networks(networks):
            both = (features_of.misfit_features(network, rows.x)[0] / noise for rows in (own, new))
            for name, squares in squares_of(own, *(features[:size] for features in both)).items():
                sums.setdefault(f"{name}; {label}", []).append(squares)
    scales = {"stddev": (np.ones(len(own.score)), np.ones(len(new.score)))}
    for name, squares in sums.items():
        mine, others = (np.sqrt(np.mean(part, axis=0)) for part in zip(*squares))
        mine = np.maximum(mine, 1e-6 * np.median(mine))
        if name.startswith(("POPS", "sandwich")) and "x stddev" not in name:
            mine, others = mine / own.stddev, others / new.stddev
        scales[name] = mine, others
    return scales


def squares_of(own, mine, others):
    """Dict name -> (squares at the rows of the fit without their own part, at held-out rows)."""
    whitening = np.linalg.inv(np.linalg.cholesky(mine @ mine.T + np.eye(len(mine))))
    white, new = whitening @ mine, whitening @ others
    leverage = np.maximum(np.square(white).sum(axis=0), 1e-300)

    def total(weights):
        weighted = white * np.sqrt(weights)
        matrix = weighted @ weighted.T
        at_own = np.sum((matrix @ white) * white, axis=0) - np.square(leverage) * weights
        return np.maximum(at_own, 0.0), np.sum((matrix @ new) * new, axis=0)

    def ratio(weights):
        below = total(weights * own.judged)
        above = total(weights * own.judged * np.square(own.score))
        return tuple(part / np.maximum(whole, 1e-300) for part, whole in zip(above, below))

    squared = np.square(own.residual)
    high = leverage >= np.median(leverage)
    pops = total(squared / leverage**2 / len(squared))
    return {
        "POPS": pops,
        "POPS, leverage above the median": total(high * squared / leverage**2 / high.sum()),
        "POPS x stddev": pops,
        "sandwich": total(squared),
        "misfit, POPS's weights": ratio(leverage**-2),
        "misfit": ratio(1.0 / leverage),
    }
