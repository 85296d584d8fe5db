"""Count lines of code: those with a token that is neither comment nor docstring nor blank.

python tests/support/code_lines.py prints a table of the rooms of the package.
"""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

__all__ = ["counts", "nodes_of", "num_code_lines"]

PACKAGE = Path(__file__).parents[2] / "tfbnn"
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a module, which is parsed once for all rules about the code."""
    return tuple(ast.walk(ast.parse(source)))


def num_code_lines(source: str) -> int:
    """Return the number of lines of a module with code on them."""
    lines = source.split("\n")
    starts = [line.lstrip()[:1] for line in lines]
    found = {number for number, start in enumerate(starts, 1) if start not in ("", "#")}
    docstrings = set()
    for node in nodes_of(source):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            docstrings.update(range(docstring.lineno, docstring.end_lineno + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno > node.lineno:
            # Lines of a text count whatever they hold, but not comments between its parts.
            if any(mark in lines[node.lineno - 1] for mark in ('"""', "'''")):
                found.update(range(node.lineno, node.end_lineno + 1))
    return len(found - docstrings)


def counts(package: Path = PACKAGE) -> dict[str, tuple[int, int]]:
    """Return a dict room -> (lines of code, files); subpackages count by themselves."""
    lines, files = Counter(), Counter()
    for path in sorted(package.rglob("*.py")):
        room = ".".join(path.relative_to(package).parts[:-1]) or "."
        lines[room] += num_code_lines(path.read_text())
        files[room] += 1
    return {room: (lines[room], files[room]) for room in lines}


if __name__ == "__main__":
    found = counts()
    for room, (lines, files) in found.items():
        print(f"| {room} | {lines} | {files} |")
    print(
        f"| all | {sum(one for one, _ in found.values())} | {sum(n for _, n in found.values())} |"
    )
