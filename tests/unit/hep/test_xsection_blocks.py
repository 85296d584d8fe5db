"""XSECTION blocks: what other codes read in them, and that nothing else of a spectrum changes."""

import pyslha
import pytest

from tests.support.cross_sections import CHARGINO, NEUTRALINOS, SPECTRUM
from tfbnn import __version__
from tfbnn.hep import Calculation, Process
from tfbnn.hep.xsection_blocks import Entry, check_calculations, with_blocks

OTHER = "XSECTION  {energy} 2212 2212 2 {pids} # [pb]\n  0  1  0  0  0  0    0.5 Prospino 2.1\n"


@pytest.fixture
def entries(processes):
    known = {"calculation": Calculation(qcd_order=1, pdf_id=90400, kappa_f=0.5)}
    first, second = (Process(**vars(process) | known) for process in processes)
    return [Entry(first, 12.5, 1.0, 2.0, 1), Entry(second, 3e-7, 1e-8, 2e-8, -1)]


def blocks_of(text):
    return pyslha.readSLHA(text, ignorenomass=True).xsections


def test_pyslha_reads_what_is_written(entries):
    text, others = with_blocks(SPECTRUM, entries)
    assert text.startswith(SPECTRUM) and others == []
    found = blocks_of(text)
    assert list(found) == [(2212, 2212, *NEUTRALINOS), (2212, 2212, *CHARGINO)]
    (first,), (second,) = (process.xsecs for process in found.values())
    assert (first.sqrts, second.sqrts) == (13000.0, 8000.0)
    assert (first.value, second.value) == (0.0125, 3e-10)  # pb
    assert (first.scale_scheme, first.qcd_order, first.ew_order, first.pdf_id) == (0, 1, 0, 90400)
    assert (first.kappa_f, first.kappa_r) == (0.5, 1.0)
    assert first.code == ["tfbnn", __version__]


def test_errors_and_trust_are_a_comment(entries):
    """Shifted values in lines of their own would be cross sections: SModelS takes the largest."""
    text, _ = with_blocks("", entries)
    lines = [line for line in text.splitlines() if line.startswith(" ")]
    assert len(lines) == 2
    assert lines[0].endswith("# pb, -0.001 +0.002, trust 1") and lines[1].endswith("trust -1")


def test_writing_again_replaces_what_was_written(entries):
    once, _ = with_blocks(SPECTRUM, entries)
    changed = [entry._replace(central=2 * entry.central) for entry in entries]
    twice, others = with_blocks(once, changed)
    assert others == [] and twice == with_blocks(SPECTRUM, changed)[0]
    # One of them alone leaves the other.
    one, _ = with_blocks(once, changed[:1])
    values = {pids[2:]: process.xsecs[0].value for pids, process in blocks_of(one).items()}
    assert values == {NEUTRALINOS: 0.025, CHARGINO: 3e-10}


def test_what_was_written_is_found_without_leading_blanks(entries):
    """Tools of scans rewrite lines without their leading blanks."""
    once, _ = with_blocks(SPECTRUM, entries)
    bare = "".join(line.lstrip(" ") for line in once.splitlines(keepends=True))
    again, others = with_blocks(bare, entries)
    counts = [again.count(word) for word in ("XSECTION", f"tfbnn {__version__}")]
    assert others == [] and counts == [2, 2]


def test_a_block_is_found_again_whatever_digits_its_energy_has(entries):
    process = Process(**vars(entries[0].process) | {"energy": 13600.123456789})
    entry = entries[0]._replace(process=process)
    once, _ = with_blocks(SPECTRUM, [entry])
    assert with_blocks(once, [entry])[0] == once


def test_comments_behind_a_block_stay(entries):
    once, _ = with_blocks(SPECTRUM, entries[:1])
    behind = "# about what follows\nBLOCK EXTRA\n   1  2.0\n"
    again, _ = with_blocks(once + behind, entries[:1])
    assert behind in again and again.count("XSECTION") == 1


@pytest.mark.parametrize("pids", ["1000022 1000023", "1000023 1000022"])
def test_cross_sections_of_other_codes_stay_and_are_told(entries, pids):
    before = SPECTRUM + OTHER.format(energy="1.30E+04", pids=pids)
    text, others = with_blocks(before, entries)
    assert text.startswith(before) and others == [NEUTRALINOS]
    codes = [xsec.code[0] for xsec in blocks_of(text)[(2212, 2212, *NEUTRALINOS)].xsecs]
    assert codes == ["Prospino", "tfbnn"]
    assert with_blocks(text, entries) == (text, others)


@pytest.mark.parametrize(
    "other",
    [
        OTHER.format(energy="8.00E+03", pids="1000022 1000023"),
        OTHER.format(energy="1.30E+04", pids="1000022 1000025"),
        OTHER.format(energy="many", pids="1000022 1000023"),
    ],
)
def test_other_processes_and_energies_are_no_concern(entries, other):
    text, others = with_blocks(SPECTRUM + other, entries)
    assert text.startswith(SPECTRUM + other) and others == []


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", SPECTRUM.replace("\n", "\r\n")])
def test_any_text_can_be_written_to(entries, text):
    found, _ = with_blocks(text, entries)
    assert found.startswith(text.rstrip("\n")) and len(blocks_of(found)) == 2


def test_the_order_has_to_be_known(processes, entries):
    check_calculations([entry.process for entry in entries])
    with pytest.raises(ValueError, match=r"not known of \(1000022, 1000023\).*qcd_order = 1"):
        check_calculations([processes[0], entries[1].process])


@pytest.mark.parametrize(
    "settings, error, message",
    [
        ({"qcd_order": -1}, ValueError, "qcd_order must be at least 0"),
        ({"qcd_order": "NLO"}, TypeError, "qcd_order must be an integer"),
        ({"qcd_order": 1, "kappa_r": 0}, ValueError, "kappa_r must be > 0"),
        ({"qcd_order": 1, "pdf_id": 1.5}, TypeError, "pdf_id must be an integer"),
    ],
)
def test_calculations_are_checked(settings, error, message):
    with pytest.raises(error, match=message):
        Calculation(**settings)
