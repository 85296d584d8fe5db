"""Documents name what is there: files that they link to, paths in code spans, imports."""

import json
import re
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path

import pytest

from tfbnn import __version__

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "developers" / "decisions"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
CELL = re.compile(r"^```\{code-cell\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`([^`\n]+)`")
FOLDERS = (".ci/", "benchmarks/", "docs/", "tests/", "tfbnn/")

pytestmark = pytest.mark.fast


def test_what_a_document_names_exists():
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        named = [document.parent / link for link in LINK.findall(text)]
        words = " ".join(CODE_SPAN.findall(text)).split()
        named += [ROOT / word for word in words if word.startswith(FOLDERS)]
        assert [str(path) for path in named if not path.exists()] == [], document


def test_the_scripts_that_cells_import_exist():
    found = set()
    for document in DOCUMENTS:
        for cell in CELL.findall(document.read_text(encoding="utf-8")):
            found.update(re.findall(r"^\s*(?:from|import) (benchmarks[\w.]*)", cell, re.MULTILINE))
    assert found and all(find_spec(name) for name in found), found


def test_every_decision_is_in_the_index():
    index = (DECISIONS / "index.md").read_text(encoding="utf-8")
    assert sorted(LINK.findall(index)) == sorted(path.name for path in DECISIONS.glob("0*.md"))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("CITATION.cff", r"^version: (.+)$"),
        ("codemeta.json", r'^  "version": "(.+)",$'),
        ("conda/meta.yaml", r'^\{% set version = "(.+)" %\}$'),
    ],
)
def test_metadata_are_of_this_version(path, line):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.findall(line, text, re.MULTILINE) == [__version__]


def test_other_packagings_need_what_setup_cfg_says():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    needed = set(setup["options"]["install_requires"].split())
    of_fits = {
        line for line in setup["options.extras_require"]["fit"].split("\n") if line[:1] != "#"
    }
    recipe = (ROOT / "conda/meta.yaml").read_text(encoding="utf-8").replace(" >=", ">=")
    packages = set(re.findall(r"^    - (\S+[>=]\S+)$", recipe, re.MULTILINE))
    assert packages - {"python>=3.11", "setuptools>=77"} == needed | (of_fits - {""})
    meta = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
    listed = {entry["name"].lower() + entry["version"] for entry in meta["softwareRequirements"]}
    assert listed == needed | {f"python{setup['options']['python_requires']}"}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900
