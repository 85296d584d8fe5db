"""Make the notebooks of the repository out of tutorials and studies, with their outputs.

python docs/notebooks.py [--fresh] [name ...]

Makes notebooks/tutorials/first_fit.ipynb out of the page `tutorials/first_fit`, and so on. Executes a page if its code has
changed; else its outputs are kept and only the text is written anew. `--fresh` executes all. Pages are the sources:
tests/architecture/test_notebooks.py fails if a notebook has other cells.
"""

import argparse
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
CELL = re.compile(r"^```\{code-cell\}\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^]]*)\]\(([^)#]+)\.md(#[^)]*)?\)")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def pages() -> dict[str, Path]:
    """Return the pages with cells, as tutorials/NAME or studies/NAME -> path."""
    found = {}
    for folder in ("tutorials", "studies"):
        for path in sorted((ROOT / "docs" / folder).glob("*.md")):
            if CELL.search(path.read_text(encoding="utf-8")):
                found[f"{folder}/{path.stem}"] = path
    return found


def cells(path: Path) -> list[dict]:
    """Return the cells of a page in the format of notebooks, without outputs."""
    text = path.read_text(encoding="utf-8").split("---\n", 2)[2]
    found = []
    for number, source in enumerate(CELL.split(text)):
        source = source.strip("\n")
        if number % 2:
            found.append({"cell_type": "code", "execution_count": None, "outputs": []})
        elif source:
            found.append({"cell_type": "markdown"})
            source = LINK.sub(lambda link: _linked(path, *link.groups()), source)
        else:
            continue
        found[-1] |= {
            "id": f"cell-{len(found)}",
            "metadata": {},
            "source": source,
        }
    return found


def _linked(page: Path, text: str, link: str, anchor: str | None) -> str:
    """Return a link to a page as one of a notebook: with a text, to a notebook where there is one."""
    target = (page.parent / f"{link}.md").resolve()
    text = text or re.search(r"^# (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)[1]
    if CELL.search(target.read_text(encoding="utf-8")):
        return f"[{text}](../{target.parent.name}/{target.stem}.ipynb)"
    return f"[{text}](../../{target.relative_to(ROOT)}{anchor or ''})"


def notebook_of(path: Path, earlier: Path | None = None) -> Any:
    """Return the notebook of a page with outputs: those of an earlier one with the same code, or by running it.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell fails.
    """
    import nbformat  # a test reads the cells of pages in an environment without it
    from nbclient import NotebookClient

    notebook = nbformat.from_dict(
        {"cells": cells(path), "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    )
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if earlier:
        old = [cell for cell in nbformat.read(earlier, 4).cells if cell.cell_type == "code"]
        if [cell.source for cell in old] == [cell.source for cell in code]:
            for cell, before in zip(code, old, strict=True):
                cell.outputs, cell.execution_count = before.outputs, before.execution_count
            return notebook
    place = {"metadata": {"path": path.parent}}
    NotebookClient(notebook, timeout=600, coalesce_streams=True, resources=place).execute()
    for cell in notebook.cells:
        cell.metadata.clear()  # times of execution
    for cell in code:
        # Standard error has progress, and warnings that repeat what a report says.
        cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
    return notebook


def main(arguments: list[str] | None = None) -> None:
    """Write the notebooks of these pages, or of all."""
    import nbformat

    found = pages()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help="such as tutorials/first_fit")
    parser.add_argument("--fresh", action="store_true", help="run all of them")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(found):
        parser.error(f"no pages {sorted(unknown)}; there are {', '.join(found)}")
    for name in options.names or found:
        path = NOTEBOOKS / f"{name}.ipynb"
        notebook = notebook_of(found[name], None if options.fresh or not path.exists() else path)
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        kilobytes = path.stat().st_size / 1e3
        print(f"{path.relative_to(ROOT)}: {len(notebook.cells)} cells, {kilobytes:.0f} kB")


if __name__ == "__main__":
    main()
