"""The log of a C++ library: information is dropped, errors come out, also those that end all."""

import os
import subprocess
import sys

import pytest

from tfbnn.system import processes
from tfbnn.system.processes import is_news

CUDA = b"cuda_platform.cc:52] failed call to cuInit: X: "
LOG = b"0000 00:00:1795322789.552634    7883 "


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"I" + LOG + b"port.cc:153] oneDNN custom operations are on.\n", False),
        (b"W" + LOG + b"tensorflow/core/x.cc:1] a warning\n", False),
        (b"WARNING: All log messages before absl::InitializeLog() is called are written\n", False),
        (b"E" + LOG + CUDA + b"UNKNOWN ERROR (303)\n", False),
        (b"E" + LOG + CUDA + b"no device (100)\n", True),
        (b"E" + LOG + b"x.cc:1] an error\n", True),
        (b"F" + LOG + b"cpu_feature_guard.cc:1] built for AVX\n", True),
        (b"Traceback (most recent call last):\n", True),
        (b"WARNING: something else\n", True),
        (b"I am no line of a log\n", True),
    ],
)
def test_errors_are_news(line, expected):
    assert is_news(line) is expected


@pytest.mark.parametrize("ending", ["pass", "os.abort()", "raise KeyboardInterrupt"])
def test_what_is_said_last_comes_out(ending):
    code = f"""
import os, sys
from tfbnn.system.processes import only_news
with only_news():
    os.write(2, b"I0000 00:00:1.5 1 a.cc:1] no news\\n")
    os.write(2, b"F0000 00:00:1.5 1 a.cc:1] the end\\n")
    {ending}
print("after", file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "no news" not in done.stderr and "a.cc:1] the end\n" in done.stderr
    assert ("after" in done.stderr) == (ending == "pass")


def test_without_a_process_all_comes_out(capfd, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(processes.subprocess, "Popen", refuse)
    with processes.only_news():
        os.write(2, b"I0000 00:00:1.5 1 a.cc:1] heard\n")
    os.write(2, b"later\n")
    assert capfd.readouterr().err == "I0000 00:00:1.5 1 a.cc:1] heard\nlater\n"


def test_errors_inside_come_through():
    with pytest.raises(OSError, match="mine"), processes.only_news():
        raise OSError("mine")
