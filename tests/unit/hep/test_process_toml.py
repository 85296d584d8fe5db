"""Descriptions of processes: what they say, and what is refused."""

import shutil
import warnings

import pytest

from tests.support.cross_sections import NEUTRALINOS
from tfbnn.exceptions import DataWarning
from tfbnn.hep import Calculation
from tfbnn.hep.process_toml import read_description

INPUTS = 'inputs = {a = "MASS 1000022", b = "NMIX 1 1"}\n'
DEFAULTS = f'energy = 13000\nmodel = "named.h5"\nunit = "fb"\n{INPUTS}'
PROCESS = "[[process]]\npids = [1000023, 1000022]\n"


@pytest.fixture(scope="module")
def folder(tables_and_models, tmp_path_factory):
    """Models of this module's own."""
    folder = tmp_path_factory.mktemp("models")
    return shutil.copytree(tables_and_models, folder, dirs_exist_ok=True)


def read(folder, text):
    (folder / "d.toml").write_text(text)
    return read_description(folder / "d.toml")


def test_a_whole_description(folder):
    text = DEFAULTS + PROCESS + 'doi = "10.1000/182"\ninclude_noise = false\n'
    text += 'inputs = {b = ["nmix", 1, 1], a = "MASS 1000022"}\n'
    text += "xsection = {qcd_order = 1, pdf_id = 7}\nerrors = {scale = 0.05, pdf = [0.03, 0.02]}\n"
    (process,) = read(folder, text)
    assert process.pids == NEUTRALINOS
    assert process.inputs == {"a": ("MASS", 1000022), "b": ("NMIX", 1, 1)}
    assert (process.unit, process.energy, process.include_noise) == ("fb", 13000.0, False)
    assert (process.description, process.citation, process.doi) == ("", "", "10.1000/182")
    assert process.calculation == Calculation(qcd_order=1, pdf_id=7)
    assert process.errors == {"scale": (0.05, 0.05), "pdf": (0.03, 0.02)}


def test_a_byte_order_mark_is_passed_over(folder):
    assert len(read(folder, "\ufeff" + DEFAULTS + PROCESS)) == 1


def test_what_stands_first_holds_for_all(folder):
    first, second = read(folder, DEFAULTS + PROCESS + "[[process]]\npids = [1, 2]\nenergy = 8000\n")
    assert (first.energy, second.energy) == (13000.0, 8000.0)
    assert first.inputs == second.inputs


def test_errors_of_a_process_join_those_of_all(folder):
    text = f"errors = {{scale = 0.1, pdf = 0.03}}\n{DEFAULTS}{PROCESS}errors.scale = 0.2\n"
    (process,) = read(folder, text)
    assert process.errors == {"scale": (0.2, 0.2), "pdf": (0.03, 0.03)}


def test_a_target_of_the_fitted_column_is_told(folder):
    with pytest.warns(DataWarning, match=r"fitted to a column 'y', and target is 'log10\(y\)'"):
        read(folder, DEFAULTS + PROCESS + 'target = "log10(y)"\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(folder, DEFAULTS + PROCESS + 'target = "y"\n')
        read(folder, DEFAULTS + PROCESS + 'target = "log10(xsec)"\n')


@pytest.mark.parametrize(
    "more, message",
    [
        # What else a Process refuses is in test_hep.py.
        ('unit = "nb"', "unit must be one of"),
        ("enregy = 1", "unknown key 'enregy'. Did you mean 'energy'"),
        ("model = 3", "model must be a path"),
        ('inputs = "MASS"', "inputs must be a table"),
        ("xsection = {pdf_id = 1}", "missing 1 .*qcd_order"),
        ("xsection = {qcd_order = 1, order = 2}", "unexpected .*order"),
        ("energy = ", "is no TOML"),
        (PROCESS, "two processes"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(folder, more, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        read(folder, DEFAULTS + PROCESS + more)
    assert str(caught.value).startswith(str(folder / "d.toml"))


@pytest.mark.parametrize("key", ["energy", "inputs", "model", "unit"])
def test_what_is_missing_is_said(folder, key):
    lines = [line for line in DEFAULTS.splitlines() if not line.startswith(key)]
    with pytest.raises(ValueError, match=f"process 1: .*{key}"):
        read(folder, "\n".join([*lines, PROCESS]))


@pytest.mark.parametrize("text", ["", DEFAULTS, "process = 3", "[process]\n"])
def test_a_description_has_processes(folder, text):
    with pytest.raises(ValueError, match="describes no process"):
        read(folder, text)
