"""Folders of processes: replaced as one, checked when they are read, old ones read as before."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support.cross_sections import CHARGINO, NEUTRALINOS, SPECTRUM
from tfbnn import BayesianMLP, ModelFileError
from tfbnn.data.transforms import Pipeline
from tfbnn.hep import Calculation, CrossSectionPredictor, Process, process_folder, write_processes
from tfbnn.hep.process import FB


def test_a_pipe_in_place_of_a_model_is_not_waited_for(folder):
    model = next(folder.glob("*.h5"))
    model.unlink()
    os.mkfifo(model)
    with pytest.raises(ModelFileError, match="is not a file"):
        CrossSectionPredictor(folder)


@pytest.mark.parametrize(
    "existing, pids, expected",
    [
        ("replace", NEUTRALINOS, [NEUTRALINOS]),
        ("update", NEUTRALINOS, [NEUTRALINOS, CHARGINO]),
        ("update", (1, 2), [NEUTRALINOS, CHARGINO, (1, 2)]),
        ("add", (1, 2), [NEUTRALINOS, CHARGINO, (1, 2)]),
        ("add", NEUTRALINOS, None),
        ("refuse", (1, 2), None),
    ],
)
def test_what_is_there_is_kept_as_asked(folder, processes, existing, pids, expected):
    new = Process(**vars(processes[0]) | {"pids": pids, "description": "new"})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    if expected is None:
        with pytest.raises(FileExistsError, match=r"holds processes already: \(1000022, 1000023\)"):
            write_processes(folder, [new], existing=existing)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        return
    write_processes(folder, [new], existing=existing)
    found = CrossSectionPredictor(folder).processes
    assert list(found) == expected and found[pids].description == "new"


def test_of_many_who_add_at_the_same_time_none_is_lost(folder, processes):
    new = [Process(**vars(processes[0]) | {"pids": (1, number)}) for number in range(2, 6)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: write_processes(folder, [one], existing="add"), new))
    found = list(CrossSectionPredictor(folder).processes)
    assert sorted(found) == sorted([NEUTRALINOS, CHARGINO, *(one.pids for one in new)])
    assert len(list(folder.glob("*.h5"))) == len(found)


def test_a_write_waits_for_another_that_adds(tmp_path, processes, monkeypatch):
    """Otherwise "refuse" would remove what was added after its look at the folder."""
    original, waiting = process_folder._replace, []

    def replace_later(folder, new):
        if not waiting:
            waiting.append(pool.submit(write_processes, folder, processes[1:], existing="refuse"))
        original(folder, new)

    monkeypatch.setattr(process_folder, "_replace", replace_later)
    with ThreadPoolExecutor(1) as pool:
        write_processes(tmp_path / "f", processes[:1], existing="add")
        with pytest.raises(FileExistsError):
            waiting[0].result()
    assert list(CrossSectionPredictor(tmp_path / "f").processes) == [NEUTRALINOS]


@pytest.mark.parametrize("existing", ["refuse", "add", "update", "replace"])
def test_an_empty_folder_takes_any(tmp_path, processes, existing):
    write_processes(tmp_path, processes, existing=existing)
    assert list(CrossSectionPredictor(tmp_path).processes) == [NEUTRALINOS, CHARGINO]
    with pytest.raises(ValueError, match="existing must be one of"):
        write_processes(tmp_path, processes, existing="overwrite")


def test_all_that_is_known_of_a_process_is_kept(folder, processes):
    known = {
        "calculation": Calculation(qcd_order=1, pdf_id=90400),
        "errors": {"scale": 0.05, "pdf": (0.03, 0.02)},
        "citation": "Beenakker et al.",
        "doi": "10.1103/PhysRevLett.83.3780",
    }
    write_processes(folder, [Process(**vars(processes[0]) | known), processes[1]])
    first, second = CrossSectionPredictor(folder).processes.values()
    assert first.errors == {"scale": (0.05, 0.05), "pdf": (0.03, 0.02)}
    assert all(getattr(first, name) == known[name] for name in ("calculation", "citation", "doi"))
    assert (second.calculation, second.errors, second.citation) == (None, {}, "")


def test_processes_must_not_contradict_each_other(tmp_path, processes):
    twin = Process(**vars(processes[0]))
    with pytest.raises(ValueError, match="two processes"):
        write_processes(tmp_path, [processes[0], twin])
    other = {"m": ("MASS", 1000023), "m_c": ("MASS", 1000024)}
    with pytest.raises(ValueError, match="'m' of .* is MASS 1000023, elsewhere it is MASS 1000022"):
        write_processes(tmp_path, [processes[0], Process(**vars(processes[1]) | {"inputs": other})])
    with pytest.raises(TypeError, match="at least one Process"):
        write_processes(tmp_path, [])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        *("[" * 10**5, "[]", "7", '{"format": []}', ""),
        lambda index: index.update(format_version=7),
        lambda index: index.pop("processes"),
        lambda index: index["processes"][0].update(unit="barn"),
        lambda index: index["processes"][0]["inputs"].pop(),
        lambda index: index["processes"][0].update(pids=["..", "x"]),
        lambda index: index["processes"][0].update(file="../1000022_1000023.h5"),
        lambda index: index["processes"][0].pop("file"),
        lambda index: index["processes"][0].pop("sha256"),
        lambda index: index["processes"][0].update(xsection={"order": 1}),
        lambda index: index["processes"][0].update(energy_gev=13),
        lambda index: index["processes"].append(index["processes"][0]),
    ],
    ids=lambda change: change[:20] if isinstance(change, str) else None,
)
def test_a_damaged_index_is_refused(folder, change):
    path = folder / "processes.json"
    index = json.loads(path.read_text())
    if callable(change):
        change(index)
    path.write_text(json.dumps(index) if callable(change) else change)
    with pytest.raises(ModelFileError, match="processes.json' is not a readable index"):
        CrossSectionPredictor(folder)


def model_files(folder):
    return sorted(folder.glob("*.h5"))


def test_missing_files_are_named(folder, tmp_path):
    model_files(folder)[1].unlink()
    with pytest.raises(FileNotFoundError, match=r"1000022_1000023-\w+.h5"):
        CrossSectionPredictor(folder)
    with pytest.raises(FileNotFoundError, match="write_processes"):
        CrossSectionPredictor(tmp_path)


def test_processes_are_not_written_onto_a_file(tmp_path, processes):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(FileExistsError, match="notes' is not a folder. Choose another path"):
        write_processes(tmp_path / "notes", processes)
    assert (tmp_path / "notes").read_text() == "mine"


def with_unit(process, unit):
    """The process in another unit, its model fitted anew: its numbers are other ones by 1000."""
    ensemble = process.model.posterior
    (log10, standardize), factor = ensemble.y_pipeline.steps, np.log10(FB[unit])
    moved = replace(standardize, mean=tuple(mean - factor for mean in standardize.mean))
    model = BayesianMLP.from_ensemble(replace(ensemble, y_pipeline=Pipeline((log10, moved))))
    return Process(**vars(process) | {"model": model, "unit": unit})


def unit_and_central(folder):
    predictor = CrossSectionPredictor(folder)
    predictor.import_slha_string(SPECTRUM)
    unit = predictor.processes[NEUTRALINOS].unit
    return unit, predictor.get_xsection(NEUTRALINOS)["central"]


@pytest.fixture(scope="module")
def before(processes, tmp_path_factory):
    """The central value, in fb, of what stands in every folder."""
    folder = tmp_path_factory.mktemp("before") / "gauginos"
    write_processes(folder, processes)
    return unit_and_central(folder)[1]


class Crash(BaseException):
    """Ends a write where a process was killed."""


@pytest.mark.parametrize("point", ["before write", "after fsync", "after rename"])
@pytest.mark.parametrize("file", [0, 1, 2], ids=["first model", "second model", "index"])
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "full disk"])
def test_processes_are_replaced_as_one(folder, processes, before, monkeypatch, point, file, killed):
    """Models used to be replaced one by one, so that an old unit could meet a new model."""
    new = [with_unit(processes[0], "pb"), processes[1]]
    seen = []

    def fail(reached, path):
        seen.extend([path] * (reached == "before write"))
        if len(seen) == file + 1 and reached == point:
            raise Crash

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr("tfbnn.system.atomic._reached", fail)
        if killed:
            patch.setattr("tfbnn.hep.process_folder._remove", lambda paths: None)
        write_processes(folder, new)
    is_new = (file, point) == (2, "after rename")
    assert unit_and_central(folder) == ("pb" if is_new else "fb", pytest.approx(before))
    if not killed:
        assert len(model_files(folder)) == 2
        return
    write_processes(folder, new)
    assert unit_and_central(folder) == ("pb", pytest.approx(before))


def test_replaced_models_are_gone(folder, processes):
    old = model_files(folder)
    write_processes(folder, processes[:1])
    assert len(model_files(folder)) == 1 and not set(old) & set(model_files(folder))
    assert list(CrossSectionPredictor(folder).processes) == [NEUTRALINOS]


def test_a_reader_who_is_overtaken_reads_again(folder, processes, monkeypatch):
    def overtaken(path, **options):
        monkeypatch.undo()
        write_processes(folder, [with_unit(processes[0], "pb")])
        return tfbnn.load(path, **options)

    monkeypatch.setattr("tfbnn.hep.process_folder.load", overtaken)
    found = CrossSectionPredictor(folder).processes
    assert [process.unit for process in found.values()] == ["pb"]


def test_a_model_that_is_not_of_its_index_is_refused(folder, processes):
    first, second = model_files(folder)
    second.write_bytes(first.read_bytes())
    with pytest.raises(ModelFileError, match="not the model that processes.json was written with"):
        CrossSectionPredictor(folder)
    second.write_bytes(first.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match=f"{second.name}.*seal"):
        CrossSectionPredictor(folder)
