"""Provenance says in a file what it was told, and no more."""

import json

import pytest

from tfbnn.posterior.compression.record import Compression
from tfbnn.posterior.provenance import Provenance, WeightsOrigin

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


def test_what_is_read_is_written_in_its_order():
    found = Provenance.from_json(OF_A_FILE)
    assert json.dumps(found.to_json()) == json.dumps(OF_A_FILE)
    assert found.chain_weights == WeightsOrigin("stacking by PSIS-LOO", 9, -1.0, -0.5)
    assert found.seed == 3 and found.bias is found.kernel is None


def test_what_is_stated_anew_takes_the_place_of_what_was():
    record = Compression("stride", 2, 2, 9, 9, [1, 1], 4, {"num_rows": 1})
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
