"""The tree of the tests: no test imports a test, and what tests share lies in tests.support."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
MODULES = sorted(path for path in TESTS.rglob("*.py") if path.name != "__init__.py")
# How many lines of a file can still be held in the head; longer ones are to be split by subject.
MOST_LINES = 500
# What tests may import of the tree.
SHARED = "tests.support"
# A line that may import something else of it. Other files need not be parsed, which takes a second.
SUSPICIOUS = re.compile(r"\b(?:from|import)\b.*\b(?:tests|conftest)\b(?!\.support\b)")


def name_of(path):
    return str(path.relative_to(TESTS))


def imports_of(path):
    """Dotted names of all that a file imports, of its tests at least, in functions and programs too."""
    text = path.read_text(encoding="utf-8")
    if not SUSPICIOUS.search(text):
        return
    tree = ast.parse(text)
    # Programs for other processes stand in strings.
    texts = (
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value
    )
    for part in (tree, *filter(None, map(_parsed, texts))):
        for node in ast.walk(part):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _parsed(text):
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):  # the latter of a null byte, before Python 3.11.4
        return None


def test_tests_import_from_support_only():
    strangers = {
        (name_of(path), name)
        for path in MODULES
        for name in imports_of(path)
        if name.split(".")[0] in ("tests", "conftest") and not name.startswith(SHARED)
    }
    assert not strangers, "move what is shared to tests/support"


def test_files_are_short():
    lines = {name_of(path): path.read_text(encoding="utf-8").count("\n") for path in MODULES}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_only_support_is_a_package():
    """Tests are found by their files; names like `tests.unit.data` must not be imported."""
    packages = {path.parent for path in TESTS.rglob("__init__.py")}
    support = TESTS / "support"
    assert not [path for path in packages - {TESTS} if support not in (path, *path.parents)]


def test_units_mirror_the_rooms_of_the_package():
    """tests/unit/engine/density holds tests of tfbnn/engine/density."""
    unit, package = TESTS / "unit", TESTS.parent / "tfbnn"
    rooms = {path.parent.relative_to(unit) for path in unit.rglob("test_*.py")}
    assert rooms and not [str(room) for room in rooms if not (package / room).is_dir()]
