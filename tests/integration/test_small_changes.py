"""docs/developers/small_changes.md: its changes apply, and do what the page says."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/developers/small_changes.md"
OPTION, LINE = re.findall(r"^```diff\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
FIT = """
import contextlib, io, json, warnings
import numpy as np
import tfbnn
from tfbnn.cli import main

warnings.simplefilter("ignore")
x = np.linspace(-1.0, 1.0, 40)[:, None]
model = tfbnn.BayesianMLP([1, 2, 1])
run = model.fit_posterior(
    x, x[:, 0], note="of the second detector", num_chains=2, num_results=8, num_burnin_steps=8,
    pretraining=None, jit_compile=False, verbose=0,
)
text = io.StringIO()
with contextlib.redirect_stdout(text):
    main(["fit", "--help"])
print(json.dumps({
    "report": run.report(details=True),
    "diagnosis": "\\n".join(run.diagnosis.numbers()),
    "transitions": run.diagnosis.num_transitions,
    "help": text.getvalue(),
}))
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """A folder with a copy of the package, to which all changes of the page are made."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "tfbnn", folder / "tfbnn")
    for change in (OPTION, LINE):
        subprocess.run(["git", "apply"], input=change, text=True, cwd=folder, check=True)
    return folder


def test_the_changes_apply(changed):
    """Each file that they name is Python still, and has what they add."""
    for change in (OPTION, LINE):
        paths = re.findall(r"^\+\+\+ b/(.+)$", change, re.MULTILINE)
        added = re.findall(r"^\+(?!\+\+ )(.+)$", change, re.MULTILINE)
        text = "".join((changed / path).read_text() for path in paths)
        assert paths and added and all(line in text for line in added)
        for path in paths:
            compile((changed / path).read_text(), path, "exec")


@pytest.mark.slow
def test_the_option_and_the_line_are_in_the_report(changed):
    """Run it after a change of the page, or of a function that it changes: the fit is a process of its own."""
    program = [sys.executable, "-c", FIT]
    environment = {"PYTHONPATH": str(changed), "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(program, cwd=changed, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert "of the second detector" in told["report"]
    assert re.search(r"--note NAME\s+a line that the report of the run repeats", told["help"])
    line = f"drawn in {told['transitions']} transitions"
    assert line in told["report"] and line in told["diagnosis"]
