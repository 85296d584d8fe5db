"""Bad settings of pretraining."""

import numpy as np
import pytest

import tfbnn


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"epochs": -1}, ValueError, "epochs must be at least 0"),
        ({"epochs": 2.0}, TypeError, "epochs must be an integer"),
        ({"epochs": None}, TypeError, "epochs must be an integer"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1"),
        ({"batch_size": "all"}, TypeError, "batch_size must be an integer"),
        ({"learning_rate": 0}, ValueError, "learning_rate must be > 0"),
        ({"learning_rate": -1e-3}, ValueError, "learning_rate must be > 0"),
        ({"learning_rate": np.nan}, ValueError, "learning_rate must be > 0"),
        ({"learning_rate": "1e-3"}, TypeError, "learning_rate must be a number"),
        ({"learning_rate_schedule": "linear"}, ValueError, "learning_rate_schedule .*'linear'"),
        ({"learning_rate_schedule": None}, ValueError, "learning_rate_schedule .*None"),
        ({"early_stopping": 0}, ValueError, "early_stopping must be at least 1"),
        ({"early_stopping": True}, TypeError, "early_stopping must be an integer"),
        ({"newton_iterations": -1}, ValueError, "newton_iterations .*-1"),
        ({"newton_iterations": "many"}, TypeError, "newton_iterations .*'many'"),
        ({"epoch": 3}, TypeError, "epoch"),
    ],
    ids=str,
)
def test_bad_settings_of_pretraining_are_refused(settings, error, match):
    with pytest.raises(error, match=match):
        tfbnn.Pretraining(**settings)
