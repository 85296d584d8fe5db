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
        ({"learning_rate": 0}, ValueError, "learning_rate must be > 0"),
        ({"learning_rate": np.nan}, ValueError, "learning_rate must be > 0"),
        ({"learning_rate_schedule": "linear"}, ValueError, "learning_rate_schedule .*'linear'"),
        ({"early_stopping": 0}, ValueError, "early_stopping must be at least 1"),
        ({"newton_iterations": -1}, ValueError, "newton_iterations .*-1"),
        ({"validation_split": -0.1}, ValueError, "validation_split must be >= 0 and < 1"),
        ({"validation_split": 1.0}, ValueError, "validation_split must be >= 0 and < 1"),
        ({"search_rows": 0}, ValueError, "search_rows must be at least 1"),
        ({"largest_misfit": 0.0}, ValueError, "largest_misfit must be > 0"),
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
