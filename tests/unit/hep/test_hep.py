"""Cross sections by process: folders, SLHA, units, quantiles, and what a scan gets wrong."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows
from tests.support.without_tensorflow import run_without_tensorflow
from tfbnn import BayesianMLP, ModelFileError
from tfbnn.data.transforms import Pipeline
from tfbnn.hep import CrossSectionPredictor, Process, write_processes
from tfbnn.hep.process import FB
from tfbnn.likelihoods import Bernoulli

NEUTRALINOS, CHARGINO = (1000022, 1000023), (-1000024, 1000022)
MASS, MIXING = ("MASS", 1000022), ("NMIX", 1, 1)
SPECTRUM = """
# A comment
BLOCK MODSEL
     1   0
Block Mass  # masses
   1000022    -2.5   # ~chi_10
   1000024     4   # ~chi_1+
Block NMIX Q= 1.0E+03
  1  1     1.75E+00   # N_11
  1  2     0.2
DECAY   1000022     0.0
"""
LOG = ["log10", "standardize"]


@pytest.fixture(scope="module")
def processes(synthetic_ensemble):
    def model(**settings):
        return BayesianMLP.from_ensemble(synthetic_ensemble(y_transform=LOG, **settings))

    return [
        Process(
            pids=NEUTRALINOS[::-1],
            model=model(feature_names=("m", "n11"), vector_target=True),
            unit="fb",
            energy=13000,
            inputs={"n11": MIXING, "m": MASS},
            description="made up",
        ),
        Process(
            pids=CHARGINO,
            model=model(seed=1, row_noise=True),
            unit="pb",
            energy=8000,
            inputs={"m": MASS, "m_c": ("mass", 1000024)},
            include_noise=False,
        ),
    ]


@pytest.fixture
def folder(tmp_path, processes):
    write_processes(tmp_path / "gauginos", processes)
    return tmp_path / "gauginos"


@pytest.fixture
def predictor(folder):
    return CrossSectionPredictor(folder)


def expected(process, x, factor, include_noise):
    prediction = process.model.predict(
        [x], include_noise=include_noise, quantiles=[0.16, 0.5, 0.84], return_trust=True
    )
    low, middle, high = factor * prediction.columns.quantiles[:, 0, 0]
    return {
        "central": middle,
        "tot_err_down": middle - low,
        "tot_err_up": high - middle,
        "trust_level": prediction.trust[0],
    }


def test_results_are_quantiles_in_fb(predictor, processes):
    predictor.import_slha_string(SPECTRUM)
    found = predictor.get_xsection(NEUTRALINOS)
    assert found == pytest.approx(expected(processes[0], [-2.5, 1.75], 1.0, True))
    assert all(type(value) is float for value in list(found.values())[:3])
    assert type(found["trust_level"]) is int
    assert 0 < found["tot_err_down"] < found["tot_err_up"]  # of a positive quantity


def test_picobarn_become_femtobarn_and_noise_stays_out(predictor, processes):
    predictor.import_slha_string(SPECTRUM)
    found = predictor.get_xsection(list(CHARGINO))
    assert found == pytest.approx(expected(processes[1], [-2.5, 4.0], 1000.0, False))


def test_all_processes_at_once(predictor):
    predictor.import_slha_string(SPECTRUM)
    assert predictor.get_xsections() == {
        pids: predictor.get_xsection(pids) for pids in (NEUTRALINOS, CHARGINO)
    }


def test_the_order_of_the_particles_does_not_matter(predictor):
    predictor.import_slha_string(SPECTRUM)
    codes = tuple(np.array(NEUTRALINOS[::-1]))
    assert predictor.get_xsection(codes) == predictor.get_xsection(NEUTRALINOS)


def test_parameters_by_name_are_those_from_slha(predictor, tmp_path):
    (tmp_path / "point.slha").write_text(SPECTRUM)
    predictor.import_slha(tmp_path / "point.slha")
    from_slha = predictor.get_xsections()
    predictor.set_parameters({"m": 0.0, "n11": 0.0, "m_c": 4})
    assert predictor.get_xsections() != from_slha
    predictor.set_parameters({"m": np.float64(-2.5), "n11": 1.75})
    assert predictor.get_xsections() == from_slha


def test_points_far_away_are_not_trusted(predictor):
    predictor.set_parameters({"m": 2.0, "n11": 2.0, "m_c": 2.0})
    assert predictor.get_xsection(NEUTRALINOS)["trust_level"] == 1
    predictor.set_parameters({"m": 500.0})
    assert [r["trust_level"] for r in predictor.get_xsections().values()] == [-1, -1]


def test_the_energy_that_gambit_sets_is_held_against_the_process(predictor):
    predictor.set_parameters({"energy": 13000})
    predictor.import_slha_string(SPECTRUM)
    predictor.get_xsection(NEUTRALINOS)
    with pytest.raises(ValueError, match="is at 8000 GeV, the parameter energy is 13000 GeV"):
        predictor.get_xsection(CHARGINO)


def test_an_unknown_process_lists_the_known_ones(predictor):
    with pytest.raises(ValueError, match=r"no process \(1, 2\). Known: \(1000022, 1000023\), \(-"):
        predictor.get_xsection((2, 1))


@pytest.mark.parametrize("pids", [1000022, (1000022,), (1.5, 2.0), "ab"])
def test_particles_are_two_integers(predictor, pids):
    with pytest.raises(TypeError, match="two PDG codes"):
        predictor.get_xsection(pids)


def test_inputs_that_are_not_set_are_named_with_their_place(predictor):
    predictor.set_parameters({"m": 1.0})
    with pytest.raises(ValueError, match=r"needs n11 \(NMIX 1 1\), not set yet"):
        predictor.get_xsection(NEUTRALINOS)


@pytest.mark.parametrize(
    "parameters, error, message",
    [
        ({"m": 1.0, "N11": 1.0}, ValueError, "the input 'N11'. Known: energy, m, n11, m_c"),
        ({"m": 1.0, "n11": float("nan")}, ValueError, "n11 must be finite"),
        ({"m": "1"}, TypeError, "m must be a number"),
        ([("m", 1.0)], TypeError, "parameters must be a dict"),
    ],
)
def test_bad_parameters_change_nothing(predictor, parameters, error, message):
    with pytest.raises(error, match=message):
        predictor.set_parameters(parameters)
    assert predictor.parameters == {}


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


def test_a_folder_can_be_added_to(folder, predictor, processes):
    more = dict(vars(processes[0]), pids=(1000022, 1000022), description="more")
    write_processes(folder, [*predictor.processes.values(), Process(**more)])
    again = CrossSectionPredictor(folder).processes
    assert list(again) == [NEUTRALINOS, CHARGINO, (1000022, 1000022)]
    assert [process.description for process in again.values()] == ["made up", "", "more"]


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"unit": "nb"}, ValueError, "unit must be one of"),
        ({"energy": 0}, ValueError, "energy must be > 0"),
        ({"pids": (1,)}, TypeError, "two PDG codes"),
        ({"inputs": {"m": MASS}}, ValueError, r"the 2 inputs of the model, \['m', 'n11'\]"),
        ({"inputs": {"m": MASS, "n11": "NMIX"}}, TypeError, "an SLHA place must"),
        ({"inputs": [MASS, MIXING]}, TypeError, "inputs must be a dict"),
        ({"model": "model.h5"}, TypeError, "model must be a BayesianMLP"),
        ({"model": BayesianMLP([2, 1])}, tfbnn.NotFittedError, "fit_posterior"),
        ({"include_noise": 1}, TypeError, "include_noise must be True or False"),
        ({"description": None}, TypeError, "description must be text"),
    ],
)
def test_processes_are_checked(processes, change, error, message):
    with pytest.raises(error, match=f"(?i){message}"):
        Process(**vars(processes[0]) | change)


def test_models_that_are_not_cross_sections_are_refused(processes, synthetic_ensemble):
    known = vars(processes[1])
    for settings in ({"layer_sizes": (2, 3, 2)}, {"likelihood": Bernoulli()}):
        model = BayesianMLP.from_ensemble(synthetic_ensemble(**settings))
        with pytest.raises(ValueError, match="one target"):
            Process(**known | {"model": model})
    with pytest.raises(ValueError, match="include_noise=False"):
        Process(**known | {"include_noise": True})
    with pytest.raises(ValueError, match="'energy'"):
        Process(**known | {"inputs": {"energy": MASS, "m": MIXING}})


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
        lambda index: index.update(format_version=7),
        lambda index: index.pop("processes"),
        lambda index: index["processes"][0].update(unit="barn"),
        lambda index: index["processes"][0]["inputs"].pop(),
        lambda index: index["processes"][0].update(pids=["..", "x"]),
        lambda index: index["processes"][0].update(file="../1000022_1000023.h5"),
        lambda index: index["processes"][0].update(file=7),
        lambda index: index["processes"][0].pop("file"),
        lambda index: index["processes"][0].pop("sha256"),
    ],
)
def test_a_damaged_index_is_refused(folder, change):
    path = folder / "processes.json"
    index = json.loads(path.read_text())
    change(index)
    path.write_text(json.dumps(index))
    with pytest.raises(ModelFileError, match="processes.json' is not a readable index"):
        CrossSectionPredictor(folder)


def model_files(folder):
    return sorted(folder.glob("*.h5"))


def with_unit(process, unit):
    """The process in another unit, its model fitted anew: its numbers are other ones by 1000."""
    ensemble = process.model.posterior
    (log10, standardize), factor = ensemble.y_pipeline.steps, np.log10(FB[unit])
    moved = replace(standardize, mean=tuple(mean - factor for mean in standardize.mean))
    model = BayesianMLP.from_ensemble(replace(ensemble, y_pipeline=Pipeline((log10, moved))))
    return Process(**vars(process) | {"model": model, "unit": unit})


def central(folder):
    predictor = CrossSectionPredictor(folder)
    predictor.import_slha_string(SPECTRUM)
    return predictor.get_xsection(NEUTRALINOS)["central"]


class Crash(BaseException):
    """Ends a write where a process was killed."""


@pytest.mark.parametrize("point", ["before write", "after write", "after fsync", "after rename"])
@pytest.mark.parametrize("file", [0, 1, 2], ids=["first model", "second model", "index"])
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "full disk"])
def test_processes_are_replaced_as_one(folder, processes, monkeypatch, point, file, is_killed):
    """Models used to be replaced one by one, so that an old unit could meet a new model."""
    new = [with_unit(processes[0], "pb"), processes[1]]
    before, seen = central(folder), []

    def fail(reached, path):
        seen.extend([path] * (reached == "before write"))
        if len(seen) == file + 1 and reached == point:
            raise Crash

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr("tfbnn.system.atomic._reached", fail)
        if is_killed:
            patch.setattr("tfbnn.hep.process_folder._remove", lambda paths: None)
        write_processes(folder, new)
    is_new = (file, point) == (2, "after rename")
    unit = CrossSectionPredictor(folder).processes[NEUTRALINOS].unit
    assert unit == ("pb" if is_new else "fb")
    assert central(folder) == pytest.approx(before)
    assert is_killed or len(model_files(folder)) == 2
    write_processes(folder, new)
    assert central(folder) == pytest.approx(before)


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


def as_it_was(folder):
    """Makes a folder of the first version: models by their particles, and no hashes."""
    path = folder / "processes.json"
    index = json.loads(path.read_text())
    index["format_version"] = 0
    for entry in index["processes"]:
        name = "{}_{}.h5".format(*entry["pids"])
        (folder / entry.pop("file")).rename(folder / name)
        del entry["sha256"]
    path.write_text(json.dumps(index))


def test_folders_of_the_first_version_are_read_and_replaced(folder, processes):
    before = central(folder)
    as_it_was(folder)
    assert [path.name for path in model_files(folder)][1] == "1000022_1000023.h5"
    assert central(folder) == before
    write_processes(folder, processes)
    assert central(folder) == before
    assert len(model_files(folder)) == 2 and not (folder / "1000022_1000023.h5").exists()


def test_processes_are_not_written_onto_a_file(tmp_path, processes):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(FileExistsError, match="notes' is not a folder. Choose another path"):
        write_processes(tmp_path / "notes", processes)
    assert (tmp_path / "notes").read_text() == "mine"


@pytest.mark.parametrize("text", ["[" * 10**5, "[]", "7", '{"format": []}', ""])
def test_an_index_of_anything_is_refused(folder, text):
    (folder / "processes.json").write_text(text)
    with pytest.raises(ModelFileError, match="processes.json' is not a readable index"):
        CrossSectionPredictor(folder)


def test_missing_files_are_named(folder, tmp_path):
    model_files(folder)[1].unlink()
    with pytest.raises(FileNotFoundError, match=r"1000022_1000023-\w+.h5"):
        CrossSectionPredictor(folder)
    with pytest.raises(FileNotFoundError, match="write_processes"):
        CrossSectionPredictor(tmp_path)


def test_it_works_without_tensorflow(folder):
    found = run_without_tensorflow(
        """
import json
predictor = __import__("tfbnn").hep.CrossSectionPredictor(sys.argv[1])
predictor.import_slha_string(sys.argv[2])
print(json.dumps(predictor.get_xsection((1000022, 1000023))))
""",
        folder,
        SPECTRUM,
    )
    predictor = CrossSectionPredictor(folder)
    predictor.import_slha_string(SPECTRUM)
    assert found == pytest.approx(predictor.get_xsection(NEUTRALINOS))


def test_rows_of_the_fit_are_mostly_inside(predictor):
    x = make_rows(50, 2, 1)[0]
    levels = []
    for m, n11 in x:
        predictor.set_parameters({"m": m, "n11": n11})
        levels.append(predictor.get_xsection(NEUTRALINOS)["trust_level"])
    assert set(levels) == {1}  # 99 % of 50 rows are all of them
