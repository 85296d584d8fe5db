"""Errors name the extra where scikit-learn is missing."""

import importlib
import sys

import pytest


def test_without_scikit_learn_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "tfbnn.sklearn", raising=False)
    with pytest.raises(ImportError, match=r"scikit-learn.* pip install 'tfbnn\[sklearn\]'"):
        importlib.import_module("tfbnn.sklearn")
