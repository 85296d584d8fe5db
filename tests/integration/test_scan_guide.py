"""The pages of docs/guide about scans: their commands run as printed, with the same output except for the numbers."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import QUICK

ROOT = Path(__file__).parents[2]
PAGES = (
    "scan_make",
    "scan",
    "scan_files",
    "scan_errors",
    "scan_limits",
)  # in the order of their commands
NUMBER = re.compile(r"[-+]?\b\d[\d.]*(e[-+]?\d+)?\b|\b(nan|inf)\b")
# A tiny scan, and fits that end at once; what these print is not compared.
SMALL = ("points.py scan", "points.py scan --rows 60 --points 30")
LONG_FIT = re.compile("(--layers 20,20 )?--max-seconds (90|60)")
QUICK_FIT = " ".join(word for word in QUICK if word != "0") + " 0 --no-pretraining --no-jit-compile"

pytestmark = pytest.mark.statistics  # processes that import TensorFlow


def transcript():
    """Yield (command, lines that it prints) of the pages."""
    text = "\n".join((ROOT / f"docs/guide/{page}.md").read_text() for page in PAGES)
    for block in re.findall(r"^```\n(\$ .*?)^```$", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            lines = [line for line in lines if not re.fullmatch(r"\[.*\]", line)]
            yield command, lines


def masked(line):
    return NUMBER.sub("#", line.strip())


def test_the_pages_show_what_their_commands_print(tmp_path):
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "TF_CPP_MIN_LOG_LEVEL": "2"}
    compared, model = 0, None
    for command, lines in transcript():
        if command.startswith(("git ", "python3 -m venv", ".venv/bin/pip")):
            continue
        is_fit = " fit " in command
        small = LONG_FIT.sub(QUICK_FIT, command.replace(*SMALL))
        small = re.sub(r"^\.venv/bin/tfbnn", f"{sys.executable} -m tfbnn", small)
        small = re.sub(r"^\.venv/bin/python", sys.executable, small)
        if is_fit:
            output = tmp_path / command.split(" -o ")[1]
            if model is not None:  # one fit shows that fits go, the others have the same columns
                shutil.copy(model, output)
                continue
            model = output
        done = subprocess.run(
            small, shell=True, cwd=tmp_path, env=environment, text=True, capture_output=True
        )
        assert done.returncode in ((0, 3) if is_fit else (0,)), (small, done.stderr)
        if is_fit:
            continue
        printed = [masked(line) for line in (done.stdout + done.stderr).splitlines()]
        index = 0
        for line in lines:
            if line.strip() == "...":
                continue
            assert masked(line) in printed[index:], (small, line, printed[index:][:20])
            index = printed.index(masked(line), index)
            compared += 1
    assert compared > 30
