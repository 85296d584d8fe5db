"""A simple analytic parton luminosity for proton-proton collisions.

The parton densities are of the classic form ``x f(x) = A x^a (1 - x)^b`` at one fixed scale
of a few hundred GeV. Valence normalisations follow from the quark number sum rules, the other
numbers were chosen by hand to look like a proton at that scale (and softened once, after
a comparison with published next-to-leading order cross sections). There is no scale evolution
and no fit: good for demonstrations and tests, nothing more.

The luminosity of a quark flavour q at tau = shat / s is

    dL_q/dtau = 2 integral_tau^1 dx/x q(x) qbar(tau/x),

where the factor 2 counts that either proton may provide the quark.
"""

import math
from dataclasses import dataclass

import numpy as np

from tfbnn.system.arrays import Array

# Range of the luminosity table. Below: shat of (13 GeV)^2 at 13 TeV, under every threshold in
# use. Above: the luminosity has fallen by so many orders of magnitude that nothing is left.
TAU_MIN = 1.0e-6
TAU_MAX = 0.9

# Sea densities in units of the anti-up density; quark and antiquark sea are equal.
STRANGE_FRACTION = 0.7
CHARM_FRACTION = 0.5
BOTTOM_FRACTION = 0.35


@dataclass(frozen=True)
class Density:
    """One parton density, ``x f(x) = norm * x^rise * (1 - x)^fall``.

    Attributes:
        norm: Normalisation A.
        rise: Power of x.
        fall: Power of 1 - x.
    """

    norm: float
    rise: float
    fall: float

    def __call__(self, x: Array) -> Array:
        """Return x f(x), in the shape of ``x`` (0 < x <= 1)."""
        return self.norm * x**self.rise * (1.0 - x) ** self.fall

    def moment(self, order: float) -> float:
        """Return the integral of ``x^order f(x)`` over 0 < x < 1 (1 is the momentum)."""
        return self.norm * beta_function(self.rise + order, self.fall + 1.0)


def beta_function(a: float, b: float) -> float:
    """Euler's beta function B(a, b) for positive a and b."""
    return math.gamma(a) * math.gamma(b) / math.gamma(a + b)


def valence_density(number: int, rise: float, fall: float) -> Density:
    """Return the density of ``number`` valence quarks (the number sum rule fixes A)."""
    return Density(number / beta_function(rise, fall + 1.0), rise, fall)


UP_VALENCE = valence_density(2, 0.55, 4.0)
DOWN_VALENCE = valence_density(1, 0.55, 5.2)
SEA = Density(0.10, -0.36, 8.5)


@dataclass(frozen=True)
class LuminosityTable:
    """tau dL/dtau on a grid, for the two kinds of quark a neutral current can tell apart.

    Attributes:
        log_tau: ln(tau), ascending, shape [G].
        log_up: ln(tau dL/dtau) summed over u and c, shape [G].
        log_down: ln(tau dL/dtau) summed over d, s and b, shape [G].
    """

    log_tau: Array
    log_up: Array
    log_down: Array

    def up_type(self, log_tau: Array) -> Array:
        """Return tau dL/dtau of u + c at ``log_tau`` (any shape)."""
        return np.exp(np.interp(log_tau, self.log_tau, self.log_up))

    def down_type(self, log_tau: Array) -> Array:
        """Return tau dL/dtau of d + s + b at ``log_tau`` (any shape)."""
        return np.exp(np.interp(log_tau, self.log_tau, self.log_down))


def gauss_legendre(count: int, lower: float, upper: float) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [lower, upper], each of shape [count]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    half = 0.5 * (upper - lower)
    return lower + half * (nodes + 1.0), half * weights


def convolution(first: Density, second: Density, log_tau: Array, *, nodes: int = 48) -> Array:
    """Return the integral of ``first(x) second(tau/x) dln(x)`` over tau < x < 1.

    Args:
        first: Density of the parton with momentum fraction x.
        second: Density of the parton with momentum fraction tau/x.
        log_tau: ln(tau), shape [G].
        nodes: Number of Gauss-Legendre nodes in ln(x).

    Returns:
        Array of shape [G].
    """
    fraction, weight = gauss_legendre(nodes, 0.0, 1.0)
    log_x = fraction * log_tau[:, None]
    log_rest = log_tau[:, None] - log_x
    integrand = first(np.exp(log_x)) * second(np.exp(log_rest))
    integral: Array = -log_tau * (integrand @ weight)
    return integral


def luminosity_table(*, grid: int = 2001, nodes: int = 48) -> LuminosityTable:
    """Tabulate the luminosities between TAU_MIN and TAU_MAX.

    Args:
        grid: Number of points in ln(tau). Between them ln(L) is taken as linear in ln(tau).
        nodes: Number of Gauss-Legendre nodes of the convolution.

    Returns:
        A LuminosityTable (pure numbers, no unit).
    """
    log_tau = np.linspace(math.log(TAU_MIN), math.log(TAU_MAX), grid)
    sea_sea = convolution(SEA, SEA, log_tau, nodes=nodes)
    up_sea = convolution(UP_VALENCE, SEA, log_tau, nodes=nodes)
    down_sea = convolution(DOWN_VALENCE, SEA, log_tau, nodes=nodes)

    up_type = 2.0 * (up_sea + (1.0 + CHARM_FRACTION**2) * sea_sea)
    other_down = STRANGE_FRACTION**2 + BOTTOM_FRACTION**2
    down_type = 2.0 * (down_sea + (1.0 + other_down) * sea_sea)
    return LuminosityTable(log_tau, np.log(up_type), np.log(down_type))
