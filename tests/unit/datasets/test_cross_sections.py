"""Inputs of gaugino pairs: conventions of a spectrum do not change them, and physics does."""

from itertools import product

import numpy as np
import pytest

from tfbnn.datasets.cross_sections import symmetries
from tfbnn.hep.inputs import check_inputs, features_among, input_values, places_of

NEUTRALINOS, CHARGINOS = (1000022, 1000023, 1000025, 1000035), (1000024, 1000037)
PAIRS = [
    *((first, second) for first, second in product(NEUTRALINOS, NEUTRALINOS) if first <= second),
    *((first, sign * second) for first, second, sign in product(NEUTRALINOS, CHARGINOS, (1, -1))),
    *((first, -second) for first, second in product(CHARGINOS, CHARGINOS)),
]


@pytest.fixture(scope="module")
def spectrum():
    """A dict place -> [6] of random points."""
    generator = np.random.default_rng(0)
    masses = {("MASS", code): generator.normal(size=6) * 300 for code in NEUTRALINOS}
    masses |= {("MASS", code): generator.uniform(100, 900, 6) for code in CHARGINOS}
    for block, size in (("NMIX", 4), ("UMIX", 2), ("VMIX", 2)):
        rows = np.linalg.qr(generator.normal(size=(6, size, size)))[0]
        for i, j in product(range(size), range(size)):
            masses[block, i + 1, j + 1] = rows[:, i, j]
    return masses


def features(pair, spectrum):
    inputs = check_inputs(symmetries(pair))
    parameters = {name: spectrum[place] for name, place in places_of(inputs.items()).items()}
    values = input_values(inputs, parameters)
    return np.stack([values[name] for name in features_among(inputs)])


def with_signs(spectrum, *rows):
    """The spectrum with rows of mixings in the other sign."""
    return {place: -value if place[:2] in rows else value for place, value in spectrum.items()}


@pytest.mark.parametrize("pair", PAIRS)
def test_signs_of_rows_change_nothing(pair, spectrum):
    assert len(PAIRS) == 30
    before = features(pair, spectrum)
    assert np.isfinite(before).all() and len(before) <= 9
    for row in (*(("NMIX", i) for i in (1, 2, 3, 4)),):
        np.testing.assert_allclose(features(pair, with_signs(spectrum, row)), before, atol=1e-14)
    for i in (1, 2):  # those of a chargino go together, as its mass is positive
        changed = with_signs(spectrum, ("UMIX", i), ("VMIX", i))
        np.testing.assert_allclose(features(pair, changed), before, atol=1e-14)


@pytest.mark.parametrize("pair", [(1000022, 1000022), (1000022, 1000025)])
def test_signs_of_all_masses_change_nothing_between_neutralinos(pair, spectrum):
    changed = {place: -value if place[0] == "MASS" else value for place, value in spectrum.items()}
    np.testing.assert_array_equal(features(pair, changed), features(pair, spectrum))


@pytest.mark.parametrize("pair", [(1000023, 1000024), (1000024, -1000037), (1000037, -1000037)])
@pytest.mark.parametrize("i", [1, 2])
def test_a_chargino_mass_may_have_either_sign(pair, i, spectrum):
    mass = ("MASS", CHARGINOS[i - 1])
    changed = with_signs(spectrum, ("UMIX", i)) | {mass: -spectrum[mass]}
    np.testing.assert_allclose(features(pair, changed), features(pair, spectrum), atol=1e-14)


def test_one_mass_of_two_changes_their_interference(spectrum):
    changed = spectrum | {("MASS", 1000022): -spectrum["MASS", 1000022]}
    before, after = features((1000022, 1000023), spectrum), features((1000022, 1000023), changed)
    assert (before != after).any()


def test_order_and_charge_change_nothing():
    assert symmetries((1000024, 1000022)) == symmetries((1000022, -1000024))
    assert symmetries([1000037, -1000024]) == symmetries([1000024, -1000037])


@pytest.mark.parametrize("pair", [(1000022,), (1000022, 1000021), (1000022,) * 3, (1000024,) * 2])
def test_other_particles_are_refused(pair):
    with pytest.raises(ValueError, match="pair must be two of"):
        symmetries(pair)
