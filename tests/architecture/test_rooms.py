"""The house: a room imports only from floors below its own, and few may import heavy libraries.

Imports inside functions count: a lazy import saves time, and is a dependency all the same.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.code_lines import nodes_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tfbnn"

# From the ground up. Rooms on one floor do not know each other.
FLOORS = (
    ("exceptions",),
    ("system",),
    ("data",),
    ("spec",),
    ("diagnostics",),
    ("engine.basis",),
    ("engine.keras",),
    ("engine.density",),
    ("engine.export",),
    ("posterior",),
    ("datasets", "plots"),
    ("storage",),
    ("run",),
    ("engine.kernels",),
    ("engine.starts",),
    ("engine.sampling",),
    ("engine.running",),
    ("fit", "engine.functional"),
    ("hep",),
    ("cli", "cluster", "sklearn"),
    ("__main__",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
# Public names only. Nothing inside imports them, as `tfbnn.kernels` brings in the engine.
FACES = ("", "kernels", "likelihoods", "priors", "trust")
MAY_IMPORT = {
    "tensorflow": ("engine.basis.libraries",),
    "tensorflow_probability": ("engine.basis.libraries",),
    "keras": ("engine",),
    "tf_keras": ("engine",),
    "scipy": ("engine", "posterior.compression", "spec.counts"),
    "threadpoolctl": ("system.threads",),
    "h5py": ("storage", "data.hdf5", "data.tables"),
    "matplotlib": ("plots",),
    "pandas": ("posterior.prediction_frame", "sklearn.skpro"),
    "jinja2": ("plots.page",),
    "dask": ("cluster",),
    "distributed": ("cluster",),
    "rich": ("run.progress",),
    "arviz": ("posterior.arviz_data",),
    "xarray": ("posterior.arviz_data",),
    "sklearn": ("sklearn",),
    "skpro": ("sklearn.skpro",),
}
MOST_ENTRIES = 22


def imports(source):
    """Yields (dotted name, line) of all that a module imports, wherever it does."""
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"a relative import in line {node.lineno}"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _imports_a_constant(node):
            yield node.args[0].value, node.lineno


def _imports_a_constant(call):
    """Return whether a call is import_module("...") or the like, of tfbnn.cluster too."""
    name = getattr(call.func, "attr", getattr(call.func, "id", None))
    return (
        name in ("import_module", "__import__", "required")
        and call.args
        and isinstance(call.args[0], ast.Constant)
    )


def room_of(module):
    """The room of a module, both without the leading `tfbnn.`: engine rooms have two names."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "engine" else parts[0]


def faults(module, source):
    """Yields what is wrong with the imports of a module, named without the leading `tfbnn.`."""
    here = room_of(module)
    for name, line in imports(source):
        top, _, rest = name.partition(".")
        if top in MAY_IMPORT and not any(
            f"{module}.".startswith(f"{prefix}.") for prefix in MAY_IMPORT[top]
        ):
            yield f"{module}:{line} imports {top}"
        if top != "tfbnn" or here in FACES or module == "engine":
            continue
        there = room_of(rest)
        if there not in FLOOR:
            yield f"{module}:{line} imports the face {name}"
        elif there != here and FLOOR[there] >= FLOOR[here]:
            yield f"{module}:{line} ({here}) reaches up to {name}"


def circle(sources):
    """The modules of a circle of imports, the first again at its end; None where there is none.

    Args:
        sources: Dict name of a module, without the leading `tfbnn.` -> its source.
    """
    graph = {}
    for module, source in sources.items():
        names = {name.removeprefix("tfbnn.") for name, _ in imports(source)}
        # `from tfbnn.room.module import name` gives room.module.name.
        found = {name if name in sources else name.rpartition(".")[0] for name in names}
        graph[module] = (found & sources.keys()) - {module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def modules():
    """Yields (dotted name without the leading `tfbnn.`, path) of every module."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def test_every_room_stands_on_those_below():
    found = [fault for module, path in modules() for fault in faults(module, path.read_text())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "module, source",
    [
        ("data.rows", "import tensorflow as tf"),
        ("data.rows", "def later():\n    from keras import layers"),
        ("posterior.ensemble", "from tfbnn.storage.model import file"),
        ("posterior.ensemble", "arviz = required('arviz', 'to_arviz needs ArviZ', 'arviz')"),
        ("run.stores", "from tfbnn.engine.kernels.hmc import HMC"),
        ("cli.fit", "from tfbnn import kernels"),
        ("cli.fit", "import tfbnn"),
        ("cli.fit", "from tfbnn.cluster.cluster_fit import Cluster"),
        ("cli.plot", "importlib.import_module('matplotlib')"),
        ("engine.density.potential", "from tfbnn.engine.sampling.chain_group import ChainGroup"),
    ],
)
def test_the_rule_sees_a_room_that_does_not(module, source):
    assert len(list(faults(module, source))) == 1


@pytest.mark.parametrize(
    "module, source",
    [
        ("data.hdf5", "import h5py"),
        ("engine.kernels.hmc", "from tfbnn.engine.basis.libraries import tfp"),
        ("cli.fit", "from tfbnn.fit.model import BayesianMLP\nimport numpy as np"),
        ("kernels", "from tfbnn.engine.kernels import HMC"),
        ("run.stores", "from tfbnn.run.config import RunConfig"),
    ],
)
def test_the_rule_lets_pass_what_it_should(module, source):
    assert not list(faults(module, source))


def test_no_room_has_a_circle():
    sources = {}
    for module, path in modules():
        sources.setdefault(room_of(module), {})[module] = path.read_text()
    circles = {room: circle(of_room) for room, of_room in sources.items()}
    assert not any(circles.values()), {room: names for room, names in circles.items() if names}


@pytest.mark.parametrize("indent", ["", "if TYPE_CHECKING:\n    ", "def later():\n    "])
def test_the_rule_sees_a_circle(indent):
    back = f"{indent}from tfbnn.plots.first import one"
    sources = {
        "plots.first": "import tfbnn.plots.second",
        "plots.second": "from tfbnn.plots import third",
        "plots.third": back,
    }
    assert set(circle(sources)) == set(sources)
    assert circle(sources | {"plots.third": "from tfbnn.data import rows"}) is None


def test_every_room_has_a_floor():
    rooms = {room_of(module) for module, _ in modules()} - {*FACES, "engine"}
    assert rooms == set(FLOOR)


def test_the_root_has_few_entries():
    entries = {path.name for path in PACKAGE.iterdir() if path.suffix in ("", ".py")}
    assert len(entries - {"__pycache__"}) <= MOST_ENTRIES


def test_one_place_calls_tf_function():
    """Without AutoGraph, which reads the source anew when it traces: other code, if the file has changed."""
    trees = {module: nodes_of(path.read_text()) for module, path in modules()}
    named = [
        (module, node)
        for module, nodes in trees.items()
        for node in nodes
        if getattr(node, "attr", None) == "function" and ast.unparse(node) == "tf.function"
    ]
    ((module, function),) = named
    assert module == "engine.basis.compile"
    (call,) = (node for node in trees[module] if getattr(node, "func", None) is function)
    assert ("autograph", "False") in [(one.arg, ast.unparse(one.value)) for one in call.keywords]


def test_the_picture_of_the_house_is_true():
    """CONTRIBUTING.md: its rooms are those here, its arrows are imports, its nouns are where it says."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms, arrows = re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1:3]
    drawn = [room for line in rooms.splitlines() for room in re.split(", ", line[:22].strip())]
    assert drawn == [room.replace(".", "/") for floor in FLOORS[:-1] for room in floor]
    sources = {module: path.read_text() for module, path in modules()}
    steps = [re.findall(r"[a-z_.]+\.[a-z_]+|storage", line) for line in arrows.splitlines()]
    for here, there in (pair for line in steps for pair in zip(line, line[1:])):
        names = [name.removeprefix("tfbnn.") for name, _ in imports(sources[here])]
        assert any(f"{name}.".startswith(f"{there}.") for name in names), f"{here} -> {there}"
    for names, file in re.findall(r"^\| (`[A-Z].*?) \|.*\| `(tfbnn/.*?)` \|$", text, re.MULTILINE):
        for name in re.findall(r"\w+", names):
            assert f"\nclass {name}" in (ROOT / file).read_text(), name
