"""The physics of the generated neutralino set.

The squared amplitude is checked against a calculation that shares nothing with it: explicit
Dirac matrices and spinors, Feynman rules written down from the Lagrangian, and the signs of
the exchanged fermions counted as permutations.
"""

from itertools import permutations, product

import numpy as np
import pytest

from tfbnn.datasets import _pair_production as pair
from tfbnn.datasets import neutralino, neutralino_pairs

QUARKS = {"up": pair.UP_TYPE, "down": pair.DOWN_TYPE}

# ----------------------------------------------------------------------------------------
# Explicit Dirac algebra, chiral representation, metric (+, -, -, -).
# ----------------------------------------------------------------------------------------

PAULI = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])
SIGMA = np.concatenate([np.eye(2)[None], PAULI])
SIGMA_BAR = np.concatenate([np.eye(2)[None], -PAULI])
METRIC = np.array([1.0, -1.0, -1.0, -1.0])


def dirac_matrices():
    gamma = np.zeros((4, 4, 4), dtype=complex)
    gamma[:, :2, 2:] = SIGMA
    gamma[:, 2:, :2] = SIGMA_BAR
    return gamma


GAMMA = dirac_matrices()
GAMMA5 = np.diag([-1.0, -1.0, 1.0, 1.0])
LEFT = 0.5 * (np.eye(4) - GAMMA5)
RIGHT = 0.5 * (np.eye(4) + GAMMA5)
CONJUGATION = 1j * GAMMA[2] @ GAMMA[0]


def slash(momentum):
    return np.einsum("m,mij->ij", METRIC * momentum, GAMMA)


def bar(spinor):
    return spinor.conj() @ GAMMA[0]


def matrix_root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.conj().T


def u_spinors(momentum, mass):
    """Both spinors u with sum u ubar = slash(p) + mass, for a mass of either sign."""
    lower = METRIC * momentum
    upper_half = matrix_root(np.einsum("m,mij->ij", lower, SIGMA))
    lower_half = matrix_root(np.einsum("m,mij->ij", lower, SIGMA_BAR))
    spinors = [np.concatenate([upper_half @ e, lower_half @ e]) for e in np.eye(2)]
    return [GAMMA5 @ u for u in spinors] if mass < 0 else spinors


def v_spinors(momentum, mass):
    """v = C ubar^T for the same spins: the Majorana condition fixes the relative phase."""
    return [CONJUGATION @ bar(u) for u in u_spinors(momentum, mass)]


def permutation_sign(order, reference):
    positions = [reference.index(name) for name in order]
    swaps = sum(a > b for i, a in enumerate(positions) for b in positions[i + 1 :])
    return -1.0 if swaps % 2 else 1.0


def collision(energy, mass, cosine, azimuth=0.7):
    """Momenta (p1, p2, k1, k2) of massless p1, p2 along z into two particles of ``mass``."""
    momentum = np.sqrt(energy**2 - mass**2)
    sine = np.sqrt(1.0 - cosine**2)
    direction = np.array([sine * np.cos(azimuth), sine * np.sin(azimuth), cosine])
    p1 = energy * np.array([1.0, 0.0, 0.0, 1.0])
    p2 = energy * np.array([1.0, 0.0, 0.0, -1.0])
    k1 = np.concatenate([[energy], momentum * direction])
    k2 = np.concatenate([[energy], -momentum * direction])
    return p1, p2, k1, k2


def square(momentum):
    return float(np.sum(METRIC * momentum**2))


def dirac_squared_amplitude(momenta, mass, mixing, quark, squark_mass):
    """Sum over all spins of |M|^2 from Feynman diagrams, both quark chiralities.

    Lagrangian (HC: plus hermitian conjugate), chi a Majorana field:
        -(g/cw) Z_m qbar g^m (Lq PL + Rq PR) q
        +(g/2cw) Z_m chibar g^m (O PL - O PR) chi
        -sqrt2 g aL sqL* chibar PL q + sqrt2 g aR sqR* chibar PR q + HC.
    """
    p1, p2, k1, k2 = momenta
    isospin, charge = quark
    g = np.sqrt(4 * np.pi * pair.ALPHA / pair.SIN2_W)
    cos_w = np.sqrt(1 - pair.SIN2_W)
    tan_w = np.sqrt(pair.SIN2_W) / cos_w
    n1, n2, n3, n4 = mixing
    o_left = -0.5 * n3**2 + 0.5 * n4**2
    z_quark = (isospin - charge * pair.SIN2_W) * LEFT - charge * pair.SIN2_W * RIGHT
    # The Majorana field enters twice: its vertex is twice the coefficient g / 2cw.
    z_neutralino = o_left * LEFT - o_left * RIGHT
    a_left = isospin * n2 + tan_w * (charge - isospin) * n1
    a_right = tan_w * charge * n1
    yukawas = [
        (-np.sqrt(2) * g * a_left * LEFT, -np.sqrt(2) * g * a_left * RIGHT),
        (np.sqrt(2) * g * a_right * RIGHT, np.sqrt(2) * g * a_right * LEFT),
    ]
    reference = ("k1", "k2", "p2", "p1")
    sign_s = permutation_sign(("k1", "k2", "p2", "p1"), reference)
    sign_t = permutation_sign(("k1", "p1", "p2", "k2"), reference)
    sign_u = permutation_sign(("k2", "p1", "p2", "k1"), reference)
    s, t, u = square(p1 + p2), square(p1 - k1), square(p1 - k2)

    total = 0.0
    spins = product(range(2), repeat=4)
    u1, v2 = u_spinors(p1, 0.0), v_spinors(p2, 0.0)
    uk1, vk1 = u_spinors(k1, mass), v_spinors(k1, mass)
    uk2, vk2 = u_spinors(k2, mass), v_spinors(k2, mass)
    for a, b, c, d in spins:
        # Every diagram is i M = (vertex i L)(propagator)(vertex i L).
        quark_current = [bar(v2[b]) @ gm @ z_quark @ u1[a] for gm in GAMMA]
        neutralino_current = [bar(uk1[c]) @ gm @ z_neutralino @ vk2[d] for gm in GAMMA]
        contracted = np.sum(METRIC * np.array(quark_current) * np.array(neutralino_current))
        z_vertices = (-1j * g / cos_w) * (1j * g / cos_w)
        im = sign_s * z_vertices * (-1j) / (s - pair.Z_MASS_GEV**2) * contracted
        for vertex, conjugate in yukawas:
            t_chain = (bar(uk1[c]) @ vertex @ u1[a]) * (bar(v2[b]) @ conjugate @ vk2[d])
            u_chain = (bar(uk2[d]) @ vertex @ u1[a]) * (bar(v2[b]) @ conjugate @ vk1[c])
            im += sign_t * (1j * 1j) * 1j / (t - squark_mass**2) * t_chain
            im += sign_u * (1j * 1j) * 1j / (u - squark_mass**2) * u_chain
        total += abs(im) ** 2
    return total


def closed_form(s, t, mass, mixing, quark, squark_mass):
    mixing = np.asarray(mixing)
    couplings = zip(
        pair.z_products(mixing, quark), pair.squark_couplings(mixing, quark), strict=True
    )
    return sum(
        pair.squared_amplitude(s, t, mass, z, a, squark_mass=squark_mass) for z, a in couplings
    )


MIXINGS = {
    "bino": (1.0, 0.0, 0.0, 0.0),
    "wino": (0.0, 1.0, 0.0, 0.0),
    "one higgsino": (0.0, 0.0, 1.0, 0.0),
    "all, first kind": (0.5, -0.4, 0.7, np.sqrt(0.1)),
    "all, second kind": (0.3, 0.6, -0.2, -np.sqrt(0.51)),
}


def test_spinors_and_matrices_are_what_they_should_be():
    for m, n in product(range(4), repeat=2):
        anticommutator = GAMMA[m] @ GAMMA[n] + GAMMA[n] @ GAMMA[m]
        np.testing.assert_allclose(anticommutator, 2 * np.diag(METRIC)[m, n] * np.eye(4))
    for gm in GAMMA:
        np.testing.assert_allclose(CONJUGATION @ gm.T @ np.linalg.inv(CONJUGATION), -gm)
    for mass in (-120.0, 120.0):
        momentum = collision(200.0, mass, 0.3)[2]
        u_sum = sum(np.outer(u, bar(u)) for u in u_spinors(momentum, mass))
        v_sum = sum(np.outer(v, bar(v)) for v in v_spinors(momentum, mass))
        np.testing.assert_allclose(u_sum, slash(momentum) + mass * np.eye(4), atol=1e-9)
        np.testing.assert_allclose(v_sum, slash(momentum) - mass * np.eye(4), atol=1e-9)
    signs = [permutation_sign(p, (0, 1, 2)) for p in permutations(range(3))]
    assert signs == [1, -1, -1, 1, 1, -1]


@pytest.mark.parametrize("quark", QUARKS.values(), ids=QUARKS)
@pytest.mark.parametrize("mixing", MIXINGS.values(), ids=MIXINGS)
def test_squared_amplitude_agrees_with_explicit_spinors(mixing, quark):
    # A light squark makes the s, t and u channels comparable, so that every sign matters.
    for mass, energy, cosine, squark_mass in (
        (100.0, 180.0, 0.35, 150.0),
        (-100.0, 180.0, -0.80, 150.0),
        (-250.0, 255.0, 0.60, 400.0),
        (60.0, 900.0, -0.10, 2770.0),
    ):
        momenta = collision(energy, mass, cosine)
        s, t = square(momenta[0] + momenta[1]), square(momenta[0] - momenta[2])
        expected = dirac_squared_amplitude(momenta, mass, mixing, quark, squark_mass)
        computed = closed_form(s, t, mass, mixing, quark, squark_mass)
        np.testing.assert_allclose(computed, expected, rtol=1e-9)


# ----------------------------------------------------------------------------------------
# Limits and symmetries of the cross section.
# ----------------------------------------------------------------------------------------


def test_cross_section_does_not_depend_on_the_sign_of_the_row_or_of_the_mass():
    x = neutralino_pairs(50, seed=1).x
    mass, mixing = x[:, 0], x[:, 1:]
    reference = pair.pair_cross_section_fb(mass, mixing)
    np.testing.assert_array_equal(pair.pair_cross_section_fb(mass, -mixing), reference)
    np.testing.assert_array_equal(pair.pair_cross_section_fb(-mass, mixing), reference)


def test_z_exchange_alone_has_the_known_integral():
    # sigma = g^4 / (96 pi) * 2/3 * s beta^3 / (s - mZ^2)^2 * sum of squared couplings.
    mass, s = np.array(150.0), np.array([9.001e4, 1.2e5, 1e6])
    mixing = np.array([0.0, 0.0, 0.8, 0.6])
    velocity = np.sqrt(1 - 4 * mass**2 / s)
    left, right = pair.z_products(mixing, pair.DOWN_TYPE)
    strength = pair.WEAK_COUPLING2**2 / (96 * np.pi) * (left**2 + right**2)
    expected = strength * 2 / 3 * s * velocity**3 / (s - pair.Z_MASS_GEV**2) ** 2
    points = s, np.full(3, mass), np.tile(mixing, (3, 1))
    computed = pair.partonic_cross_section(*points, pair.DOWN_TYPE)
    np.testing.assert_allclose(computed, expected, rtol=1e-12)


# ----------------------------------------------------------------------------------------
# Luminosity and quadratures.
# ----------------------------------------------------------------------------------------


def moment(density, order):
    """The integral of x^order f(x) over 0 < x < 1; the first is the momentum."""
    return density.norm * pair.beta_function(density.rise + order, density.fall + 1.0)


def test_sum_rules_of_the_parton_densities():
    assert moment(pair.UP_VALENCE, 0) == pytest.approx(2.0)
    assert moment(pair.DOWN_VALENCE, 0) == pytest.approx(1.0)
    flavours = 2.0 + pair.STRANGE_FRACTION + pair.CHARM_FRACTION + pair.BOTTOM_FRACTION
    quarks = moment(pair.UP_VALENCE, 1) + moment(pair.DOWN_VALENCE, 1)
    quarks += 2.0 * flavours * moment(pair.SEA, 1)
    assert 0.4 < quarks < 0.6  # the rest of the momentum is the gluon's


def test_convolution_has_the_product_of_the_moments():
    # The integral of tau^2 dL/dtau over all tau is the product of the second moments.
    log_tau = np.linspace(np.log(1e-9), 0.0, 4001)
    for first, second in ((pair.UP_VALENCE, pair.SEA), (pair.SEA, pair.SEA)):
        weighted = pair.convolution(first, second, log_tau) * np.exp(2.0 * log_tau)
        # Both ends vanish, so the trapezoidal rule is a plain sum.
        found = np.sum(weighted) * (log_tau[1] - log_tau[0])
        assert found == pytest.approx(moment(first, 2) * moment(second, 2), rel=1e-4)


def test_luminosity_table_between_its_points():
    grid, densities = pair.luminosity_table()
    log_tau = np.linspace(np.log(1e-5), np.log(0.2), 777)
    up_sea = pair.convolution(pair.UP_VALENCE, pair.SEA, log_tau)
    sea_sea = pair.convolution(pair.SEA, pair.SEA, log_tau)
    expected = 2.0 * up_sea + 2.0 * (1.0 + pair.CHARM_FRACTION**2) * sea_sea
    found = np.exp(np.interp(log_tau, grid, densities[pair.UP_TYPE]))
    np.testing.assert_allclose(found, expected, rtol=5e-5)


def test_quadratures_have_converged(monkeypatch):
    data = neutralino_pairs(200, seed=5)
    mass, mixing = data.x[:, 0], data.x[:, 1:]
    for name, number in (
        ("TAU_NODES", 64),
        ("ANGLE_NODES", 24),
        ("CONVOLUTION_NODES", 96),
        ("LUMINOSITY_POINTS", 4001),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(pair, name, number)
            finer = pair.pair_cross_section_fb(mass, mixing)
        np.testing.assert_allclose(data.y, finer, rtol=2e-5)


# ----------------------------------------------------------------------------------------
# Mass matrix and the data set.
# ----------------------------------------------------------------------------------------


def test_diagonalisation_with_signed_masses():
    parameters = neutralino.sample_parameters(300, np.random.default_rng(3))
    matrix = neutralino.mass_matrix(*parameters)
    masses, rotation = neutralino.diagonalise(matrix)
    transposed = np.swapaxes(rotation, -1, -2)
    diagonal = rotation @ matrix @ transposed
    np.testing.assert_allclose(diagonal, masses[:, :, None] * np.eye(4), atol=1e-9)
    np.testing.assert_allclose(rotation @ transposed, np.tile(np.eye(4), (300, 1, 1)), atol=1e-12)
    assert np.all(np.diff(np.abs(masses), axis=1) >= 0.0)
    largest = np.take_along_axis(rotation, np.abs(rotation).argmax(-1)[..., None], axis=-1)
    assert np.all(largest > 0.0)
    assert np.any(masses[:, 0] < 0.0) and np.any(masses[:, 0] > 0.0)


def test_mass_matrix_has_its_known_entries_and_limits():
    matrix = neutralino.mass_matrix(*np.array([[100.0], [200.0], [300.0], [1.0]]))[0]
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.trace(matrix) == pytest.approx(300.0)
    # At tan(beta) = 1 the state (higgsino 1 + higgsino 2) / sqrt(2) does not mix: mass -mu.
    state = np.array([0.0, 0.0, 1.0, 1.0]) / np.sqrt(2)
    np.testing.assert_allclose(matrix @ state, -300.0 * state, atol=1e-12)
    # The Z mass is in the entries that link gauginos and higgsinos.
    assert np.sum(matrix[:2, 2:] ** 2) == pytest.approx(pair.Z_MASS_GEV**2)
    # Bino and higgsino 1 mix with a minus sign, wino and higgsino 1 with a plus sign.
    assert matrix[0, 2] < 0.0 < matrix[0, 3] and matrix[1, 3] < 0.0 < matrix[1, 2]
