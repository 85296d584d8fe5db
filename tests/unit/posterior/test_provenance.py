"""Provenance says in a file what it was told, and no more."""

import json

import h5py
import pytest

from tests.support.model_file_edits import rewrite
from tfbnn.cli import main
from tfbnn.posterior.provenance import Compression, Provenance, WeightsOrigin
from tfbnn.storage import seal, write_model

OF_A_FILE = {
    "created_at": "2026-01-01",
    "seed": 3,
    "bias": None,
    "chain_weights": {
        "method": "stacking by PSIS-LOO",
        "num_rows": 9,
        "log_score_uniform": -1.0,
        "log_score_stacked": -0.5,
    },
    "entry of a later release": {"others": 1},
    "others": 2,
    "self": 3,
}

SIZES = {"average": 0.1, "largest": 0.5}
RECORD = {
    "method": "stride",
    "num_draws": 2,
    "num_distinct": 2,
    "num_available": 9,
    "num_candidates": 9,
    "draws_per_chain": [1, 1],
    "num_inputs": 4,
    "change": {
        "num_rows": 1,
        "mean_stddev": -0.1,
        "mean": SIZES,
        "stddev": SIZES,
        "quantiles": SIZES,
    },
}


def test_what_is_read_is_written_in_its_order():
    found = Provenance.from_json(OF_A_FILE)
    assert json.dumps(found.to_json()) == json.dumps(OF_A_FILE)
    assert found.chain_weights == WeightsOrigin("stacking by PSIS-LOO", 9, -1.0, -0.5)
    assert found.seed == 3 and found.bias is found.kernel is None


def test_what_is_stated_anew_takes_the_place_of_what_was():
    record = Compression(**RECORD)
    found = Provenance.from_json({"num_results_requested": 9, "seed": 3})
    found = found.stating(compression=record, num_results_requested=None)
    assert list(found.to_json()) == ["num_results_requested", "seed", "compression"]
    assert found.to_json()["num_results_requested"] is None
    assert Provenance.from_json(found.to_json()) == found


def test_column_names_are_those_that_are_said():
    assert Provenance().column_names == {}
    assert Provenance.from_json({"noise_columns": []}).column_names == {"noise_columns": []}


@pytest.mark.parametrize("name", ["chain_weights", "compression"])
@pytest.mark.parametrize("entry", [7, {}, {"method": "stride", "unknown": 1}])
def test_records_that_are_none_are_refused(name, entry):
    with pytest.raises(TypeError):
        Provenance.from_json({name: entry})


def with_entry(record, *path, value):
    """The record with another entry somewhere inside."""
    name, *rest = path
    return record | {name: with_entry(record[name], *rest, value=value) if rest else value}


def without(record, name):
    return {key: entry for key, entry in record.items() if key != name}


WEIGHTS = OF_A_FILE["chain_weights"]
ODD = {
    "a text for a count": ("compression", with_entry(RECORD, "num_draws", value="many")),
    "no draws": ("compression", with_entry(RECORD, "num_draws", value=0)),
    "a flag for a count": ("compression", with_entry(RECORD, "num_inputs", value=True)),
    "a fraction for a count": ("compression", with_entry(RECORD, "num_available", value=9.0)),
    "more different draws than draws": ("compression", with_entry(RECORD, "num_distinct", value=3)),
    "more draws than there were": ("compression", with_entry(RECORD, "num_available", value=1)),
    "a number for a method": ("compression", with_entry(RECORD, "method", value=3)),
    "one number for all chains": ("compression", with_entry(RECORD, "draws_per_chain", value=2)),
    "negative draws": ("compression", with_entry(RECORD, "draws_per_chain", value=[-1, 3])),
    "an entry missing": ("compression", without(RECORD, "num_candidates")),
    "an entry too many": ("compression", RECORD | {"x": 1}),
    "a change that is none": ("compression", with_entry(RECORD, "change", value=[])),
    "a change of nothing": ("compression", with_entry(RECORD, "change", value={"num_rows": 1})),
    "a text for a size": (
        "compression",
        with_entry(RECORD, "change", "mean", "average", value="small"),
    ),
    "a negative size": ("compression", with_entry(RECORD, "change", "mean", "largest", value=-1)),
    "a number too large for a float": (
        "compression",
        with_entry(RECORD, "change", "mean_stddev", value=10**400),
    ),
    "a score that is a text": (
        "chain_weights",
        with_entry(WEIGHTS, "log_score_stacked", value="high"),
    ),
    "no held-out rows": ("chain_weights", with_entry(WEIGHTS, "num_rows", value=0)),
    "a seed that is a text": ("seed", "3"),
    "trees of astronomical depth": ("max_tree_depth", 10**9),
    "a flag that is a number": ("jit_compile", 1),
    "versions that are a list": ("versions", ["2"]),
    "a kernel that is an object": ("kernel", {}),
    "networks that are no draws, of a number": ("not_sampled", 1),
    "names that are a text": ("target_names", "ab"),
}


@pytest.mark.parametrize("name, entry", ODD.values(), ids=ODD)
def test_odd_entries_are_refused_where_they_are_read(name, entry):
    assert Provenance.from_json({name: None}).to_json() == {name: None}
    with pytest.raises((TypeError, ValueError), match=name):
        Provenance.from_json({name: entry})


def test_a_file_with_an_odd_record_is_refused_whole(tmp_path, capsys, synthetic_ensemble):
    """`info` used to show half of it first."""
    path = tmp_path / "model.h5"
    write_model(synthetic_ensemble(provenance={"compression": RECORD}), path)
    assert main(["info", str(path), "--trusted"]) == 0
    assert "2 of 9 draws by stride" in capsys.readouterr().out
    with h5py.File(path, "r+") as file:
        rewrite("provenance", "compression", "num_distinct", value="2")(file)
    seal(path)
    assert main(["info", str(path), "--trusted"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "compression.num_distinct must be an integer, 1 or more" in err
