"""Log densities whose means, variances and evidence are known: given one or two numbers, all of the
rest is normal or fixed, and those numbers are integrated over by quadrature.

All are pairs (log_prior, log_likelihood), both normalised, so that `PowerPosterior` takes them too.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from scipy import special, stats

LOG_2PI = float(np.log(2.0 * np.pi))
# Rubin 1981: estimated effects of coaching in eight schools, and their standard errors.
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS_SCALE = 5.0
# Of the parabola: x1, x2 ~ N(0, 2^2) and x2 - x1^2 / 2 was seen to be -1, with this error.
WIDTH, BEND, SEEN, PARABOLA_ERROR = 2.0, 0.5, -1.0, 0.5
LOGISTIC_SCALE = 3.0


@dataclasses.dataclass(frozen=True)
class Moments:
    """Known quantities of a posterior: mean [P], variance [P], and the log evidence."""

    mean: np.ndarray
    variance: np.ndarray
    log_evidence: float

    @classmethod
    def of_mixture(cls, log_weights, means, variances):
        """By nodes g with log weights [G], under which coordinates have moments [G, P]."""
        log_evidence = special.logsumexp(log_weights)
        weights = np.exp(log_weights - log_evidence)
        mean = weights @ means
        variance = weights @ (variances + (means - mean) ** 2)
        return cls(mean, variance, float(log_evidence))


@dataclasses.dataclass(frozen=True)
class Density:
    """A posterior [C, P] -> [C] in two parts, and the function that knows its moments.

    Attributes:
        names: What the coordinates are called, P of them.
    """

    names: tuple[str, ...]
    log_prior: Callable
    log_likelihood: Callable
    moments: Callable[[], Moments]


def log_normal(x, mean, scale):
    """Log density of TensorFlow values x [..., N] summed over N."""
    scale = tf.convert_to_tensor(scale, x.dtype)
    return tf.reduce_sum(-0.5 * ((x - mean) / scale) ** 2 - tf.math.log(scale) - 0.5 * LOG_2PI, -1)


def constant(values, like):
    return tf.constant(values, like.dtype)


# Eight schools, not centred: (mu, log tau, t), effects mu + tau t, mu ~ N(0, 5^2), tau ~ half Cauchy(5).


def schools_log_prior(x):
    scale = SCHOOLS_SCALE
    tau = tf.exp(x[:, 1])
    half_cauchy = np.log(2.0 / (np.pi * scale)) - tf.math.log1p((tau / scale) ** 2) + x[:, 1]
    return log_normal(x[:, :1], 0.0, scale) + half_cauchy + log_normal(x[:, 2:], 0.0, 1.0)


def schools_log_likelihood(x):
    effects = x[:, :1] + tf.exp(x[:, 1:2]) * x[:, 2:]
    return log_normal(constant(EFFECTS, x), effects, ERRORS)


def schools_moments():
    """Given tau, y_j ~ N(mu, s_j^2 + tau^2); given mu too, the t_j are normal."""
    log_tau = np.linspace(-18.0, 8.0, 5201)
    tau = np.exp(log_tau)[:, None]
    variance = ERRORS**2 + tau**2
    mu_variance = 1.0 / (SCHOOLS_SCALE**-2 + np.sum(1.0 / variance, axis=-1))
    mu = mu_variance * np.sum(EFFECTS / variance, axis=-1)
    # p(y | tau) = p(y | mu, tau) p(mu) / p(mu | y, tau), at the mean of the last.
    log_weights = (
        stats.norm.logpdf(EFFECTS, mu[:, None], np.sqrt(variance)).sum(axis=-1)
        + stats.norm.logpdf(mu, 0.0, SCHOOLS_SCALE)
        + 0.5 * (LOG_2PI + np.log(mu_variance))
        + stats.halfcauchy.logpdf(tau[:, 0], scale=SCHOOLS_SCALE)
        + log_tau
        + np.log(log_tau[1] - log_tau[0])
    )
    shares = tau / variance
    means = np.column_stack([mu, log_tau, shares * (EFFECTS - mu[:, None])])
    of_t = ERRORS**2 / variance + shares**2 * mu_variance[:, None]
    variances = np.column_stack([mu_variance, np.zeros_like(mu), of_t])
    return Moments.of_mixture(log_weights, means, variances)


# A line in four inputs that go together, and its noise: (w_1, ..., w_4, offset, log sigma), all N(0, 1).


def line_rows():
    """(design [N, 5], y [N])."""
    generator = np.random.default_rng(5)
    inputs = generator.normal(size=(25, 4)) + 1.5 * generator.normal(size=(25, 1))
    y = inputs @ np.array([0.8, -0.5, 0.3, 0.0]) + 0.4 + 0.5 * generator.normal(size=25)
    return np.column_stack([inputs, np.ones(25)]), y


def line_log_prior(x):
    return log_normal(x, 0.0, 1.0)


def line_log_likelihood(x):
    design, y = line_rows()
    predicted = tf.linalg.matmul(x[:, :-1], constant(design, x), transpose_b=True)
    return log_normal(constant(y, x), predicted, tf.exp(x[:, -1:]))


def line_moments():
    """Given sigma, the weights are normal, in the axes of the design."""
    design, y = line_rows()
    _, singular, axes = np.linalg.svd(design, full_matrices=False)
    log_sigma = np.linspace(-3.0, 3.0, 3001)
    precision = np.exp(-2.0 * log_sigma)[:, None]
    along = 1.0 / (1.0 + precision * singular**2)  # variances along the axes [G, 5]
    means = (precision * along * (axes @ (design.T @ y))) @ axes
    misfit = np.sum((y - means @ design.T) ** 2, axis=-1)
    log_weights = (
        -0.5 * (precision[:, 0] * misfit + np.sum(means**2, axis=-1) - np.log(along).sum(axis=-1))
        - len(y) * (log_sigma + 0.5 * LOG_2PI)
        + stats.norm.logpdf(log_sigma)
        + np.log(log_sigma[1] - log_sigma[0])
    )
    means = np.column_stack([means, log_sigma])
    variances = np.column_stack([along @ axes**2, np.zeros_like(log_sigma)])
    return Moments.of_mixture(log_weights, means, variances)


# A parabola: one observation of x2 - x1^2 / 2.


def parabola_log_prior(x):
    return log_normal(x, 0.0, WIDTH)


def parabola_log_likelihood(x):
    return log_normal(x[:, 1:] - BEND * x[:, :1] ** 2, SEEN, PARABOLA_ERROR)


def parabola_moments():
    """Given x1, x2 is normal."""
    x1 = np.linspace(-16.0, 16.0, 6401)
    valley = SEEN + BEND * x1**2
    share = WIDTH**2 / (WIDTH**2 + PARABOLA_ERROR**2)
    log_weights = (
        stats.norm.logpdf(x1, 0.0, WIDTH)
        + stats.norm.logpdf(valley, 0.0, np.hypot(WIDTH, PARABOLA_ERROR))
        + np.log(x1[1] - x1[0])
    )
    means = np.column_stack([x1, share * valley])
    variances = np.column_stack([np.zeros_like(x1), np.full_like(x1, share * PARABOLA_ERROR**2)])
    return Moments.of_mixture(log_weights, means, variances)


# Logistic regression: slope and offset ~ N(0, 3^2), rows that a threshold nearly separates.


def logistic_rows():
    """(inputs [N], labels [N])."""
    inputs = np.array([-2.1, -1.6, -1.2, -0.9, -0.6, -0.2, 0.1, 0.3, 0.8, 1.1, 1.5, 2.2])
    return inputs, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0])


def logistic_log_prior(x):
    return log_normal(x, 0.0, LOGISTIC_SCALE)


def logistic_log_likelihood(x):
    inputs, labels = logistic_rows()
    logits = x[:, :1] * constant(inputs, x) + x[:, 1:]
    return -tf.reduce_sum(tf.math.softplus(constant(1.0 - 2.0 * labels, x) * logits), axis=-1)


def logistic_moments():
    """On a grid over both."""
    inputs, labels = logistic_rows()
    slope, offset = np.linspace(-8.0, 28.0, 901), np.linspace(-18.0, 18.0, 901)
    points = np.stack(np.meshgrid(slope, offset, indexing="ij"), axis=-1).reshape(-1, 2)
    log_weights = stats.norm.logpdf(points, 0.0, LOGISTIC_SCALE).sum(axis=-1)
    for here, label in zip(inputs, labels, strict=True):
        log_weights -= np.logaddexp(0.0, (1.0 - 2.0 * label) * (points @ [here, 1.0]))
    log_weights += np.log((slope[1] - slope[0]) * (offset[1] - offset[0]))
    return Moments.of_mixture(log_weights, points, np.zeros_like(points))


DENSITIES = {
    "eight schools": Density(
        ("mu", "log tau", *(f"t{school}" for school in range(1, 9))),
        schools_log_prior,
        schools_log_likelihood,
        schools_moments,
    ),
    "line, noise learned": Density(
        ("w1", "w2", "w3", "w4", "offset", "log sigma"),
        line_log_prior,
        line_log_likelihood,
        line_moments,
    ),
    "parabola": Density(
        ("x1", "x2"), parabola_log_prior, parabola_log_likelihood, parabola_moments
    ),
    "logistic regression": Density(
        ("slope", "offset"), logistic_log_prior, logistic_log_likelihood, logistic_moments
    ),
}
