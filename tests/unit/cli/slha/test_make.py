"""`tfbnn slha make`: out of models, and nothing lost on the way."""

import shutil

import pytest

from tests.support.commands import check_refusal
from tests.support.cross_sections import NEUTRALINOS
from tfbnn.fit.loading import load
from tfbnn.hep import CrossSectionPredictor, process_folder

INPUTS = 'inputs = {a = "MASS 1000022", b = "NMIX 1 1"}\n'
DEFAULTS = f"energy = 13000\nunit = 'fb'\n{INPUTS}"
MODEL = '[[process]]\npids = [1000022, 1000023]\nmodel = "named.h5"\n'
OTHER = '[[process]]\npids = [1, 2]\nmodel = "named.h5"\n'


@pytest.fixture
def folder(tables_and_models, tmp_path):
    """Tables, models and descriptions."""
    shutil.copytree(tables_and_models, tmp_path, dirs_exist_ok=True)
    for name, processes in {"model": MODEL, "other": OTHER, "both": MODEL + OTHER}.items():
        (tmp_path / f"{name}.toml").write_text(DEFAULTS + processes)
    return tmp_path


def pids_in(folder):
    return list(CrossSectionPredictor(folder).processes)


def test_models_become_processes(run, folder):
    code, out, err = run("slha make model.toml -o made")
    assert (code, out) == (0, "")
    assert "Wrote (1000022, 1000023) to made." in err and "tfbnn slha eval made" in err
    (process,) = CrossSectionPredictor(folder / "made").processes.values()
    assert (process.unit, process.energy) == ("fb", 13000.0)
    assert process.inputs == {"a": ("MASS", 1000022), "b": ("NMIX", 1, 1)}
    assert run("slha make both.toml -o both")[0] == 0
    assert pids_in(folder / "both") == [NEUTRALINOS, (1, 2)]


def test_a_folder_is_touched_only_as_asked(run, folder):
    """tests/unit/hep/test_process_folder.py has the other checks."""
    run("slha make model.toml -o made")
    check_refusal(run("slha make other.toml -o made"), "holds processes already", "'add'")
    assert pids_in(folder / "made") == [NEUTRALINOS]
    assert run("slha make other.toml -o made --existing add")[0] == 0
    assert pids_in(folder / "made") == [NEUTRALINOS, (1, 2)]


@pytest.mark.parametrize("trusted", [True, False])
def test_models_that_are_kept_are_read_as_asked(run, folder, monkeypatch, trusted):
    run("slha make model.toml -o made")
    seen = []
    monkeypatch.setattr(
        process_folder, "load", lambda path, untrusted: seen.append(untrusted) or load(path)
    )
    option = " --trusted" if trusted else ""
    assert run(f"slha make other.toml -o made --existing add{option}")[0] == 0
    assert seen == [not trusted]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (DEFAULTS.replace("b =", "c =") + MODEL, ["['a', 'b']", "['a', 'c']"]),
        (DEFAULTS + MODEL.replace("named", "two"), ["one target"]),
        (DEFAULTS + MODEL.replace("named", "none"), ["none.h5"]),
        (DEFAULTS + MODEL.replace("named.h5", "rows.csv"), ["rows.csv"]),
    ],
)
def test_what_is_refused_leaves_no_trace(run, folder, text, words):
    (folder / "bad.toml").write_text(text)
    before = sorted(path.name for path in folder.iterdir())
    check_refusal(run("slha make bad.toml -o made"), *words)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_inputs_are_not_written_over(run, folder):
    check_refusal(run("slha make model.toml -o model.toml"), "would overwrite")
    check_refusal(run("slha make model.toml -o rows.csv"), "rows.csv")
    check_refusal(run("slha make none.toml -o made"), "none.toml")
    check_refusal(run("slha make model.toml"), "-o", "tfbnn slha make --help")


def test_strangers_models_are_read_apart(run, folder, monkeypatch):
    asked = []

    def spy(path, *, untrusted=False):
        asked.append(untrusted)
        return load(path)

    monkeypatch.setattr("tfbnn.hep.process_toml.load", spy)
    run("slha make model.toml -o made")
    run("slha make model.toml -o mine --trusted")
    assert asked == [True, False]
