"""Settings of pretraining: which are refused, and what files say of them."""

import json

import numpy as np
import pytest

import tfbnn
from tfbnn.spec.settings_json import settings_from_json, settings_to_json


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"epochs": -1}, ValueError, "epochs must be at least 0"),
        ({"epochs": 2.0}, TypeError, "epochs must be an integer"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1"),
        ({"batch_size": "all"}, TypeError, "batch_size must be an integer"),
        ({"learning_rate": 0}, ValueError, "learning_rate must be > 0"),
        ({"learning_rate": np.nan}, ValueError, "learning_rate must be > 0"),
        ({"learning_rate": "1e-3"}, TypeError, "learning_rate must be a number"),
        ({"learning_rate_schedule": "linear"}, ValueError, "learning_rate_schedule .*'linear'"),
        ({"learning_rate_schedule": None}, TypeError, "learning_rate_schedule .*None"),
        ({"early_stopping": 0}, ValueError, "early_stopping must be at least 1"),
        ({"early_stopping": True}, TypeError, "early_stopping must be an integer"),
        ({"newton_iterations": -1}, ValueError, "newton_iterations .*-1"),
        ({"newton_iterations": "many"}, TypeError, "newton_iterations .*'many'"),
        ({"validation_split": -0.1}, ValueError, "validation_split must be >= 0 and < 1"),
        ({"validation_split": 1.0}, ValueError, "validation_split must be >= 0 and < 1"),
        ({"validation_split": np.nan}, ValueError, "validation_split"),
        ({"validation_split": None}, TypeError, "validation_split must be a number"),
        ({"search_rows": 0}, ValueError, "search_rows must be at least 1"),
        ({"search_rows": 1e5}, TypeError, "search_rows must be an integer"),
        ({"largest_misfit": 0.0}, ValueError, "largest_misfit must be > 0"),
        ({"largest_misfit": "1"}, TypeError, "largest_misfit must be a number"),
        ({"epoch": 3}, TypeError, "epoch"),
    ],
    ids=str,
)
def test_bad_settings_of_pretraining_are_refused(settings, error, match):
    with pytest.raises(error, match=match):
        tfbnn.Pretraining(**settings)


def read(entry):
    return settings_from_json(json.loads(json.dumps(entry)), {"Pretraining": tfbnn.Pretraining})


def test_files_say_which_share_is_held_out():
    settings = tfbnn.Pretraining(validation_split=np.float32(0.25), num_starts=7)
    entry = settings_to_json(settings)
    assert entry["validation_split"] == 0.25 and read(entry) == settings


def test_files_from_before_there_was_a_share_hold_nothing_out():
    entry = settings_to_json(tfbnn.Pretraining(epochs=3))
    del entry["validation_split"]
    assert read(entry) == tfbnn.Pretraining(epochs=3, validation_split=0.0)
