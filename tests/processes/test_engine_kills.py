"""A real fit in a process of its own, killed again and again, ends with the bits of one that was not."""

import os
import signal
import subprocess
import sys
import time

import numpy as np

import tfbnn
from tests.support.durability import fit_to_kill
from tfbnn.storage.run.folder import RunFolder


def transitions(folder):
    """Transitions that the slower chain has committed."""
    run = RunFolder.find(folder)
    checkpoints = [run.checkpoint(group) for group in range(run.num_groups)] if run else [None]
    return min(0 if found is None else found.counters["transition"] for found in checkpoints)


def started(command, folder, after):
    """A process that works at the run, after its first commit beyond so many transitions."""
    process = subprocess.Popen(
        [sys.executable, *command], stderr=subprocess.PIPE, text=True, cwd=os.path.dirname(folder)
    )
    until = time.monotonic() + 120
    while transitions(folder) <= after:
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            raise AssertionError(process.communicate()[1])
        time.sleep(0.03)
    return process


def test_two_kills_and_a_stop_leave_no_trace(tmp_path):
    """One kill falls into warm-up, one into sampling; the stop is SIGTERM."""
    folder = str(tmp_path / "run")
    child = ["-m", fit_to_kill.__name__, folder]
    for at_least in (40, 200):
        process = started(child, folder, max(at_least, transitions(folder)))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    before = transitions(folder)
    resume = ["-m", "tfbnn", "resume", folder, "--commit-interval", "0", "--verbose", "0"]
    process = started(resume, folder, before)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 85
    assert f"Go on with: tfbnn resume {folder}" in said
    assert before < transitions(folder) < 1100
    model, _ = tfbnn.resume(folder, verbose=0)
    expected = fit_to_kill.fit()
    np.testing.assert_array_equal(model.posterior.draws, expected.posterior.draws)
    for name, values in expected.posterior.sample_stats.items():
        np.testing.assert_array_equal(model.posterior.sample_stats[name], values)
