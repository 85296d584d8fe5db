"""`load(untrusted=True)`: the same model, and a child process whose every failure is an error."""

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import warnings
from functools import partial

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.linearised import linearised_ensemble
from tests.support.marks import statistics_but
from tests.support.model_file_edits import THETA, craft, replace, set_one
from tfbnn.spec.rows import Rows
from tfbnn.storage import read_model, write_model
from tfbnn.storage.format import schema
from tfbnn.storage.model import untrusted as foreign
from tfbnn.storage.model.contents import to_arrays

NAMED = {
    "feature_names": ("mass", "naïve λ"),
    "provenance": {"seed": 3},
    "row_noise": True,
    "chain_weights": [0.3, 0.7],
}


def calibrated():
    """An Ensemble with scores, bars by the misfit and all that goes with them."""
    ensemble, (x, y) = synthetic_ensemble(), make_rows(60, 2, 1)
    ensemble = dataclasses.replace(ensemble, draws=0.01 * ensemble.draws)  # networks that agree
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    model._keep(Rows(x, y, None, None), ensemble)
    model.calibrate(method="loo", scale="misfit")
    return model.posterior


ENSEMBLES = {
    "many draws": partial(synthetic_ensemble, (3, 8, 2), num_results=500),
    "names, row noise, weights": partial(synthetic_ensemble, dtype="float32", **NAMED),
    "one target as a vector": partial(synthetic_ensemble, vector_target=True),
    "around a mode": partial(linearised_ensemble, dtype="float32"),
    "calibrated": calibrated,
}


@pytest.fixture
def saved(tmp_path):
    write_model(synthetic_ensemble(dtype="float32"), tmp_path / "model.h5")
    return tmp_path / "model.h5"


@pytest.mark.parametrize("name", statistics_but(["many draws", "calibrated"], ENSEMBLES))
def test_the_child_reads_the_same_model(tmp_path, name):
    path = tmp_path / "model.h5"
    write_model(ENSEMBLES[name](), path)
    own, foreign_one = (
        to_arrays(read_model(path, untrusted=flag), "now") for flag in (False, True)
    )
    assert foreign_one.keys() == own.keys()
    for name, array in own.items():
        found = foreign_one[name]
        assert (found.dtype, found.shape) == (array.dtype, array.shape), name
        assert found.tobytes() == array.tobytes(), name


def test_the_child_says_what_is_wrong(saved):
    craft(saved, replace(THETA, set_one(np.nan)))
    with pytest.raises(tfbnn.ModelFileError, match=r"model\.h5': posterior/theta must be finite"):
        tfbnn.load(saved, untrusted=True)


def test_it_works_in_a_script_without_a_main_guard_and_in_a_thread(saved, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, threading, tfbnn\n"
        "def load():\n"
        "    print(tfbnn.load(sys.argv[1], untrusted=True).posterior.num_draws)\n"
        "load()\n"
        "thread = threading.Thread(target=load)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    # Neither modules in the current folder nor environment variables reach the child.
    (tmp_path / "h5py.py").write_text("raise SystemExit('the wrong h5py')")
    done = subprocess.run(
        [sys.executable, "-P", str(script), str(saved)],
        cwd=tmp_path,
        env=os.environ | {"HDF5_PLUGIN_PATH": str(tmp_path), "PYTHONWARNINGS": "error"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["30", "30"], done.stderr


def test_no_file_is_left_open_and_no_process_behind(saved):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        before = sorted(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else None
        tfbnn.load(saved, untrusted=True)
    if before is not None:
        assert sorted(os.listdir("/proc/self/fd")) == before
    assert [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)] == []


# Children that misbehave.


@pytest.fixture
def child(tmp_path, monkeypatch):
    """A function that puts other code in the place of the child."""

    def install(code):
        script = tmp_path / "child"
        script.write_text(
            f"#!{sys.executable}\nimport json, os, signal, sys, time\n"
            "def say(text, size=None):\n"
            "    text = text if isinstance(text, bytes) else json.dumps(text).encode()\n"
            "    size = len(text) if size is None else size\n"
            "    sys.stdout.buffer.write(size.to_bytes(8, 'little') + text)\n"
            "    sys.stdout.flush()\n" + code
        )
        script.chmod(0o755)
        monkeypatch.setattr(foreign.sys, "executable", str(script))

    return install


READY = "sys.stdout.buffer.write(b'ready\\n'); sys.stdout.flush()\n"
NAMES = f"DATASETS = {schema.DATASETS!r}\n"  # to import it there takes 0.2 s


def says(dtype, shape):
    """Code that announces datasets of this dtype and shape, both as code."""
    return f"{READY}{NAMES}say({{name: [{dtype}, {shape}] for name, d in DATASETS.items()}})\n"


FATAL = {
    "a crash": (READY + "os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
    "an exit": (READY + "sys.exit(7)", "exit code 7"),
    "nothing": (READY, "exit code 0"),
    "a header of which half is there": (READY + "say(b'{}', 9)", "exit code 0"),
    "a header of no end": (READY + "say(b'', 2**60)", "foreign files fail"),
    "another object": (READY + "say({'code': ['<f4', [1]]})", "must send the known datasets"),
    "objects": (says("'|O8'", "[1]"), "known dtype and shape"),
    "a shape of texts": (says("d[0][0]", "'ab'"), "known dtype and shape"),
    "arrays larger than allowed": (says("d[0][0]", "[2**30]"), "at most 2147483648 bytes"),
    "arrays that do not come": (says("d[0][0]", "[9]"), "exit code 0"),
    "more bytes than there are": (
        says("d[0][0]", "[9]") + "sys.stdout.buffer.write(bytes(10**6))",
        "foreign files fail",
    ),
    "control characters": (READY + "say('bad \\x1b[31m file')", r"bad \?\[31m file"),
}


@pytest.mark.parametrize(("code", "message"), FATAL.values(), ids=FATAL)
def test_whatever_the_child_does_is_an_error(saved, child, code, message):
    child(code)
    with pytest.raises(tfbnn.ModelFileError, match=rf"(?s)model\.h5.*{message}"):
        tfbnn.load(saved, untrusted=True)


def test_wrong_arrays_of_a_child_are_checked_again(saved, child):
    child(
        READY
        + NAMES
        + "shapes = {'chain': 2, 'draw': 15, 'param': 22, 'input': 2, 'column': 2, 'row': 10}\n"
        "header = {n: [d[0], [shapes.get(k, 2) for k in ks]] for n, (d, ks) in DATASETS.items()}\n"
        "say(header)\nsize = {'f4': 4, 'f8': 8, 'i4': 4, 'u1': 1}\n"
        "for dtype, shape in header.values():\n"
        "    count = size[dtype[1:]]\n"
        "    for length in shape:\n"
        "        count *= length\n"
        "    sys.stdout.buffer.write(bytes(count))\n"
    )
    with pytest.raises(tfbnn.ModelFileError, match=r"model\.h5.*not a readable.*JSON"):
        tfbnn.load(saved, untrusted=True)


def test_a_child_that_takes_too_long_is_ended(saved, child, monkeypatch):
    child(READY + "time.sleep(600)")
    monkeypatch.setattr(foreign, "_START_SECONDS", 0.5)
    with pytest.raises(tfbnn.ModelFileError, match=f"ended by {signal.SIGKILL.name}"):
        tfbnn.load(saved, untrusted=True)


def test_a_child_that_cannot_start_is_not_a_fault_of_the_file(saved, child):
    child("raise ImportError('no h5py here')")
    with pytest.raises(ChildProcessError, match="did not start .*no h5py here.*untrusted=False"):
        tfbnn.load(saved, untrusted=True)


def test_no_process_at_all_is_not_a_fault_of_the_file(saved, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(foreign.sys, "executable", "/nowhere/python")
        with pytest.raises(
            ChildProcessError, match="did not start .*/nowhere/python.*untrusted=False"
        ):
            tfbnn.load(saved, untrusted=True)

    def full():
        raise FileNotFoundError("No usable temporary directory")

    monkeypatch.setattr(foreign.tempfile, "TemporaryFile", full)
    with pytest.raises(ChildProcessError, match="did not start .No usable temporary directory"):
        tfbnn.load(saved, untrusted=True)


@pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")
def test_the_child_can_open_nothing_and_has_limits(saved):
    code = """
import codecs, resource, socket, sys
from tfbnn.storage.model import untrusted_child as child
codecs.lookup("ascii")
child._limit_resources(1000)
attempts = {
    "open": lambda: open("/etc/hostname"),
    "socket": socket.socket,
    "memory": lambda: bytearray(2**31),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except (OSError, MemoryError):
        print(name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["open", "socket", "memory"], done.stderr


@pytest.mark.parametrize("value", [1, "yes", None])
def test_untrusted_is_a_boolean(saved, value):
    with pytest.raises(TypeError, match="untrusted must be True or False"):
        tfbnn.load(saved, untrusted=value)
