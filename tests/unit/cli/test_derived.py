"""`tfbnn compress`, `stack` and `export`: what they make, what they say and what they refuse."""

import json
import re

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows
from tests.support.commands import check_refusal
from tests.support.tables import write_csv


@pytest.fixture(scope="module")
def folder(folder):
    x, y = make_rows(400, 2, 1, seed=3)
    write_csv(folder / "new.csv", ["a", "b", "y"], np.column_stack([x, y]))
    return folder


def draws(path):
    return tfbnn.load(path).posterior.draws


def test_compress(run, folder):
    code, out, err = run("compress named.h5 -n 8 --reference points.csv -o small.h5")
    assert (code, err) == (0, "")
    assert "8 of 30 draws by kernel_thinning" in out and "of the mean stddev" in out
    assert re.search(r"^saved +small.h5, \d", out, re.MULTILINE)
    model, small = tfbnn.load(folder / "named.h5"), tfbnn.load(folder / "small.h5")
    x = make_rows(60, 2, 1)[0]
    expected = model.compress(8, x_reference=x)  # points.csv has the columns in another order
    np.testing.assert_array_equal(small.posterior.draws, expected.posterior.draws)
    assert (
        small.compression == expected.compression and small.compression.num_inputs == 58
    )  # two saved ones are kept apart
    assert small.posterior.target_names == ["y"]


def test_compress_by_stride_and_json(run, folder):
    code, out, err = run("compress named.h5 --num-draws 5 --method stride -o stride.h5 --json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["num_draws"], told["method"], told["saved"]) == (5, "stride", "stride.h5")
    assert told["bytes"] == (folder / "stride.h5").stat().st_size
    assert draws(folder / "stride.h5").shape == (1, 5, 22)


def test_stack(run, folder):
    code, out, err = run("stack named.h5 new.csv -o stacked.h5")
    assert (code, err) == (0, "")
    assert "stacking on validation rows, 400 rows; this is not the posterior" in out
    expected = tfbnn.load(folder / "named.h5").stack_chains(*make_rows(400, 2, 1, seed=3))
    stacked = tfbnn.load(folder / "stacked.h5").posterior
    np.testing.assert_allclose(stacked.chain_weights, expected.weights, rtol=1e-6)
    told = json.loads(run("stack named.h5 new.csv -o again.h5 --json")[1])
    np.testing.assert_allclose(told["weights"], expected.weights, rtol=1e-6)
    assert told["num_rows"] == 400 and told["saved"] == "again.h5"
    assert "stacking on validation rows" in run("info stacked.h5")[1]
    assert run("stack unnamed.h5 new.csv --target y -o out.h5")[0] == 0


def test_export_to_onnx(run, folder):
    onnx = pytest.importorskip("onnx")
    code, out, err = run("export named.h5 -o named.onnx")
    assert (code, err) == (0, "")
    assert re.search(r"^format +ONNX\ninputs +a, b\nsaved +named.onnx, ", out)
    metadata = {entry.key: entry.value for entry in onnx.load(folder / "named.onnx").metadata_props}
    assert json.loads(metadata["feature_names"]) == ["a", "b"]
    told = json.loads(run("export named.h5 -o named.onnx --json")[1])  # replaces its own
    assert told["bytes"] == (folder / "named.onnx").stat().st_size and told["format"] == "ONNX"


def test_export_to_a_savedmodel(run, folder, monkeypatch):
    monkeypatch.setattr("tfbnn.cli.export.import_tensorflow", lambda: None)

    def write(model, path):
        (folder / path).mkdir()
        (folder / path / "saved_model.pb").write_bytes(bytes(1000))

    monkeypatch.setattr(tfbnn.BayesianMLP, "to_savedmodel", write)
    code, out, err = run("export named.h5 -o saved --json")
    told = {"format": "SavedModel", "feature_names": ["a", "b"], "classes": None}
    assert (code, err) == (0, "") and json.loads(out) == told | {"saved": "saved", "bytes": 1000}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("compress named.h5 -o named.h5", "would overwrite"),
        ("compress named.h5 --reference points.csv -o points.csv", "would overwrite"),
        ("compress named.h5 -o small.csv", "'.csv'"),
        ("compress named.h5", "-o"),
        ("compress named.h5 -n many -o out.h5", "'many'"),
        ("stack named.h5 new.csv -o named.h5", "would overwrite"),
        ("stack named.h5 new.csv -o new.csv", "would overwrite"),
        ("stack named.h5 -o out.h5", "VALIDATION"),
        ("export named.h5 -o named.h5", "would overwrite"),
        ("fit points.csv --target b --initial-state named.h5 -o named.h5", "would overwrite"),
        ("export named.h5 -o named.tflite", "an ONNX file"),
        ("export named.h5 -o rows.csv/saved", "is a file"),
    ],
)
def test_refused_before_any_work(run, folder, monkeypatch, command, words):
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    monkeypatch.setattr("tfbnn.cli.arguments.load", None)
    check_refusal(run(command), words)
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert after == before


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("compress named.h5 -n 31 -o out.h5", ["30", "31"]),
        ("compress named.h5 --reference new.csv.gz -o out.h5", ["No file"]),
        ("compress named.h5 --reference bb.csv -o out.h5", ["no column b", "Did you mean 'bb'?"]),
        ("stack unnamed.h5 new.csv -o out.h5", ["Add --target COLUMN"]),
        ("stack named.h5 points.csv -o out.h5", ["no column y"]),
    ],
)
def test_what_does_not_fit_the_model_is_refused(run, folder, command, words):
    (folder / "bb.csv").write_text("a,bb\n1,2\n")
    (folder / "out.h5").unlink(missing_ok=True)
    check_refusal(run(command), *words)
    assert not (folder / "out.h5").exists()
