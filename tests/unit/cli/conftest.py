"""Fixtures of commands that look at a run while it goes on."""

import pytest


@pytest.fixture
def meanwhile(monkeypatch):
    """A list of functions, of which one is called between each two looks at the run."""
    steps = []
    monkeypatch.setattr("tfbnn.cli.following.time.sleep", lambda seconds: steps.pop(0)())
    return steps
