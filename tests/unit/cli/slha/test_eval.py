"""`tfbnn slha eval`: spectra and tables in, tables, JSON and XSECTION blocks out."""

import json
import os
from dataclasses import replace

import numpy as np
import pyslha
import pytest

from tests.support.builders import synthetic_ensemble
from tests.support.commands import check_refusal
from tests.support.cross_sections import (
    CHARGINO,
    MASS,
    MIXING,
    NEUTRALINOS,
    SPECTRUM,
    made_up_processes,
)
from tests.support.without_tensorflow import commands_without_tensorflow
from tfbnn.cli.slha.points import write_text
from tfbnn.data.tables import read_table
from tfbnn.fit.model import BayesianMLP
from tfbnn.hep import Calculation, CrossSectionPredictor, Process, write_processes

MASSES = (-2.5, -1.0, 3.0)
TABLE = "name,m,n11,m_c,pdf_rel\n" + "".join(
    f"p {number},{mass},1.75,4,{0.1 * number}\n" for number, mass in enumerate(MASSES)
)
HEADER = "point,pid1,pid2,energy_GeV,central_fb,err_down_fb,err_up_fb,trust"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folders of processes, spectra and a table with the same points."""
    folder = tmp_path_factory.mktemp("eval")
    first, second = made_up_processes()
    known = {"errors": {"scale": 0.3}, "citation": "Nobody et al.", "doi": "10.1000/182"}
    known["calculation"] = Calculation(qcd_order=1)
    first = Process(**vars(first) | known)
    write_processes(folder / "gauginos", [first, Process(**vars(second) | known)])
    write_processes(folder / "plain", made_up_processes())
    (folder / "spectra").mkdir()
    for number, mass in enumerate(MASSES):
        text = SPECTRUM.replace("-2.5 ", f"{mass} ")
        (folder / "spectra" / f"{number}.slha").write_text(text)
    (folder / "spectra" / "notes.txt").write_text("not a spectrum")
    (folder / "points.csv").write_text(TABLE)
    return folder


def expected(folder, pids, mass):
    predictor = CrossSectionPredictor(folder / "gauginos")
    predictor.set_parameters({"m": mass, "n11": 1.75, "m_c": 4.0})
    return [*predictor.get_xsection(pids).values()]


def test_one_spectrum_on_standard_output(run, folder):
    code, out, err = run("slha eval gauginos spectra/0.slha")
    assert code == 0
    header, *lines = out.splitlines()
    assert header == HEADER
    cells = [line.split(",") for line in lines]
    assert [row[:4] for row in cells] == [
        ["spectra/0.slha", "1000022", "1000023", "13000"],
        ["spectra/0.slha", "-1000024", "1000022", "8000"],
    ]
    for row, pids in zip(cells, (NEUTRALINOS, CHARGINO)):
        np.testing.assert_allclose([*map(float, row[4:])], expected(folder, pids, -2.5), rtol=1e-6)
    assert "2 cross sections of 1 point, predicted in" in err
    assert err.count("Cite: Nobody et al., doi:10.1000/182") == 1


def test_spectra_and_tables_are_alike(run, folder):
    options = "--process 1000023,1000022 --trusted"
    assert run(f"slha eval gauginos spectra -o spectra.csv {options}")[:2] == (0, "")
    assert run(f"slha eval gauginos --table points.csv -o points.npz {options}")[0] == 0
    by_file = read_table(folder / "spectra.csv", labels=["point"])
    by_row = read_table(folder / "points.npz", labels=["point"])
    assert by_file.columns == by_row.columns and len(by_file) == 3
    np.testing.assert_allclose(by_file.values, by_row.values, rtol=1e-7)
    assert by_file.texts["point"].tolist() == [f"spectra/{number}.slha" for number in range(3)]
    assert by_row.texts["point"].tolist() == ["0", "1", "2"]


@pytest.mark.parametrize(
    "command",
    [
        "gauginos --trusted spectra/0.slha --json spectra/1.slha",
        "--json gauginos spectra/0.slha spectra/1.slha --trusted",
        "gauginos spectra/0.slha --json spectra/1.slha",
    ],
)
def test_options_may_stand_between_spectra(run, command):
    code, out, _ = run(f"slha eval {command}")
    assert code == 0
    points = [row["point"] for row in json.loads(out)["cross_sections"]]
    assert points == ["spectra/0.slha"] * 2 + ["spectra/1.slha"] * 2


def test_points_of_a_table_have_names_and_errors_of_their_own(run, folder):
    command = "slha eval gauginos --table points.csv --id name --json --process 1000022,1000023"
    code, out, _ = run(f"{command} --error pdf=pdf_rel --error scale=0.4,0")
    assert code == 0
    content = json.loads(out)
    assert content["cite"] == ["Nobody et al., doi:10.1000/182"]
    rows = content["cross_sections"]
    assert [row["point"] for row in rows] == ["p 0", "p 1", "p 2"]
    for number, row in enumerate(rows):
        assert (row["pid1"], row["pid2"]) == NEUTRALINOS and type(row["trust"]) is int
        sizes = np.hypot(0.1 * number, [0.4, 0.0]) * row["central_fb"]
        others = [row["other_err_down_fb"], row["other_err_up_fb"]]
        np.testing.assert_allclose(others, sizes, rtol=1e-6)
        total = np.hypot(row["err_up_fb"], row["other_err_up_fb"])
        assert row["tot_err_up_fb"] == pytest.approx(total)


@pytest.mark.parametrize(
    ("ids", "error", "names"),
    [
        ("m", "0.2", ["-2.5", "-1", "3"]),
        ("m_c", "m_c", ["4", "4", "4"]),
        ("pdf_rel", "pdf_rel", ["0", "0.1", "0.2"]),
        ("name", "m_c", ["p 0", "p 1", "p 2"]),
    ],
)
def test_a_column_can_be_name_and_input_and_error(run, folder, ids, error, names):
    command = "slha eval gauginos --table points.csv --json"
    code, out, _ = run(f"{command} --id {ids} --error pdf={error}")
    assert code == 0
    rows = json.loads(out)["cross_sections"]
    assert [row["point"] for row in rows[::2]] == names
    bare = json.loads(run(f"{command} --add-errors")[1])["cross_sections"]
    for row, plain in zip(rows, bare, strict=True):
        assert (row["central_fb"], row["err_up_fb"]) == (plain["central_fb"], plain["err_up_fb"])
        assert plain["other_err_up_fb"] == pytest.approx(0.3 * plain["central_fb"])
    sizes = {"0.2": [0.2] * 3, "m_c": [4.0] * 3, "pdf_rel": [0.0, 0.1, 0.2]}[error]
    for row, size in zip(rows[::2], sizes):
        assert row["other_err_up_fb"] / row["central_fb"] == pytest.approx(np.hypot(size, 0.3))


def test_copies_have_the_blocks_and_the_originals_stay(run, folder):
    before = {path.name: path.read_bytes() for path in (folder / "spectra").iterdir()}
    code, out, _ = run("slha eval gauginos spectra -w copies --trusted")
    assert (code, out) == (0, "")
    assert {path.name: path.read_bytes() for path in (folder / "spectra").iterdir()} == before
    assert sorted(os.listdir(folder / "copies")) == ["0.slha", "1.slha", "2.slha"]
    for number, mass in enumerate(MASSES):
        text = (folder / "copies" / f"{number}.slha").read_text()
        assert text.encode().startswith(before[f"{number}.slha"])
        found = pyslha.readSLHA(text).xsections
        for pids in (NEUTRALINOS, CHARGINO):
            value = found[2212, 2212, *pids].xsecs[0].value
            assert value == pytest.approx(expected(folder, pids, mass)[0] / 1000, rel=1e-6)
    # Again in place, when asked to.
    result = run("slha eval gauginos copies -w copies")
    check_refusal(result, "0.slha is there already, and 2 more", "--ov")
    again = {path.name: path.read_bytes() for path in (folder / "copies").iterdir()}
    assert run("slha eval gauginos copies -w copies --overwrite")[0] == 0
    assert {path.name: path.read_bytes() for path in (folder / "copies").iterdir()} == again


def test_one_copy_is_a_file_and_a_table_can_go_with_it(run, folder):
    code, out, _ = run("slha eval gauginos spectra/0.slha -w one.out -o one.csv --add-errors")
    assert (code, out) == (0, "") and len(read_table(folder / "one.csv", labels=["point"])) == 2
    assert "XSECTION" in (folder / "one.out").read_text()
    up = read_table(folder / "one.csv", ["tot_err_up_fb"]).values[0, 0] / 1000
    assert f"+{up:.3g}, trust" in (folder / "one.out").read_text()


def test_copies_of_what_can_be_read_once_are_refused(run, folder):
    reader, writer = os.pipe()
    os.write(writer, SPECTRUM.encode())
    os.close(writer)
    check_refusal(run(f"slha eval gauginos /dev/fd/{reader} -w piped"), "can be read once")
    assert run(f"slha eval gauginos /dev/fd/{reader}")[0] == 0
    os.close(reader)
    assert not (folder / "piped").exists()


def test_bytes_that_are_no_text_stay_as_they_are(run, folder):
    odd = b"# \xe9 by a spectrum generator of 2004\r\n" + SPECTRUM.encode()
    (folder / "odd.slha").write_bytes(odd)
    assert run("slha eval gauginos odd.slha -w odd.out")[0] == 0
    assert (folder / "odd.out").read_bytes().startswith(odd)


def test_bad_spectra_are_named_and_can_be_left_out(run, folder):
    (folder / "mixed").mkdir()
    (folder / "mixed" / "a.spc").write_text("Block MASS\n")
    (folder / "mixed" / "b.SLHA").write_text(SPECTRUM)
    check_refusal(run("slha eval gauginos mixed"), "mixed/a.spc", "no entry MASS", "--skip-bad")
    code, out, err = run("slha eval gauginos mixed --skip-bad")
    assert code == 0 and "Left out: mixed/a.spc" in err
    assert len(out.splitlines()) == 3 and "mixed/b.SLHA" in out
    check_refusal(run("slha eval gauginos mixed/a.spc --skip-bad -o none.csv"))
    assert not (folder / "none.csv").exists()


def test_what_spectrum_programs_say_is_heeded(run, folder):
    (folder / "said").mkdir()
    for name, line in {"a": "4 tachyon", "b": "3 odd", "c": "3 odd"}.items():
        (folder / "said" / f"{name}.slha").write_text(f"{SPECTRUM}Block SPINFO\n {line}\n")
    check_refusal(run("slha eval gauginos said"), "said/a.slha", "invalid (SPINFO 4): tachyon")
    code, out, err = run("slha eval gauginos said --skip-bad")
    assert code == 0 and len(out.splitlines()) == 5
    warning = "Warning: said/b.slha: The spectrum program warns of this point (SPINFO 3): odd"
    assert err.count(warning) == err.count("SPINFO 3): odd") == 1


def test_points_outside_the_training_inputs_are_named(run, folder):
    (folder / "far").mkdir()
    for number in range(7):
        (folder / "far" / f"{number}.slha").write_text(SPECTRUM.replace("-2.5 ", f"{number}e3 "))
    err = run("slha eval gauginos far")[2]
    assert "trust is -1, outside the training inputs, at 6 points: far/1.slha, " in err
    assert "far/5.slha and 1 more." in err
    assert "trust is -1" not in run("slha eval gauginos far/0.slha --process 1000022,1000023")[2]


def test_a_bad_spectrum_is_found_before_any_copy_is_written(run, folder, monkeypatch):
    monkeypatch.setattr("tfbnn.cli.slha.points._AT_ONCE", 1)
    (folder / "last").mkdir()
    (folder / "last" / "a.slha").write_text(SPECTRUM)
    (folder / "last" / "z.slha").write_text("Block MASS\n")
    command = "slha eval gauginos last -w last_copies"
    check_refusal(run(command), "last/z.slha", "--skip-bad")
    assert run(f"{command} --skip-bad")[0] == 0
    assert [path.name for path in (folder / "last_copies").iterdir()] == ["a.slha"]


def test_a_point_that_cannot_be_predicted_is_named(run, folder, monkeypatch):
    monkeypatch.setattr("tfbnn.cli.slha.points._AT_ONCE", 1)
    (folder / "bad.csv").write_text(TABLE.replace("0.2", "-0.2"))
    options = "gauginos --table bad.csv --id name"
    message = (
        "The error 'pdf' must be >= 0 and finite, received [-0.2, -0.2] at p 2. It is relative"
    )
    check_refusal(run(f"slha eval {options} --error pdf=pdf_rel -o bad_out.csv"), message)
    first = made_up_processes()[0]
    inputs = {"n11": MIXING, "m": "abs(mass) - 2", "mass": MASS, "h": "log(m)"}
    model = BayesianMLP.from_ensemble(synthetic_ensemble(feature_names=("h", "n11")))
    write_processes(
        folder / "logs", [replace(first, model=model, inputs=inputs, calculation=Calculation(1))]
    )
    for command in ("eval logs spectra -w log_copies", "next logs spectra"):
        check_refusal(
            run(f"slha {command}"), "h = log(m) is not finite at spectra/1.slha, where m = -1."
        )
        assert not any((folder / "log_copies").iterdir()) or command.startswith("next")
        code, out, err = run(f"slha {command} --skip-bad")
        assert code == 0 and "Left out 1 point: h = log(m) is not finite at spectra/1.slha." in err
        assert command.startswith("eval") or "spectra/1" not in out and "spectra/2" in out
    assert [path.name for path in sorted((folder / "log_copies").iterdir())] == ["0.slha", "2.slha"]
    errors = "--skip-bad --error pdf=pdf_rel --error scale=.1,.2"
    monkeypatch.setattr("tfbnn.cli.slha.points._AT_ONCE", 3)
    code, out, _ = run(f"slha eval {options} {errors}")
    assert code == 0 and out.count("p 0") == out.count("p 1") == 2 and "p 2" not in out
    check_refusal(run("slha eval logs spectra/1.slha --skip-bad"), "No point is left")
    check_refusal(run(f"slha eval {options} --error pdf=1 --error pdf=2"), "pdf is given twice")


def test_a_pair_may_begin_with_an_antiparticle(run, folder):
    code, out, _ = run("slha eval gauginos spectra/0.slha --process -1000024,1000022")
    assert code == 0 and [line.split(",")[1] for line in out.splitlines()[1:]] == ["-1000024"]


@pytest.mark.parametrize("before", [None, "older"])
def test_a_copy_that_cannot_be_written_leaves_nothing(tmp_path, before):
    if before is not None:
        (tmp_path / "copy.slha").write_text(before)
    with pytest.raises(UnicodeEncodeError):
        write_text(str(tmp_path / "copy.slha"), "half of a character: \ud800")
    left = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert left == ({} if before is None else {"copy.slha": before})


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("gauginos", ["expected SPECTRA or --table"]),
        ("gauginos spectra --table points.csv", ["expected SPECTRA or --table"]),
        ("gauginos spectra --id name", ["--id goes with --table"]),
        ("gauginos --table points.csv -w copies", ["-w writes copies of spectra"]),
        ("gauginos spectra --error pdf=pdf_rel", ["names a column"]),
        ("gauginos spectra --error 0.05", ["expected NAME=X", "tfbnn slha eval --help"]),
        ("gauginos spectra --process 1,2", ["no process (1, 2)", "tfbnn slha eval: error"]),
        ("gauginos absent.slha", ["No file absent.slha"]),
        ("gauginos gauginos", ["has no file that ends in one of"]),
        ("spectra spectra", ["has no processes.json"]),
        ("plain spectra -w other", ["order of the calculation", "qcd_order = 1"]),
        ("gauginos spectra -o spectra/0.slha", ["would overwrite"]),
        ("gauginos spectra/0.slha -w spectra/0.slha", ["is there already"]),
        ("gauginos spectra spectra/0.slha -w twice", ["2 spectra to one file, twice/0.slha"]),
        ("gauginos --table points.csv --id nobody", ["nobody"]),
        ("gauginos --table points.csv --error pdf=nobody", ["nobody"]),
    ],
)
def test_what_is_refused(run, folder, command, words):
    before = sorted(path.name for path in folder.iterdir())
    check_refusal(run(f"slha eval {command}"), *words)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_an_input_that_the_table_lacks_is_named(run, folder):
    (folder / "few.csv").write_text("m,n11\n1,2\n")
    check_refusal(run("slha eval gauginos --table few.csv"), "few.csv has no column m_c")
    assert run("slha eval gauginos --table few.csv --process 1000022,1000023")[0] == 0


def test_a_folder_tells_what_it_holds(run):
    code, out, err = run("slha info gauginos")
    assert (code, err) == (0, "")
    first, second = out.split("\n\n")
    assert first.startswith("1000022 1000023 at 13000 GeV, fitted in fb\n")
    ranges = "m (MASS 1000022, -0.325 to 3.822 GeV), n11 (NMIX 1 1, "
    for words in (ranges, "scale: -30 % +30 %", "qcd_order 1", "10.1000"):
        assert words in first
    assert "of the function alone" in second and "fitted in pb" in second
    assert "XSECTION" not in run("slha info plain")[1]
    content = json.loads(run("slha info gauginos --json")[1])
    assert [process["energy"] for process in content] == [13000.0, 8000.0]
    assert content[0]["inputs"] == {"m": ["MASS", 1000022], "n11": ["NMIX", 1, 1]}
    assert content[0]["calculation"]["qcd_order"] == 1
    check_refusal(run("slha info spectra"), "has no processes.json")


def test_points_need_nothing_but_numpy_and_h5py(folder):
    points = ("--table points.csv", "spectra")
    commands = [f"slha eval gauginos {each} --trusted" for each in points]
    for code, out, err in commands_without_tensorflow(folder, commands):
        assert code == 0 and len(out.splitlines()) == 7, err
