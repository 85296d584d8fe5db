"""Fixtures that the tests of Keras models share."""

import pytest

from tfbnn.engine.keras import spec_of_model


@pytest.fixture
def derivatives_taken_for_granted(monkeypatch):
    """Models are not asked whether derivatives of all rows can be taken of them.

    The answer is one of the facts of a spec, and takes three quarters of the time that making one does.
    """
    monkeypatch.setattr(spec_of_model, "jacobian_obstacle", lambda *_: None)
