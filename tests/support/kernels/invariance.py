"""Layer B: transitions from exact draws have to leave exact draws.

Two tests with the same answer, (p of the strongest evidence against that, acceptance): one on a
density whose draws are known, one on weights and rows that are drawn together. p is corrected for
the number of statistics by Bonferroni, so a kernel without fault falls below ALARM for at most one
seed in 1e5. With an acceptance outside WINDOW the tests see little: a kernel that accepts nearly
everything needs no right ratio.

References:
    Geweke 2004, J. Am. Stat. Assoc. 99, 799. Gandy and Scott 2020, arXiv:2001.06465.
"""

import numpy as np
import tensorflow as tf
from scipy import stats

from tests.support.kernels.cases import advance, target_of

__all__ = ["ALARM", "NUM_DRAWS", "WINDOW", "joint_p", "smallest_p"]

ALARM = 1e-5
WINDOW = (0.60, 0.85)
NUM_DRAWS = 4000
# Samples to compare with are ten times larger, and add little to the noise.
FRESH = 10


def smallest_p(case, count=NUM_DRAWS):
    """(p, acceptance) on the case's density with known draws."""
    target = target_of(case)
    start = target.draw(np.random.default_rng(1), count)
    acceptance, end = advance(case.settings, target, start)
    _check_movement(start, end)
    fresh = target.draw(np.random.default_rng(99), FRESH * count)
    uniforms = np.clip(target.uniforms(end), 0.0, 1.0)
    p = _uniform_p(uniforms)
    densities = (target(tf.constant(z)).numpy() for z in (end, fresh))
    p.append(stats.ks_2samp(*densities).pvalue)
    # Products of normal scores see wrong correlations, which no margin shows.
    scores = stats.norm.ppf(np.clip(uniforms, 1e-12, 1 - 1e-12))
    exact = np.random.default_rng(98).normal(size=(FRESH * count, 2)).prod(axis=-1)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        p.append(stats.ks_2samp(scores[:, a] * scores[:, b], exact).pvalue)
    return min(1.0, len(p) * min(p)), acceptance


def joint_p(case, count=NUM_DRAWS):
    """(p, acceptance) on the case's model: every chain has weights and rows of its own."""
    model, generator = case.model(), np.random.default_rng(2)
    theta = model.draw_weights(generator, count)
    y = model.draw_rows(generator, theta)
    acceptance, end = advance(case.settings, model.target(y), theta, step_size=case.joint_step)
    _check_movement(theta, end)
    fresh = model.draw_weights(generator, FRESH * count)
    pairs = zip(
        model.quantities(end, y).T, model.quantities(fresh, model.draw_rows(generator, fresh)).T
    )
    p = _uniform_p(np.clip(model.uniforms(end), 0.0, 1.0))
    p += [stats.ks_2samp(found, expected).pvalue for found, expected in pairs]
    return min(1.0, len(p) * min(p)), acceptance


def _uniform_p(uniforms):
    return [stats.kstest(column, "uniform").pvalue for column in uniforms.T]


def _check_movement(start, end):
    assert np.mean(np.all(start == end, axis=-1)) < 0.1, "most chains have to move"
