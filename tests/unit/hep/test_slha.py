"""Points of SLHA text: what is there twice, is no plain number or called invalid is refused."""

import numpy as np
import pytest

from tests.support.cross_sections import SPECTRUM
from tfbnn.exceptions import DataWarning
from tfbnn.hep.slha import read_places


def with_n11(text):
    """The spectrum with another entry NMIX 1 1."""
    return SPECTRUM.replace("1.75E+00", text)


@pytest.mark.parametrize(
    "text, message",
    [
        (SPECTRUM.replace("  1  1 ", "  1  3 "), r"no entry NMIX 1 1 \(n11\)\. Add it"),
        ("", r"no entry MASS 1000022 \(m\), NMIX 1 1 \(n11\), MASS 1000024 \(m_c\)"),
        (with_n11("nan"), "SLHA entry NMIX 1 1 .n11. must be a finite number"),
        (with_n11("1_7"), r"NMIX 1 1 .n11. .* finite number, received '1_7'"),
        (with_n11("１.５"), "received '１.５'"),
        (SPECTRUM.replace("1  2     0.2", "1  1  0.9"), "2 entries NMIX 1 1 .n11.: 1.75E.* 0.9 at"),
        (
            SPECTRUM + "Block NMIX Q= 2.0E+03\n  1  1  0.9\n",
            r"2 entries NMIX 1 1 \(n11\): 1.75E\+00 at Q = 1.0E\+03, 0.9 at Q = 2.0E\+03. Keep",
        ),
        (SPECTRUM + "BLOCK MASS\n 1000022 3\n", "2 entries MASS 1000022 .m.: -2.5, 3. Keep"),
        ("Block MASS\n 1000022 1.2\n oops", "not SLHA: line 3, in block MASS, .* 'oops'. Put a #"),
        (SPECTRUM.replace("4   #", "-" * 10**5 + "4 #"), "finite number, received '-{80}'. Was"),
        (with_n11("1.75 0.5"), "finite number, received '1.75 0.5'"),
        (with_n11("********"), "finite number, received '[*]{8}'"),
        (with_n11("1.0D+999"), "finite number, received '1.0e.999'"),
        (with_n11(""), r"NMIX 1 1 \(n11\) must be a finite number, received ''"),
        (SPECTRUM.replace("1  1  ", "1  1  1"), r"no entry NMIX 1 1 \(n11\)"),
        (SPECTRUM + "Block SPINFO\n 4 no vacuum\n", "this point invalid .SPINFO 4.: no vacuum"),
        ("block spinfo\n4 # M_H1^2<1\n" + SPECTRUM, "invalid .SPINFO 4.: M_H1.2<1. Leave it out"),
    ],
)
def test_slha_that_lacks_something_changes_nothing(predictor, text, message):
    with pytest.raises(ValueError, match=message):
        predictor.import_slha_string(text)
    assert predictor.parameters == {}


def test_what_is_twice_where_nobody_looks_does_no_harm(predictor):
    predictor.import_slha_string(SPECTRUM)
    before = dict(predictor.parameters)
    predictor.import_slha_string(SPECTRUM + "Block GAUGE Q= 1\n 1 0.3\nBlock GAUGE Q= 2\n 1 0.4\n")
    assert predictor.parameters == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  1  1     1.75E+00", "1 1 1.75E+00"),
        ("   1000022    -2.5   #", "1000022 -2.5"),
        ("4   # ~chi_1+", "4 ~chi_1+ without a #"),
        ("Block NMIX Q= 1.0E+03", "   BLOCK nmix Q=1.D3 # indented"),
        ("\n# A comment\nBLOCK MODSEL\n     1   0\n", "\ufeff"),
        ("1.75E+00", "1.75D+00"),
        ("1.75E+00", "175d-2"),
        ("1.75E+00", "175000-005"),
        ("BLOCK MODSEL", "Block SPINFO\n 1 by nobody\n 2 4.1.0\nBLOCK MODSEL\n what is this"),
        ("DECAY   1000022     0.0", "DECAY 1000023 Auto\n 1.0 2 1000022 23"),
        ("DECAY   1000022     0.0", "DECAY 1000023 ****\n 1.0-102 2 24 5 1000022\n0.5 two"),
        ("DECAY   1000022     0.0", " DECAY 1000022 0\n 1000022 5.0 # no mass, 1 1 0.3"),
        ("DECAY   1000022     0.0", "XSECTION 13000 2212 2212 2 1 2\n 1 1 0.3\n</slha>"),
    ],
)
def test_spectra_are_read_as_programs_write_them(predictor, old, new):
    assert old in SPECTRUM
    found = predictor.read_slha_string(SPECTRUM.replace(old, new))
    assert found == {"m": -2.5, "n11": 1.75, "m_c": 4.0}


def test_warnings_of_the_spectrum_program_are_passed_on():
    """NMSSMTools writes such warnings behind a #."""
    text = "BLOCK SPINFO\n 1 NMSSMTools\n 3   # Relic density too large\nBlock MASS\n 1 2.0\n"
    with pytest.warns(DataWarning, match="SPINFO 3.: Relic density too large"):
        assert read_places(text, {"m": ("MASS", 1)}) == {"m": 2.0}


def mutant(text, generator):
    """The text with up to three characters or lines changed, taken out or repeated."""
    for _ in range(generator.integers(1, 4)):
        parts = list(text) if generator.uniform() < 0.7 else text.splitlines(keepends=True)
        index, change = generator.integers(len(parts)), generator.integers(4)
        other = str(generator.choice(list("\n #_.x0٣1Qb")))
        parts[index : index + 1] = [[], [parts[index]] * 2, [other], [parts[index], other]][change]
        text = "".join(parts)
    return text


def test_mutants_of_a_spectrum_are_read_or_refused(predictor):
    generator, read = np.random.default_rng(0), 0
    for _ in range(400):
        predictor.parameters.clear()
        try:
            predictor.import_slha_string(mutant(SPECTRUM, generator))
        except ValueError:
            assert predictor.parameters == {}
        else:
            read += 1
            assert all(np.isfinite(value) for value in predictor.parameters.values())
    assert 50 < read < 350


def test_slha_is_text(predictor):
    with pytest.raises(TypeError, match="must be a str, received bytes"):
        predictor.import_slha_string(SPECTRUM.encode())
