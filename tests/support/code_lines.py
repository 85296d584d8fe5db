"""Count lines of code: those with a token that is neither comment nor docstring nor blank.

python tests/support/code_lines.py prints a table of the rooms of the package.
"""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

__all__ = ["counts", "num_code_lines"]

PACKAGE = Path(__file__).parents[2] / "tfbnn"
_NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def num_code_lines(source: str) -> int:
    """Return the number of lines of a module with code on them."""
    found = set()
    for token in tokenize.tokenize(io.BytesIO(source.encode()).readline):
        if token.type not in _NOT_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            found.difference_update(range(docstring.lineno, docstring.end_lineno + 1))
    return len(found)


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
