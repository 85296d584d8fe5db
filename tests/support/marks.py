"""Markers of single parameters."""

import pytest


def statistics_but(kept, cases):
    """The parameters `cases`, of which the default run takes those in `kept` only."""
    return [
        case if case in kept else pytest.param(*_as_tuple(case), marks=pytest.mark.statistics)
        for case in cases
    ]


def _as_tuple(case):
    return case if isinstance(case, tuple) else (case,)
