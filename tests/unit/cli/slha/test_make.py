"""`tfbnn slha make`: out of models and tables, and nothing lost on the way."""

import shutil
from functools import partial
from types import SimpleNamespace

import pytest

from tests.support.commands import check_refusal, write_tables_and_models
from tests.support.cross_sections import NEUTRALINOS
from tfbnn.cli import fit, resume
from tfbnn.diagnostics.verdict import USABLE
from tfbnn.exceptions import ChainError
from tfbnn.fit.model import BayesianMLP, load
from tfbnn.hep import CrossSectionPredictor
from tfbnn.storage import RunFolder

INPUTS = 'inputs = {a = "MASS 1000022", b = "NMIX 1 1"}\n'
DEFAULTS = f"energy = 13000\nunit = 'fb'\n{INPUTS}"
MODEL = '[[process]]\npids = [1000022, 1000023]\nmodel = "named.h5"\n'
TABLE = '[[process]]\npids = [1, 2]\ntable = "rows.csv"\ntarget = "y"\n'


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Tables, models and descriptions, written once."""
    folder = tmp_path_factory.mktemp("originals")
    write_tables_and_models(folder)
    (folder / "model.toml").write_text(DEFAULTS + MODEL)
    (folder / "table.toml").write_text(DEFAULTS + TABLE)
    (folder / "both.toml").write_text(DEFAULTS + MODEL + TABLE)
    return folder


@pytest.fixture
def folder(originals, tmp_path):
    shutil.copytree(originals, tmp_path, dirs_exist_ok=True)
    return tmp_path


class Fits:
    """Stands for 'tfbnn fit' and 'tfbnn resume': each saves a copy of a model.

    Attributes:
        calls: Name of the command and its arguments, of each call.
        codes: What the next calls end with; 0 when there are no more.
        keeps_run: Whether there is a run folder as long as a run is not over.
    """

    def __init__(self, model):
        self._model, self.calls, self.codes, self.keeps_run = model, [], [], True

    def run(self, name, args):
        self.calls.append((name, args))
        code = self.codes.pop(0) if self.codes else 0
        self._model.save(args.model_file)  # what there is, whatever the end
        if name == "resume":
            RunFolder.remove(args.folder)
        elif code == 85 and self.keeps_run:
            RunFolder.create(f"{args.model_file}.run", {}, {}, 1)
        if code == 1:
            raise ChainError("All chains failed.")
        return code


@pytest.fixture
def fits(monkeypatch, folder):
    fits = Fits(load(folder / "named.h5"))
    for module in (fit, resume):
        name = module.__name__.rpartition(".")[2]
        monkeypatch.setattr(module, "run", partial(fits.run, name))
    return fits


def pids_in(folder):
    return list(CrossSectionPredictor(folder).processes)


def test_models_become_processes(run, folder):
    code, out, err = run("slha make model.toml -o made")
    assert (code, out) == (0, "")
    assert "Wrote (1000022, 1000023) to made." in err and "tfbnn slha eval made" in err
    (process,) = CrossSectionPredictor(folder / "made").processes.values()
    assert (process.unit, process.energy) == ("fb", 13000.0)
    assert process.inputs == {"a": ("MASS", 1000022), "b": ("NMIX", 1, 1)}


def test_tables_are_fitted(run, folder, fits):
    (folder / "table.toml").write_text(DEFAULTS + TABLE + 'fit = "--layers 3,4 --seed 5"\n')
    code, _, err = run("slha make table.toml -o made/ --strict")
    assert code == 0 and "Fit 1 of 1: (1, 2), y of rows.csv." in err
    ((name, args),) = fits.calls
    assert (name, args.data, args.target, args.features) == ("fit", "rows.csv", ["y"], ["a", "b"])
    assert (args.layers, args.seed, args.strict) == ([3, 4], 5, True)
    assert pids_in(folder / "made") == [(1, 2)]
    assert not (folder / "made.fits").exists()  # the folder has the model now


def test_models_and_tables_keep_their_order(run, folder, fits):
    assert run("slha make both.toml -o made")[0] == 0
    assert pids_in(folder / "made") == [NEUTRALINOS, (1, 2)]


def test_a_verdict_is_the_exit_code(run, folder, fits):
    fits.codes = [3]
    assert run("slha make table.toml -o made --strict")[0] == 3
    assert pids_in(folder / "made") == [(1, 2)]


def test_a_stopped_fit_is_gone_on_with(run, folder, fits, monkeypatch):
    text = DEFAULTS + TABLE + TABLE.replace("[1, 2]", "[3, 4]")
    (folder / "two.toml").write_text(text + 'fit = "--seed 2"\n')
    fits.codes = [0, 85]
    code, _, err = run("slha make two.toml -o made")
    assert code == 85 and "The same command, tfbnn slha make, goes on" in err
    assert not (folder / "made").exists()
    monkeypatch.setattr(
        BayesianMLP, "diagnose", lambda model: SimpleNamespace(verdict=USABLE, headline="")
    )
    code, _, err = run("slha make two.toml -o made --strict")
    assert code == 0 and "is there already: the same rows" in err
    assert [name for name, _ in fits.calls] == ["fit", "fit", "resume"]
    resumed = fits.calls[-1][1]
    assert resumed.folder == f"{resumed.model_file}.run" and resumed.strict
    assert pids_in(folder / "made") == [(1, 2), (3, 4)]


@pytest.mark.parametrize(("strict", "code"), [("", 0), ("--strict", 3)])
def test_a_model_that_is_there_has_a_verdict_too(run, folder, fits, strict, code):
    text = DEFAULTS + TABLE + TABLE.replace("[1, 2]", "[3, 4]")
    (folder / "two.toml").write_text(text + 'fit = "--seed 2"\n')
    fits.codes = [0, 85]
    run("slha make two.toml -o made")
    found, _, err = run(f"slha make two.toml -o made {strict}")
    assert found == code and ("Verdict on it: not yet" in err) == bool(code)
    assert len(fits.calls) == 3 and pids_in(folder / "made") == [(1, 2), (3, 4)]


@pytest.mark.parametrize("code", [85, 1])
def test_a_part_of_the_draws_is_not_taken_for_all(run, folder, fits, code):
    fits.codes, fits.keeps_run = [code], False
    assert run("slha make table.toml -o made")[0] == code
    assert not (folder / "made.fits").exists()
    assert run("slha make table.toml -o made")[0] == 0
    assert [name for name, _ in fits.calls] == ["fit", "fit"]


@pytest.mark.parametrize("change", ["rows", "columns", "options"])
def test_a_fit_of_something_else_is_not_taken(run, folder, fits, change):
    fits.codes = [85]
    assert run("slha make table.toml -o made")[0] == 85
    if change == "rows":
        with open(folder / "rows.csv", "a") as file:
            file.write("1,2,3\n")
    more = {
        "rows": "",
        "columns": INPUTS.replace("a =", "c =").replace("b =", "a =").replace("c =", "b ="),
        "options": 'fit = "--seed 2"\n',
    }
    (folder / "table.toml").write_text(DEFAULTS + TABLE + more[change])
    fits.calls.clear()
    run("slha make table.toml -o made")
    assert [name for name, _ in fits.calls] == ["fit"]


@pytest.mark.parametrize(
    ("option", "file", "other"),
    [("--validation", "rows.csv", "train.csv"), ("--initial-state", "named.h5", "unnamed.h5")],
)
def test_a_fit_with_another_file_of_its_options_is_not_taken(
    run, folder, fits, option, file, other
):
    used = folder / f"used-{file}"
    shutil.copy(folder / file, used)
    (folder / "table.toml").write_text(DEFAULTS + TABLE + f'fit = "{option} {used}"\n')
    fits.codes = [85]
    assert run("slha make table.toml -o made")[0] == 85
    shutil.copy(folder / other, used)
    assert run("slha make table.toml -o made")[0] == 0
    assert [name for name, _ in fits.calls] == ["fit", "fit"]


@pytest.mark.parametrize(
    ("options", "validation", "start"),
    [
        ("--validation rows.csv", "apart/rows.csv", None),
        ("--initial-state=start.h5", None, "apart/start.h5"),
        ("--validation {}/train.csv --initial-state 0.5", "{}/train.csv", "0.5"),
    ],
)
def test_files_of_options_lie_beside_the_description(run, folder, fits, options, validation, start):
    apart = folder / "apart"
    apart.mkdir()
    shutil.move(folder / "rows.csv", apart)
    shutil.copy(folder / "named.h5", apart / "start.h5")
    (apart / "d.toml").write_text(DEFAULTS + TABLE + f'fit = "{options.format(folder)}"\n')
    assert run("slha make apart/d.toml -o made")[0] == 0
    ((_, args),) = fits.calls
    assert args.validation == (validation and validation.format(folder))
    assert getattr(args, "initial_state", None) == start


@pytest.mark.parametrize(
    ("existing", "code", "expected"),
    [
        ("", 2, [NEUTRALINOS]),
        ("--existing refuse", 2, [NEUTRALINOS]),
        ("--existing add", 0, [NEUTRALINOS, (1, 2)]),
        ("--existing update", 0, [NEUTRALINOS, (1, 2)]),
        ("--existing replace", 0, [(1, 2)]),
    ],
)
def test_a_folder_is_touched_only_as_asked(run, folder, fits, existing, code, expected):
    run("slha make model.toml -o made")
    found = run(f"slha make table.toml -o made {existing}")
    assert found[0] == code and pids_in(folder / "made") == expected
    assert len(fits.calls) == (code == 0)  # a refusal costs no fit
    if code:
        check_refusal(found, "holds processes already", "'add'")


def test_known_noise_needs_errors_without_it(run, folder, fits):
    text = DEFAULTS + TABLE.replace("rows", "train") + 'fit = "--noise-column sd"\n'
    (folder / "noise.toml").write_text(text)
    check_refusal(run("slha make noise.toml -o made"), "sd is known", "include_noise = false")
    assert not fits.calls
    (folder / "noise.toml").write_text(text + "include_noise = false\n")
    assert run("slha make noise.toml -o made")[0] == 0
    assert fits.calls[0][1].noise_column == ["sd"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (DEFAULTS + TABLE.replace('"y"', '"z"'), ["rows.csv has no column z"]),
        (DEFAULTS + TABLE.replace("rows", "none"), ["none.csv"]),
        (DEFAULTS.replace("b =", "c =") + TABLE, ["rows.csv has no column c"]),
        (DEFAULTS.replace("b =", "c =") + MODEL, ["['a', 'b']", "['a', 'c']"]),
        (DEFAULTS + TABLE + 'fit = "--layer 3"', ["unknown option --layer", "'--layers'"]),
        (DEFAULTS + TABLE + 'fit = "--layers x"', ["widths such as 20,20", "tfbnn fit --help"]),
        (DEFAULTS + TABLE + 'fit = "-o x.h5"', ["-o is not for a description"]),
        (DEFAULTS + TABLE + 'fit = "--output=x"', ["--output=x is not for a description"]),
        (DEFAULTS + TABLE + 'fit = "extra"', ["unexpected argument 'extra'"]),
        (DEFAULTS + TABLE + 'fit = "--likelihood bernoulli"', ["bernoulli is for class labels"]),
        (DEFAULTS + TABLE + 'fit = "--likelihood categorical"', ["categorical is for class"]),
        (DEFAULTS + TABLE + 'fit = "--categories a"', ["--categories a is not for a process"]),
        (DEFAULTS + TABLE + 'fit = "--validation v.csv"', ["no file v.csv", "where it lies"]),
        (DEFAULTS + TABLE + 'fit = "--validation points.csv"', ["points.csv has no column y"]),
        (DEFAULTS + TABLE + 'fit = "--initial-state v.h5"', ["no file v.h5", "where it lies"]),
        (DEFAULTS + MODEL.replace("named", "two"), ["one target"]),
        (DEFAULTS + MODEL.replace("named", "none"), ["none.h5"]),
        (DEFAULTS + MODEL.replace("named.h5", "rows.csv"), ["rows.csv"]),
        (DEFAULTS.replace("13000", "13") + MODEL, ["For 13 TeV pass 13000"]),
        ("", ["describes no process"]),
    ],
)
def test_what_is_refused_costs_no_fit(run, folder, fits, text, words):
    (folder / "bad.toml").write_text(text)
    before = sorted(path.name for path in folder.iterdir())
    check_refusal(run("slha make bad.toml -o made"), *words)
    assert sorted(path.name for path in folder.iterdir()) == before and not fits.calls


def test_inputs_are_not_written_over(run, folder):
    check_refusal(run("slha make model.toml -o model.toml"), "would be lost")
    check_refusal(run("slha make model.toml -o rows.csv"), "rows.csv")
    check_refusal(run("slha make none.toml -o made"), "none.toml")
    check_refusal(run("slha make model.toml"), "-o", "tfbnn slha make --help")


def test_strangers_models_are_read_apart(run, folder, monkeypatch):
    asked = []

    def spy(path, *, untrusted=False):
        asked.append(untrusted)
        return load(path)

    monkeypatch.setattr("tfbnn.cli.slha.make.load", spy)
    run("slha make model.toml -o made")
    run("slha make model.toml -o mine --trusted")
    assert asked == [True, False]
