"""Check what benchmarks/studies/same_bits/run.py takes for a difference, on made-up results."""

import importlib
import json

import numpy as np
import pytest

RUN = {"verdict": "not converged", "ended": {"key": 1}, "share": 0.25, "text": "2 of 8 differ"}
OF_FILES = ("model file loaded", "run folder loaded")
WHOLE = {
    "draws": np.arange(6.0, dtype=np.float32),
    "run": np.array(json.dumps(RUN)),
    "report": np.array("R-hat 1.25\n  Next: resume('/old/3')\n  by then 700\nDraws 4"),
    "run folder/group/segment-000000.h5/arrays/theta": np.arange(4),
    "run folder/group/segment-000001.h5/arrays/theta": np.arange(2),
    "run folder/group/checkpoint-a.h5/arrays/state": np.arange(3),
}


@pytest.fixture
def differences(tmp_path):
    """Function (changes of the new side) -> the `Compared` of both sides."""
    script = importlib.import_module("benchmarks.studies.same_bits.run")

    def compare(**changes):
        for side, found in {"old": WHOLE, "new": WHOLE | changes}.items():
            files = {f"{kind}/draws": found["draws"] for kind in OF_FILES}
            (tmp_path / side).mkdir()
            found = {name: array for name, array in (found | files).items() if array is not None}
            np.savez(tmp_path / side / "found.npz", **found)
            np.savez(tmp_path / side / "of_others.npz", **files)
        return script.compare(tmp_path / "old", tmp_path / "new")

    return compare


def test_words_advice_segments_and_checkpoints_may_differ(differences):
    first, second, state = list(WHOLE)[-3:]
    run = {"verdict": "not converged", "share": 0.25, "text": "apart: 2 of 8", "begun": {"a": 2}}
    compared = differences(
        run=np.array(json.dumps(run)),
        report=np.array("R-hat: 1.25\n  Next: resume('/new/5')\n  by then 9\nKept draws\n  4"),
        **{first: np.arange(3), second: np.array([3, 0, 1]), state: np.arange(3) + 1},
    )
    assert compared.differences == []
    assert (compared.ended, compared.added) == (["run entry ended"], ["run entry begun"])


@pytest.mark.parametrize(
    "changes",
    [
        {"draws": np.nextafter(WHOLE["draws"], np.float32(9))},
        {"draws": WHOLE["draws"].astype(float)},
        {"run": np.array(json.dumps(RUN | {"share": None}))},
        {"run": np.array(json.dumps(RUN | {"ended": None}))},
        {"run": np.array(json.dumps(RUN | {"verdict": "converged"}))},
        {"run": np.array(json.dumps(RUN | {"text": "3 of 8 differ"}))},
        {"run": None},
        {"report": np.array("R-hat 1.26\nDraws 4")},
        {list(WHOLE)[-2]: np.arange(2) + 1},
        {list(WHOLE)[-2]: None},
    ],
)
def test_numbers_verdicts_and_arrays_may_not(differences, changes):
    assert differences(**changes).differences
