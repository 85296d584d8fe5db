"""The code of the documents, so that tests can run it."""

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def run_document(name):
    """Runs the Python blocks of a document under docs/, one after the other, as one program.

    Returns:
        Dict of all names that the program made.
    """
    path, code, inside = DOCS / name, [], False
    for line in path.read_text().splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            line = ""
        # Other lines are left empty, so that tracebacks have the numbers of the document.
        code.append(line if inside else "")
    names = {"__name__": "document"}
    exec(compile("\n".join(code), path, "exec"), names)
    return names
