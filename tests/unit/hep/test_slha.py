"""Points of SLHA text: what is there twice, is no plain number or no SLHA is refused."""

import sys

import numpy as np
import pytest

from tests.support.cross_sections import SPECTRUM


@pytest.mark.parametrize(
    "text, message",
    [
        (SPECTRUM.replace("  1  1 ", "  1  3 "), r"no entry NMIX 1 1 \(n11\)\. Add it"),
        ("", r"no entry MASS 1000022 \(m\), NMIX 1 1 \(n11\), MASS 1000024 \(m_c\)"),
        (SPECTRUM.replace("1.75E+00", "nan"), "SLHA entry NMIX 1 1 .n11. must be a finite number"),
        (SPECTRUM.replace("1.75E+00", "large"), "received 'large'"),
        (SPECTRUM.replace("1.75E+00", "1_7"), r"NMIX 1 1 .n11. .* finite number, received '1_7'"),
        (SPECTRUM.replace("1.75E+00", "0x10"), "received '0x10'"),
        (SPECTRUM.replace("1.75E+00", "１.５"), "received '１.５'"),
        (
            SPECTRUM.replace("  1  2     0.2", "  1  1  0.9"),
            "2 entries NMIX 1 1 .n11.: 1.75E.* 0.9 at",
        ),
        (
            SPECTRUM + "Block NMIX Q= 2.0E+03\n  1  1  0.9\n",
            r"2 entries NMIX 1 1 \(n11\): 1.75E\+00 at Q = 1.0E\+03, 0.9 at Q = 2.0E\+03. Keep",
        ),
        (SPECTRUM + "BLOCK MASS\n 1000022 3\n", "2 entries MASS 1000022 .m.: -2.5, 3. Keep"),
        ("Block MASS\n 1000022 1.2\n oops", "is not SLHA: AccessError"),
        (SPECTRUM.replace("4   #", "-" * 10**5 + "4 #"), "is not SLHA"),
        (SPECTRUM.replace("DECAY   1000022     0.0", "DECAY 1 0.0\n 0.5 two 1"), "is not SLHA"),
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


def mutant(text, generator):
    """The text with up to three characters or lines changed, taken out or repeated."""
    for _ in range(generator.integers(1, 4)):
        parts = list(text) if generator.uniform() < 0.7 else text.splitlines(keepends=True)
        place, change = generator.integers(len(parts)), generator.integers(4)
        other = str(generator.choice(list("\n #_.x0٣1Qb")))
        parts[place : place + 1] = [[], [parts[place]] * 2, [other], [parts[place], other]][change]
        text = "".join(parts)
    return text


def test_mutants_of_a_spectrum_are_read_or_refused(predictor, capsys):
    """56 of 400 were neither, but ended with an error of pyslha's own."""
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


def test_without_pyslha_the_message_names_the_extra(predictor, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyslha", None)
    with pytest.raises(ImportError, match=r"tfbnn\[hep\]"):
        predictor.import_slha_string(SPECTRUM)
