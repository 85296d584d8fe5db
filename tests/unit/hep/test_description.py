"""Descriptions of processes: what they say, and what is refused before anything is fitted."""

import pytest

from tests.support.cross_sections import NEUTRALINOS
from tfbnn.hep import Calculation
from tfbnn.hep.description import read_description

DEFAULTS = 'energy = 13000\ntable = "rows.csv"\ntarget = "x_fb"\ninputs = {m = "MASS 1000022"}\n'
PROCESS = "[[process]]\npids = [1000023, 1000022]\n"


def read(tmp_path, text):
    (tmp_path / "d.toml").write_text(text)
    return read_description(tmp_path / "d.toml")


def test_a_whole_description(tmp_path):
    text = DEFAULTS + PROCESS + 'fit = "--layers 3"\ndoi = "10.1000/182"\ninclude_noise = false\n'
    text += 'inputs = {N11 = ["nmix", 1, 1], m = "MASS 1000022"}\n'
    text += "xsection = {qcd_order = 1, pdf_id = 7}\nerrors = {scale = 0.05, pdf = [0.03, 0.02]}\n"
    (plan,) = read(tmp_path, text)
    assert (plan.pids, plan.target, plan.model, plan.fit) == (
        NEUTRALINOS,
        "x_fb",
        None,
        "--layers 3",
    )
    assert (plan.table, plan.folder) == (str(tmp_path / "rows.csv"), str(tmp_path))
    assert plan.inputs == {"N11": ("NMIX", 1, 1), "m": ("MASS", 1000022)}
    assert plan.settings == {
        "unit": "fb",
        "energy": 13000.0,
        "inputs": plan.inputs,
        "include_noise": False,
        "description": "",
        "citation": "",
        "doi": "10.1000/182",
        "calculation": Calculation(qcd_order=1, pdf_id=7),
        "errors": {"scale": (0.05, 0.05), "pdf": (0.03, 0.02)},
    }


def test_what_stands_first_holds_for_all(tmp_path):
    text = DEFAULTS + PROCESS + "[[process]]\npids = [1, 2]\nenergy = 8000\n"
    first, second = read(tmp_path, text + '[[process]]\npids = [3, 4]\nmodel = "m.h5"\n')[:2]
    assert (first.settings["energy"], second.settings["energy"]) == (13000.0, 8000.0)
    assert first.inputs == second.inputs


def test_a_model_needs_no_table(tmp_path):
    (plan,) = read(tmp_path, DEFAULTS + PROCESS + 'model = "m.h5"\n')
    assert (plan.table, plan.model) == (None, str(tmp_path / "m.h5"))


@pytest.mark.parametrize(
    "target, unit, expected",
    [("x_fb", None, "fb"), ("sigma_PB", None, "pb"), ("sigma", "pb", "pb"), ("x_fb", "fb", "fb")],
)
def test_the_name_of_the_target_says_its_unit(tmp_path, target, unit, expected):
    text = DEFAULTS + PROCESS + f'target = "{target}"\n' + (f'unit = "{unit}"\n' if unit else "")
    assert read(tmp_path, text)[0].settings["unit"] == expected


@pytest.mark.parametrize(
    "more, message",
    [
        ('unit = "pb"', "unit is 'pb', but the target is called x_fb"),
        ('target = "x"', "unit is missing"),
        ('target = ""', "target is missing"),
        ("energy = 13", "13 TeV pass 13000"),
        ("enregy = 1", "unknown key 'enregy'. Did you mean 'energy'"),
        ("[[process]]\npids = [1]", "two PDG codes"),
        ('model = "m.h5"\nfit = "--layers 3"', "fit goes with table"),
        ('inputs = {m = "MASS x"}', "SLHA place must be like"),
        ('inputs = "MASS"', "inputs must be a table"),
        ('inputs = {energy = "MASS 1"}', "No input can be called 'energy'"),
        ('doi = "https://doi.org/10.1/2"', "doi must be like '10.1000/182'"),
        ("citation = 7", "citation must be text"),
        ("xsection = {pdf_id = 1}", "table with qcd_order"),
        ("xsection = {qcd_order = 1, order = 2}", "table with qcd_order"),
        ("errors = {scale = -1}", "must be >= 0"),
        ("errors = 0.1", "errors must be a dict"),
        ("include_noise = 1", "include_noise must be True or False"),
        ("fit = 3", "fit must be text"),
        ("energy = ", "is no TOML"),
        (PROCESS, "two processes"),
        ('[[process]]\npids = [1, 2]\ninputs = {m = "MASS 1"}', "'m' of .* is MASS 1, elsewhere"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, more, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        read(tmp_path, DEFAULTS + PROCESS + more)
    assert str(caught.value).startswith(str(tmp_path / "d.toml"))


@pytest.mark.parametrize("key", ["energy", "inputs", "table"])
def test_what_is_missing_is_said(tmp_path, key):
    lines = [line for line in DEFAULTS.splitlines() if not line.startswith(key)]
    with pytest.raises(ValueError, match=f"process 1: .*{key}"):
        read(tmp_path, "\n".join([*lines, PROCESS]))


@pytest.mark.parametrize("text", ["", DEFAULTS, "process = 3", "[process]\n"])
def test_a_description_has_processes(tmp_path, text):
    with pytest.raises(ValueError, match="describes no process"):
        read(tmp_path, text)
