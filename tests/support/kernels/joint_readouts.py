"""A network with learned noise whose weights and rows are drawn together, for repriorised kernels."""

import numpy as np
import tensorflow as tf
from scipy import stats

from tests.support.builders import plain_spec
from tests.support.kernels.cases import advance
from tests.support.kernels.joint_models import X
from tfbnn import kernels
from tfbnn.engine.density.data import all_of
from tfbnn.engine.density.linear_map import as_tensors, scaling_map
from tfbnn.engine.density.value_and_gradient import Target
from tfbnn.engine.starts.check import draw_prior
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import LogNormal

__all__ = ["CASES", "JOINT", "joint_draws", "joint_p"]

NOISE = LogNormal(-0.5, 0.3)
JOINT = plain_spec([1, 2, 1], likelihood=Gaussian("learned", scale_prior=NOISE))
COUNT = 4000

_INNER = kernels.HMC(num_leapfrog_steps=3)
# Settings, and a step size at which they accept 60 to 85 %.
CASES = {
    "repriorised": (kernels.Repriorised(_INNER), 0.3),
    "regularised": (kernels.Repriorised(_INNER, regulariser=0.5), 0.27),
    "crank nicolson": (kernels.Repriorised(kernels.PCNL()), 0.33),
    "collapsed": (kernels.Repriorised(_INNER, collapse_readout=True), 0.3),
}


def joint_draws():
    """(theta [COUNT, P] from the prior, Data with rows [COUNT, 1, 6] drawn given each)."""
    generator = np.random.default_rng(8)
    theta = draw_prior(JOINT, 4, COUNT)
    y = _mean(theta) + np.exp(theta[:, 7:]) * generator.normal(size=(COUNT, len(X)))
    return theta, all_of(tf.constant(X[None]), tf.constant(y[:, None]), None)


def joint_p(name):
    """(p of the strongest evidence that transitions change the joint law, acceptance).

    p is corrected for the number of statistics, as in `invariance`.
    """
    settings, step = CASES[name]
    theta, data = joint_draws()
    potential = settings.potential(JOINT)
    start = potential.coordinates(theta, data)
    linear_map = as_tensors(scaling_map(1.0, start))
    target = Target(potential, data, linear_map, tf.zeros(COUNT, tf.float64), temperatures=(1.0,))
    acceptance, end = advance(settings, target, start, step_size=step)
    assert np.mean(np.all(start == end, axis=1)) < 0.1, "most chains have to move"
    normals = tf.constant(np.random.default_rng(6).normal(size=(COUNT, potential.num_normals)))
    theta = potential.complete(tf.constant(end), normals, data)[0].numpy()
    p = [stats.kstest(column, "norm").pvalue for column in theta[:, :7].T]
    p.append(stats.kstest(theta[:, 7], "norm", args=(NOISE.loc, NOISE.scale)).pvalue)
    # Together with the rows: residuals have to be what the noise scale says.
    residual = (data.y.numpy()[:, 0] - _mean(theta)) / np.exp(theta[:, 7:])
    p.append(stats.kstest((residual**2).sum(axis=1), "chi2", args=(len(X),)).pvalue)
    p += [stats.kstest(column, "norm").pvalue for column in residual.T]
    return min(1.0, len(p) * min(p)), acceptance


def _mean(theta):
    """The networks' outputs at the six inputs [COUNT, 6], by NumPy."""
    hidden = np.tanh(theta[:, :2, None] * X + theta[:, 2:4, None])
    return np.sum(theta[:, 4:6, None] * hidden, axis=1) + theta[:, 6:7]
