"""Leading-order cross section of pp -> chi10 chi10 at 13 TeV.

The partonic process is q qbar -> chi10 chi10 through a Z in the s channel and left and right
squarks of one common mass in the t and u channels, quarks massless, Yukawa couplings left out.

With a real mixing row N1j and a signed mass m all couplings are real:

    O_L = -1/2 N13^2 + 1/2 N14^2,            O_R = -O_L          Z chi chi, times g/cos(w)
    L_q = T3 - e sin^2(w),                   R_q = -e sin^2(w)   Z q q, times -g/cos(w)
    a_L = T3 N12 - tan(w) (T3 - e) N11,      a_R = tan(w) e N11  q squark chi, times sqrt(2) g

(T3 and e of the quark, w the weak mixing angle.) For each quark chirality h = L, R

    A_h(t) = L_q O_L (or R_q O_R) / (cos^2(w) (s - mZ^2)) + a_h^2 / (t - m_squark^2),

and, summed over the spins,

    sum |M_h|^2 = 4 g^4 { A_h(u)^2 (u - m^2)^2 + A_h(t)^2 (t - m^2)^2 - 2 A_h(t) A_h(u) m^2 s }.

The relative signs come from the exchange of fermions: a Fierz rearrangement turns a squark in
the t channel into the product of a quark and a neutralino current with the sign of the Z term,
and the Majorana neutralino gives the u channel the opposite sign with the roles of its two
chiralities swapped. The average over spins (1/4) and colours (1/3), the factor 1/2 for two
identical particles and the flux give

    dsigma/dt = 1/2 * 1/12 * 1/(16 pi s^2) * sum_h sum |M_h|^2.

The Z width is left out; every threshold 2 |m| lies above mZ.

The luminosity is a simple analytic one. The parton densities have the classic form
``x f(x) = A x^a (1 - x)^b`` at one fixed scale of a few hundred GeV. Valence normalisations follow
from the quark number sum rules. The other numbers were chosen by hand to resemble a proton at that
scale (and softened once, after a comparison with published next-to-leading order cross sections).
There is no scale evolution and no fit: it is good for demonstrations and tests, nothing more.

The luminosity of a quark flavour q at tau = shat / s is

    dL_q/dtau = 2 integral_tau^1 dx/x q(x) qbar(tau/x),

where the factor 2 counts that either proton may provide the quark.

References:
    H. E. Haber and G. L. Kane, Phys. Rept. 117 (1985) 75: couplings and conventions.
    S. Dawson, E. Eichten and C. Quigg, Phys. Rev. D 31 (1985) 1581: pair production.
    W. Beenakker et al., Phys. Rev. Lett. 83 (1999) 3780, hep-ph/9906298: the same with
    next-to-leading order corrections.
"""

import math
from dataclasses import dataclass

import numpy as np

from tfbnn.system.arrays import Array, row_slices

# Range of the luminosity table. Below: shat of (13 GeV)^2 at 13 TeV, under every threshold in
# use. Above: the luminosity has fallen by so many orders of magnitude that it is negligible.
TAU_MIN = 1.0e-6
TAU_MAX = 0.9

# Number of points of the luminosity table in ln(tau), with linear interpolation of ln(L) between
# them, and numbers of Gauss-Legendre nodes: for its convolution in ln(x), for the partonic energy
# and for the cosine of the scattering angle. Larger values change no cross section by 2e-5.
LUMINOSITY_POINTS = 2001
CONVOLUTION_NODES, TAU_NODES, ANGLE_NODES = 48, 32, 12

# Sea densities in units of the anti-up density; quark and antiquark sea are equal.
STRANGE_FRACTION = 0.7
CHARM_FRACTION = 0.5
BOTTOM_FRACTION = 0.35


# (T3, electric charge) of the two kinds of quark.
Quark = tuple[float, float]
UP_TYPE: Quark = (0.5, 2.0 / 3.0)
DOWN_TYPE = (-0.5, -1.0 / 3.0)


@dataclass(frozen=True)
class PartonDensity:
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


def beta_function(a: float, b: float) -> float:
    """Compute Euler's beta function B(a, b) for positive a and b."""
    return math.gamma(a) * math.gamma(b) / math.gamma(a + b)


def valence_density(number: int, rise: float, fall: float) -> PartonDensity:
    """Return the density of ``number`` valence quarks (the number sum rule fixes A)."""
    return PartonDensity(number / beta_function(rise, fall + 1.0), rise, fall)


UP_VALENCE = valence_density(2, 0.55, 4.0)
DOWN_VALENCE = valence_density(1, 0.55, 5.2)
SEA = PartonDensity(0.10, -0.36, 8.5)


def gauss_legendre(count: int, lower: float, upper: float) -> tuple[Array, Array]:
    """Compute Gauss-Legendre nodes and weights on [lower, upper], each of shape [count]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    half = 0.5 * (upper - lower)
    return lower + half * (nodes + 1.0), half * weights


def convolution(first: PartonDensity, second: PartonDensity, log_tau: Array) -> Array:
    """Compute the integral of ``first(x) second(tau/x) dln(x)`` over tau < x < 1.

    Args:
        first: Density of the parton with momentum fraction x.
        second: Density of the parton with momentum fraction tau/x.
        log_tau: ln(tau), shape [G].

    Returns:
        Array of shape [G].
    """
    fraction, weight = gauss_legendre(CONVOLUTION_NODES, 0.0, 1.0)
    log_x = fraction * log_tau[:, None]
    log_rest = log_tau[:, None] - log_x
    integrand = first(np.exp(log_x)) * second(np.exp(log_rest))
    return -log_tau * (integrand @ weight)


def luminosity_table() -> tuple[Array, dict[Quark, Array]]:
    """Tabulate the luminosities (pure numbers, no unit) between TAU_MIN and TAU_MAX.

    Returns:
        ln(tau), ascending, shape [G]; and for each kind of quark that a neutral current tells apart
        ln(tau dL/dtau), shape [G], summed over its flavours.
    """
    log_tau = np.linspace(math.log(TAU_MIN), math.log(TAU_MAX), LUMINOSITY_POINTS)
    sea_sea = convolution(SEA, SEA, log_tau)
    up_sea = convolution(UP_VALENCE, SEA, log_tau)
    down_sea = convolution(DOWN_VALENCE, SEA, log_tau)

    up_type = 2.0 * (up_sea + (1.0 + CHARM_FRACTION**2) * sea_sea)
    other_down = STRANGE_FRACTION**2 + BOTTOM_FRACTION**2
    down_type = 2.0 * (down_sea + (1.0 + other_down) * sea_sea)
    return log_tau, {UP_TYPE: np.log(up_type), DOWN_TYPE: np.log(down_type)}


BEAM_ENERGY_GEV = 13000.0
Z_MASS_GEV = 91.1876
SIN2_W = 0.2312
ALPHA = 1.0 / 127.9
SQUARK_MASS_GEV = 2770.0
FB_PER_INVERSE_GEV2 = 3.8938e11

COS2_W = 1.0 - SIN2_W
TAN_W = math.sqrt(SIN2_W / COS2_W)
WEAK_COUPLING2 = 4.0 * math.pi * ALPHA / SIN2_W

# Rows handled at once: bounds the memory without slowing anything down.
ROWS_PER_CHUNK = 512


def z_products(mixing: Array, quark: Quark) -> tuple[Array, Array]:
    """Return the products L_q O_L and R_q O_R, both divided by cos^2(w).

    Args:
        mixing: N11..N14, shape [..., 4].
        quark: (T3, electric charge).

    Returns:
        Two arrays of shape [...].
    """
    isospin, charge = quark
    neutralino = 0.5 * (mixing[..., 3] ** 2 - mixing[..., 2] ** 2)  # O_L of Z chi10 chi10
    left = (isospin - charge * SIN2_W) * neutralino / COS2_W
    right = (-charge * SIN2_W) * (-neutralino) / COS2_W
    return left, right


def squark_couplings(mixing: Array, quark: Quark) -> tuple[Array, Array]:
    """Return a_L and a_R, the quark-squark-neutralino couplings over sqrt(2) g.

    Args:
        mixing: N11..N14, shape [..., 4].
        quark: (T3, electric charge).

    Returns:
        Two arrays of shape [...].
    """
    isospin, charge = quark
    left = isospin * mixing[..., 1] - TAN_W * (isospin - charge) * mixing[..., 0]
    right = TAN_W * charge * mixing[..., 0]
    return left, right


def squared_amplitude(
    s: Array, t: Array, mass: Array, z_product: Array, squark_coupling: Array, *, squark_mass: float
) -> Array:
    """Compute the squared amplitude of one quark chirality, summed over spins.

    Args:
        s: Partonic energy squared, GeV^2.
        t: Momentum transfer squared between quark and first neutralino, GeV^2.
        mass: Neutralino mass, GeV. Its sign does not matter here.
        z_product: L_q O_L or R_q O_R over cos^2(w).
        squark_coupling: a_L or a_R.
        squark_mass: Squark mass, GeV.

    Returns:
        sum |M_h|^2 (no unit, no average, no colour factor), in the shape the arguments
        broadcast to.
    """
    mass2 = mass**2
    u = 2.0 * mass2 - s - t
    z_part = z_product / (s - Z_MASS_GEV**2)
    amplitude_t = z_part + squark_coupling**2 / (t - squark_mass**2)
    amplitude_u = z_part + squark_coupling**2 / (u - squark_mass**2)
    # Written as a square plus the positive remainder (t - m^2)(u - m^2) - m^2 s = s pT^2,
    # because near threshold the three terms of the module docstring cancel.
    difference = amplitude_t * (t - mass2) - amplitude_u * (u - mass2)
    transverse = (t - mass2) * (u - mass2) - mass2 * s
    bracket = difference**2 + 2.0 * amplitude_t * amplitude_u * transverse
    return 4.0 * WEAK_COUPLING2**2 * bracket


def partonic_cross_section(s: Array, mass: Array, mixing: Array, quark: Quark) -> Array:
    """Compute the cross section of q qbar -> chi10 chi10, summed over both chiralities.

    Args:
        s: Partonic energy squared, GeV^2, at or above the threshold; shape [...].
        mass: Neutralino mass, GeV; shape [...].
        mixing: N11..N14; shape [..., 4].
        quark: (T3, electric charge).

    Returns:
        Array of shape [...], GeV^-2.
    """
    cosine, weight = gauss_legendre(ANGLE_NODES, -1.0, 1.0)
    velocity = np.sqrt(np.maximum(1.0 - 4.0 * mass**2 / s, 0.0))
    s_wide, mass_wide = s[..., None], mass[..., None]
    t = mass_wide**2 - 0.5 * s_wide * (1.0 - velocity[..., None] * cosine)

    total: Array | float = 0.0
    couplings = zip(z_products(mixing, quark), squark_couplings(mixing, quark), strict=True)
    for z_product, squark_coupling in couplings:
        parts = z_product[..., None], squark_coupling[..., None]
        total = total + squared_amplitude(s_wide, t, mass_wide, *parts, squark_mass=SQUARK_MASS_GEV)
    # dt = s beta / 2 dcos.
    flux = 1.0 / (2.0 * 12.0 * 16.0 * np.pi * s**2)
    return flux * 0.5 * s * velocity * (total @ weight)


def pair_cross_section_fb(mass: Array, mixing: Array) -> Array:
    """Compute the cross section of pp -> chi10 chi10 at 13 TeV.

    Args:
        mass: Signed chi10 masses, GeV, shape [N], of 48 to 3000 GeV: lighter pairs reach the Z pole,
            whose width is left out.
        mixing: N11..N14, shape [N, 4].

    Returns:
        Array of shape [N], fb.
    """
    luminosity = luminosity_table()
    result = np.empty(mass.shape[0])
    for rows in row_slices(mass.shape[0], ROWS_PER_CHUNK):
        result[rows] = _chunk_cross_section_fb(mass[rows], mixing[rows], luminosity)
    return result


def _chunk_cross_section_fb(
    mass: Array, mixing: Array, luminosity: tuple[Array, dict[Quark, Array]]
) -> Array:
    """Integrate over tau for a few rows; arguments as in `pair_cross_section_fb`."""
    threshold = np.log(4.0 * mass**2 / BEAM_ENERGY_GEV**2)[:, None]
    length = math.log(TAU_MAX) - threshold
    # ln(tau) is quadratic in the node, so that the square root in the velocity becomes smooth.
    node, weight = gauss_legendre(TAU_NODES, 0.0, 1.0)
    log_tau = threshold + length * node**2
    s = np.exp(log_tau) * BEAM_ENERGY_GEV**2

    integrand: Array | float = 0.0
    grid, densities = luminosity
    for quark, log_density in densities.items():
        rows = s, mass[:, None], mixing[:, None, :]
        partonic = partonic_cross_section(*rows, quark)
        integrand = integrand + np.exp(np.interp(log_tau, grid, log_density)) * partonic
    return FB_PER_INVERSE_GEV2 * ((integrand * 2.0 * length * node) @ weight)
