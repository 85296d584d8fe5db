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

pytestmark = pytest.mark.statistics  # a second process imports TensorFlow


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """What a program says that uses a copy of the package with all changes of the page."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "tfbnn", folder / "tfbnn")
    for change in (OPTION, LINE):
        subprocess.run(["git", "apply"], input=change, text=True, cwd=folder, check=True)
    program = [sys.executable, "-c", FIT]
    environment = {"PYTHONPATH": str(folder), "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_option_is_in_the_report_and_on_the_command_line(changed):
    assert "of the second detector" in changed["report"]
    assert re.search(r"--note NAME\s+a line that the report of the run repeats", changed["help"])


def test_the_line_is_in_the_report(changed):
    line = f"drawn in {changed['transitions']} transitions"
    assert line in changed["report"] and line in changed["diagnosis"]
