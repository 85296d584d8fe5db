"""Type checkers and editors see the names of the package; code of pages and studies uses only these."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.notebooks import cells, pages

ROOT = Path(__file__).parents[2]


@pytest.mark.fast
@pytest.mark.parametrize("name", ["tfbnn", "tfbnn.kernels"])
def test_a_stub_has_the_names_of_its_module(name):
    module = importlib.import_module(name)
    stub = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    named = {one.asname: getattr(module, one.asname) for node in imports for one in node.names}
    assert set(named) == set(module.__all__)
    for node in imports:
        for one in node.names:
            if node.module != "tfbnn":
                source = importlib.import_module(node.module)
                assert getattr(source, one.name) is named[one.asname]


def wrong_names(*arguments):
    """Messages of mypy on attributes, arguments and names that do not exist."""
    redefine = ["--allow-redefinition-new", "--local-partial-types"]  # as cells do
    options = ["--follow-imports=silent", "--ignore-missing-imports", "--explicit-package-bases"]
    mypy = [sys.executable, "-m", "mypy", *options, *redefine, *arguments]
    done = subprocess.run(mypy, cwd=ROOT, capture_output=True, text=True)
    assert re.search(r"^(Found|Success)", done.stdout, re.MULTILINE), done.stdout + done.stderr
    # A value that may be None, or of several types, is no such fault.
    absent = r"error: (Module.*|\"[A-Z]\w*\") has no attribute|Unexpected keyword|\[name-defined\]$"
    return [line for line in done.stdout.splitlines() if re.search(absent, line)]


@pytest.mark.processes
def test_studies_name_what_there_is():
    """CI runs few of them."""
    assert wrong_names("benchmarks") == []


@pytest.mark.processes
def test_pages_name_what_there_is(tmp_path):
    """The site takes the outputs of pages from notebooks, so that its build does not run their code."""
    for name, page in pages().items():
        code = [cell["source"] for cell in cells(page) if cell["cell_type"] == "code"]
        text = re.sub(r"^%.*$", "", "\n".join(code), flags=re.MULTILINE)
        (tmp_path / f"{name.replace('/', '_')}.py").write_text(text, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(
        "import tfbnn\n\ntfbnn.load('model.h5', no_argument=1)\ntfbnn.BayesianMLP().predicts()\ntfbnn.no_name\n"
    )
    found = wrong_names(*sorted(tmp_path.glob("*.py")))
    assert len(found) == 3 and all("wrong.py" in line for line in found), found
