"""Provenance says in a file what it was told, and no more."""

import json

import pytest

from tests.support.model_file_edits import craft, rewrite
from tfbnn.cli import main
from tfbnn.posterior.provenance import Compression, Provenance, WeightsOrigin
from tfbnn.storage import write_model

OF_A_FILE = {
    "created_at": "2026-01-01",
    "seed": 3,
    "bias": None,
    "chain_weights": {
        "method": "stacking by PSIS-LOO", "num_rows": 9,
        "log_score_uniform": -1.0, "log_score_stacked": -0.5,
    },
    "entry of a later release": {"others": 1},
    "others": 2,
    "self": 3,
}  # fmt: skip

SIZES = {"average": 0.1, "largest": 0.5}
CHANGE = {"num_rows": 1, "mean_stddev": -0.1, "mean": SIZES, "stddev": SIZES, "quantiles": SIZES}
RECORD = {
    "method": "stride", "num_draws": 2, "num_distinct": 2, "num_available": 9, "num_candidates": 9,
    "draws_per_chain": [1, 1], "num_inputs": 4, "change": CHANGE,
}  # fmt: skip


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


def compression(**entries):
    return "compression", RECORD | entries


def change(**entries):
    return compression(change=CHANGE | entries)


def weights(**entries):
    return "chain_weights", OF_A_FILE["chain_weights"] | entries


MISSING = {key: entry for key, entry in RECORD.items() if key != "num_candidates"}
ODD = {
    "a text for a count": compression(num_draws="many"),
    "no draws": compression(num_draws=0),
    "a fraction for a count": compression(num_available=9.0),
    "more different draws than draws": compression(num_distinct=3),
    "more draws than there were": compression(num_available=1),
    "a number for a method": compression(method=3),
    "one number for all chains": compression(draws_per_chain=2),
    "an entry missing": ("compression", MISSING),
    "an entry too many": compression(x=1),
    "a change that is none": compression(change=[]),
    "a text for a size": change(mean=SIZES | {"average": "small"}),
    "a negative size": change(mean=SIZES | {"largest": -1}),
    "a number too large for a float": change(mean_stddev=10**400),
    "a score that is a text": weights(log_score_stacked="high"),
    "no held-out rows": weights(num_rows=0),
    "a seed that is a text": ("seed", "3"),
    "a text for the draws that were asked for": ("num_results_requested", "many"),
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
    craft(path, rewrite("provenance", "compression", "num_distinct", value="2"))
    assert main(["info", str(path), "--trusted"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "compression.num_distinct must be an integer, 1 or more" in err
