"""Notebooks have the cells of their pages, in this version, and all cells were run."""

import json
import re

import pytest

from docs.notebooks import NOTEBOOKS, cells, pages
from tfbnn import __version__

pytestmark = pytest.mark.fast


def test_every_page_has_its_notebook():
    names = {
        str(path.relative_to(NOTEBOOKS).with_suffix("")) for path in NOTEBOOKS.rglob("*.ipynb")
    }
    assert len(names) > 10
    assert names == set(pages())


@pytest.mark.parametrize("name", pages())
def test_cells_are_those_of_the_page(name):
    notebook = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    sources = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    expected = [(cell["cell_type"], cell["source"]) for cell in cells(pages()[name])]
    assert sources == expected, "run python docs/notebooks.py"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert any(cell["outputs"] for cell in code)
    assert set(re.findall(r"library_version: +([\d.]+)", json.dumps(code))) <= {__version__}
    assert not any(one["output_type"] == "error" for cell in code for one in cell["outputs"])
