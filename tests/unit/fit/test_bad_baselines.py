"""Settings and numbers that no baseline can use are refused before TensorFlow is imported."""

import numpy as np
import pytest

import tfbnn
from tfbnn import Pretraining

X, Y = np.random.default_rng(0).normal(size=(12, 2)), np.zeros(12)
NOTHING = Pretraining(epochs=0, newton_iterations=0)
FITS = ("fit_map", "fit_ensemble", "fit_laplace")


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(
    "settings, message",
    [
        ({"pretraining": None}, "gives what pretraining finds, received pretraining=None"),
        ({"pretraining": NOTHING}, "gives what pretraining finds"),
        ({"pretraining": 3}, "pretraining must be a tfbnn.Pretraining"),
        ({"pretraining": Pretraining(early_stopping=2)}, "early_stopping needs validation rows"),
        ({"seed": -1}, "seed"),
        ({"noise_scale": [1.0]}, "noise_scale"),
        ({"validation_data": X}, "validation_data must be"),
    ],
)
def test_settings_are_checked_first(fit, settings, message):
    model = tfbnn.BayesianMLP([2, 3, 1])
    with pytest.raises((TypeError, ValueError), match=message):
        getattr(model, fit)(X, Y, **settings)
    with pytest.raises(tfbnn.NotFittedError):
        model.predict(X)


@pytest.mark.parametrize(
    "fit, settings, message",
    [
        ("fit_ensemble", {"num_members": 0}, "num_members must be"),
        ("fit_ensemble", {"pretraining": Pretraining(num_starts=9)}, "num_starts .*least 10.* 9"),
        ("fit_laplace", {"num_results": 0}, "num_results must be"),
    ],
)
def test_numbers_are_checked_first(fit, settings, message):
    with pytest.raises(ValueError, match=message):
        getattr(tfbnn.BayesianMLP([2, 3, 1]), fit)(X, Y, **settings)


def test_laplace_refuses_a_matrix_that_is_too_large():
    model = tfbnn.BayesianMLP([2, 100, 90, 1])
    with pytest.raises(ValueError, match="at most 8000 parameters.*this model has 9489"):
        model.fit_laplace(X, Y)
