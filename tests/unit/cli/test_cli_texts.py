"""The command line on columns of text: fit, predict, evaluate and info, in every format."""

import json

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tests.support.coded import (
    COLOURS,
    FRAME,
    NUM_ROWS,
    TARGETS,
    coded_ensemble,
    with_text,
    write_everywhere,
)
from tests.support.commands import QUICK, check_refusal
from tfbnn.fit.model import BayesianMLP
from tfbnn.spec.rows import data_hash, prepare_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model file, the table in all formats, and tables with faults."""
    folder = tmp_path_factory.mktemp("coded")
    write_everywhere(folder)
    BayesianMLP.from_ensemble(coded_ensemble()).save(folder / "model.h5")
    with_text("colour", "violet").assign(y=TARGETS).to_csv(folder / "violet.csv", index=False)
    with_text("ok", "maybe").assign(y=TARGETS).to_csv(folder / "maybe.csv", index=False)
    with_text("kind", None).assign(y=TARGETS).to_csv(folder / "gap.csv", index=False)
    return folder


def test_commands_take_every_format_and_inputs_of_text_and_flags_can_be_kept(run, folder):
    scores = run("evaluate model.h5 t.csv")[1]
    mean = tfbnn.load(folder / "model.h5").predict(FRAME).mean[:, 0]
    code, expected, err = run("predict model.h5 t.csv --keep ok,colour,mass,kind")
    assert (code, err) == (0, "")
    first = expected.splitlines()[1].split(",")[:4]
    assert first == ["True", "blue", str(FRAME["mass"][0]), "left"]
    for path in folder.glob("t.*"):
        found = run(f"predict model.h5 {path.name} --keep ok,colour,mass,kind")
        assert found == (0, expected, ""), path.name
        assert run(f"evaluate model.h5 {path.name}") == (0, scores, ""), path.name
        assert run(f"predict model.h5 {path.name} --keep colour,ok -o kept.npz")[0] == 0
        with np.load(folder / "kept.npz") as kept:
            assert kept["colour"].tolist() == FRAME["colour"].tolist()
            assert kept["ok"].tolist() == FRAME["ok"].astype(str).tolist()
            np.testing.assert_allclose(kept["mean"], mean, rtol=1e-8)


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("violet.csv", ["'colour'", "'blue', 'green', 'naïve λ', received 'violet'", "(violet.csv, line 5)"]),
        ("maybe.csv", ["column 'ok'", "'False', 'True', received 'maybe'", "(maybe.csv, line 5)"]),
        ("gap.csv", ["gap.csv, line 5, column kind: expected a value, got an empty cell"]),
    ],
)  # fmt: skip
def test_what_the_fit_has_not_seen_is_refused_by_its_line(run, command, table, words):
    check_refusal(run(f"{command} model.h5 {table}"), *words)


def test_rows_of_other_files_are_counted_from_their_beginning(run, folder):
    frame = pd.concat([FRAME] * 60, ignore_index=True)
    columns = {name: frame[name].to_numpy() for name in ("mass", "ok", "mix")}
    kind, colour = np.asarray(frame["kind"]).astype(str), frame["colour"].to_numpy().astype(str)
    colour[1234] = "violet"
    np.savez(folder / "long.npz", **columns, kind=kind, colour=colour)
    words = "received 'violet' in row 234 (long.npz, row 1234)"
    check_refusal(run("predict model.h5 long.npz -o out.csv"), words)


def test_missing_columns_are_those_of_the_table(run, folder):
    FRAME[["mass", "mix"]].to_csv(folder / "less.csv", index=False)
    words = "no column colour, ok, kind; its columns are mass, mix"
    check_refusal(run("predict model.h5 less.csv"), words)


def test_info_names_columns_values_and_inputs(run):
    code, out, _ = run("info model.h5")
    line = next(line for line in out.splitlines() if line.startswith("Features"))
    assert "mass, colour (blue, green, naïve λ), ok (true or false), kind (left, right)" in line
    assert "Inputs" in out and "colour=blue, colour=green" in out
    assert json.loads(run("info model.h5 --json")[1])["coding"][1]["values"] == [*COLOURS]


def test_values_move_no_cursor(run, folder):
    evil = "\x1b[2Jred"
    ensemble = coded_ensemble(FRAME.assign(colour=np.where(FRAME["ok"], evil, "blue")))
    BayesianMLP.from_ensemble(ensemble).save(folder / "evil.h5")
    code, out, _ = run("info evil.h5")
    assert code == 0 and "\x1b" not in out and "\\x1b[2Jred" in out
    err = run("predict evil.h5 t.csv")[2]
    assert "\x1b" not in err and "received 'green'" in err


# ----------------------------------------------------------------------------------------
# fit
# ----------------------------------------------------------------------------------------


@pytest.fixture
def read_only(run, monkeypatch):
    """Runs `fit` up to where TensorFlow would start: lines of standard error."""

    def stop():
        raise ValueError("TensorFlow would start")

    monkeypatch.setattr("tfbnn.cli.fit.import_tensorflow", stop)

    def fit(options, target="y"):
        code, out, err = run(f"fit {options} --target {target}")
        assert (code, out) == (2, "")
        return [line for line in err.splitlines() if "Without -o" not in line]

    return fit


def test_columns_of_text_are_features_in_every_format(read_only, folder):
    said = "mass, colour (3 values), ok (true or false), kind (2 values), mix -> y."
    for path in folder.glob("t.*"):
        first, last = read_only(path.name)
        by_name = "colour (3 values), kind (2 values), mass, mix, "
        columns = by_name if path.suffix == ".h5" else said
        assert f"Read {NUM_ROWS} training rows: {columns}" in first, path.name
        assert "TensorFlow would start" in last


def test_text_that_differs_in_every_row_is_left_out_in_words(read_only, folder):
    names = [f"point {row}.slha" for row in range(NUM_ROWS)]
    FRAME.assign(file=names, y=TARGETS).to_csv(folder / "ids.csv", index=False)
    first, second, _ = read_only("ids.csv")
    assert first == "Warning: Left out columns of ids.csv whose text differs in every row: 'file'."
    assert "rows: mass, colour (3 values)" in second and "file" not in second
    assert "24 different values in 24 rows" in read_only("ids.csv --features mass,file")[-1]
    names[0] = names[1]
    FRAME.assign(file=names, y=TARGETS).to_csv(folder / "ids.csv", index=False)
    (line,) = read_only("ids.csv")
    assert "column 'file' of x has 23 different values in 24 rows" in line
    assert "leave the column out (--ignore on the command line)" in line
    assert "mass, colour (3 values), ok" in read_only("ids.csv --ignore file")[0]


def test_classes_go_with_columns_of_text(read_only):
    first, last = read_only("t.csv --likelihood bernoulli", target="kind")
    assert "rows: mass, colour (3 values), ok (true or false), mix, y -> kind." in first
    assert "TensorFlow would start" in last


def test_categories_of_numbers(read_only, folder):
    frame = FRAME.assign(year=2016 + np.arange(NUM_ROWS) % 3, y=TARGETS)
    frame.to_csv(folder / "years.csv", index=False)
    assert "mix, year -> y." in read_only("years.csv")[0]
    assert "mix, year (3 values) -> y." in read_only("years.csv --categories year")[0]
    chosen = "years.csv --features year,mass --categories year"
    assert "rows: year (3 values), mass -> y." in read_only(chosen)[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("t.csv --ignore colour --features mass", "not allowed with argument"),
        ("t.csv --ignore remark", "t.csv has no column remark"),
        ("t.csv --ignore y", "only one of feature, target, noise and groups"),
        ("t.csv --categories remark", "--categories names features, received remark"),
        ("t.csv --features mass --categories colour", "received colour. The features are mass"),
        ("gap.csv", "1 have none, received '' in row 3 (gap.csv, line 5)"),
        ("t.csv --validation violet.csv", "'violet' in row 3 (violet.csv, line 5)"),
        ("t.csv --noise-column colour", "column colour: expected numbers"),
        ("t.csv --x-transform log10", "columns with inputs of 0 and 1: 'colour', 'ok', 'kind'"),
    ],
)
def test_fit_refuses(run, folder, monkeypatch, options, words):
    monkeypatch.setattr("tfbnn.cli.fit.import_tensorflow", lambda: None)
    code, out, err = run(f"fit {options} --target y --layers 3")
    assert (code, out) == (2, "") and words in err


@pytest.mark.tensorflow
def test_fit_from_a_table_is_that_from_a_frame(run, folder, engine):
    options = "--no-pretraining -o fitted.h5"
    code, out, err = run(f"fit t.csv --target y {options}", *QUICK)
    assert code == 0, err
    model = tfbnn.load(folder / "fitted.h5")
    assert model.spec.layer_sizes == (7, 3, 1)
    rows = prepare_rows(model.spec, FRAME, TARGETS, None)
    assert model.posterior.provenance.data_sha256 == data_hash(rows)
    assert model.posterior.coding == rows.coding
    assert run("evaluate fitted.h5 t.csv")[0] == 0
