"""Faces: what users import is the same at the first access and at every later one, in one process.

Names are loaded when they are first asked for. Were there a module of the same name, it would take
the place of a function in its package as soon as something imports it.
"""

import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import tfbnn

ROOT = Path(__file__).parents[2]
MODULES = "cluster datasets hep kernels likelihoods plots priors sklearn storage trust".split()
# Names that the changelog names only as removed.
REMOVED = {"tfbnn.LogMetrics", "tfbnn.storage.RunFolder"}
X, Y = np.zeros((5, 2)), np.ones((5, 1))


def reached(dotted):
    """Return what a program gets that writes this name after `import tfbnn`."""
    value = tfbnn
    for name in dotted.split(".")[1:]:
        value = getattr(value, name)
    return value


FACES = ["tfbnn", *(f"tfbnn.{name}" for name in MODULES)]
NAMES = [f"{face}.{name}" for face in FACES for name in reached(face).__all__]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(reached(name))]
# Every public function, called with a fitted model and a path at which there is nothing.
CALLS = {
    "tfbnn.load": lambda model, path: tfbnn.load(path),
    "tfbnn.resume": lambda model, path: tfbnn.resume(path),
    "tfbnn.sample": lambda model, path: tfbnn.sample(None, X),
    "tfbnn.cluster.fit": lambda model, path: tfbnn.cluster.fit(
        model, X, Y, client=None, output=path
    ),
    "tfbnn.datasets.neutralino_pairs": lambda model, path: tfbnn.datasets.neutralino_pairs(5),
    "tfbnn.hep.write_processes": lambda model, path: tfbnn.hep.write_processes(path, []),
    "tfbnn.kernels.available": lambda model, path: tfbnn.kernels.available(),
    "tfbnn.likelihoods.check_noise": lambda model, path: tfbnn.likelihoods.check_noise(None),
    "tfbnn.plots.plot_convergence": lambda model, path: tfbnn.plots.plot_convergence(model),
    "tfbnn.plots.plot_coverage": lambda model, path: tfbnn.plots.plot_coverage(model, X, Y),
    "tfbnn.plots.plot_pulls": lambda model, path: tfbnn.plots.plot_pulls(model, X, Y),
    "tfbnn.plots.plot_relevance": lambda model, path: tfbnn.plots.plot_relevance(model),
    "tfbnn.plots.plot_reliability": lambda model, path: tfbnn.plots.plot_reliability(model, X, Y),
    "tfbnn.plots.plot_slices": lambda model, path: tfbnn.plots.plot_slices(model),
    "tfbnn.plots.plot_truth": lambda model, path: tfbnn.plots.plot_truth(model, X, Y),
    "tfbnn.priors.check_prior": lambda model, path: tfbnn.priors.check_prior(None),
    "tfbnn.storage.read_model": lambda model, path: tfbnn.storage.read_model(path),
    "tfbnn.storage.seal": lambda model, path: tfbnn.storage.seal(path),
    "tfbnn.storage.write_model": lambda model, path: tfbnn.storage.write_model(
        model.posterior, path / "model.h5"
    ),
    "tfbnn.trust.trust_levels": lambda model, path: tfbnn.trust.trust_levels(
        model.posterior.training_inputs, X
    ),
}


def outcome(call, *arguments):
    """The type of what a call returns, or type and message of what it raises."""
    try:
        return type(call(*arguments))
    except Exception as error:
        return type(error), str(error)


def test_the_public_modules_are_modules_and_nothing_else_is():
    modules = {name for name in tfbnn.__all__ if inspect.ismodule(getattr(tfbnn, name))}
    assert modules == set(MODULES)


def test_no_module_has_the_name_of_what_its_package_exports():
    for package in map(reached, FACES):
        found = {module.name for module in pkgutil.iter_modules(getattr(package, "__path__", ()))}
        assert not found & set(package.__all__) - set(MODULES), package


def test_a_public_name_stays_the_same():
    for name in NAMES:
        assert reached(name) is reached(name), name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_can_be_called_twice(name, fitted, tmp_path):
    first, second = (outcome(CALLS[name], fitted, tmp_path / "nothing") for _ in range(2))
    assert first == second
    assert inspect.isfunction(reached(name))


@pytest.mark.parametrize("document", ["README.md", "CHANGELOG.md"])
def test_the_names_in_documents_can_be_reached(document):
    names = set(re.findall(r"\btfbnn(?:\.[A-Za-z_]\w*)+", (ROOT / document).read_text()))
    assert names
    for name in sorted(names):
        if name not in REMOVED:
            pkgutil.resolve_name(name)


@pytest.mark.tensorflow
def test_the_names_in_docstrings_and_comments_can_be_reached():
    for path in sorted((ROOT / "tfbnn").rglob("*.py")):
        for name in re.findall(r"\btfbnn(?:\.[A-Za-z_]\w*)+", path.read_text()):
            pkgutil.resolve_name(name)
