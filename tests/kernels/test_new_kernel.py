"""A sampler is one file: the one that docs/developers/new_kernel.md shows, put beside the others."""

import importlib
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import tfbnn
from tests.support.commands import check_refusal
from tests.support.kernels import cases, checks
from tests.support.kernels.invariance import ALARM, WINDOW, joint_p, smallest_p
from tests.support.small_runs import X, assert_same_draws, small_fit
from tests.support.without_tensorflow import command_without_tensorflow
from tfbnn import kernels
from tfbnn.engine import kernels as room
from tfbnn.engine.kernels import registry
from tfbnn.engine.kernels.base import KERNELS

ROOT = Path(__file__).parents[2]
FILE, LINE = re.findall(
    r"^```python\n(.*?)^```$",
    (ROOT / "docs/developers/new_kernel.md").read_text(),
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture(scope="module")
def barker(tmp_path_factory):
    """The page's settings class, registered; forgotten afterwards."""
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "barker.py").write_text(FILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "__path__", [*room.__path__, str(folder)])
        name = f"{room.__name__}.barker"
        yield importlib.import_module(name).Barker
        del KERNELS["barker"], sys.modules[name], room.barker


@pytest.fixture
def case(barker, monkeypatch):
    """The name of the page's case, which is among the others."""
    (name, found), *others = eval(f"{{{LINE}}}", vars(cases)).items()
    assert not others and name == "barker"
    monkeypatch.setitem(cases.CASES, name, found)
    return name


def test_has_its_names(barker):
    assert "barker" in kernels.available() and "Barker" in dir(kernels)
    assert kernels.Barker is barker
    assert registry.resolve_kernel("Barker") == barker() == barker(width=0.1) != barker(width=0.2)
    settings = barker(step_size=0.3, width=0.2)
    assert registry.kernel_from_json(registry.kernel_to_json(settings)) == settings


@pytest.mark.statistics
def test_a_resumed_run_makes_the_draws_of_one_that_was_not_stopped(barker, tmp_path):
    options = dict(kernel=barker(width=0.2), num_results=30, jit_compile=False)
    small_fit(output=tmp_path / "run", **(options | {"num_results": 20}))
    model, run = tfbnn.resume(tmp_path / "run", num_results=30)
    whole, _ = small_fit(**options)
    assert_same_draws(model, whole)
    assert "Barker(preconditioner='diagonal', width=0.2)" in run.report()
    assert np.isfinite(model.predict(X).mean).all()


@pytest.mark.parametrize("test", [smallest_p, pytest.param(joint_p, marks=pytest.mark.statistics)])
def test_leaves_exact_draws_exact(case, test):
    smallest, acceptance = test(cases.CASES[case])
    assert WINDOW[0] < acceptance < WINDOW[1]
    assert smallest > ALARM


def test_every_transition_is_right(case):
    checks.check_cache(case)
    checks.check_rejected_states(case)
    checks.check_flags(case)
    checks.check_antisymmetry(case)


@pytest.mark.statistics
def test_the_command_has_it_where_its_file_lies_in_the_folder(tmp_path):
    shutil.copytree(
        ROOT / "tfbnn", tmp_path / "tfbnn", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "tfbnn/engine/kernels/barker.py").write_text(FILE)
    (tmp_path / "rows.csv").write_text("x,y\n1,2\n2,3\n")
    done = command_without_tensorflow(tmp_path, "fit", "--help")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "--kernel NAME auto (default) or barker, chees_hmc, hmc" in text
    assert "--width X barker: spread of the lengths of steps, in units of step_size;" in text
    fit = "fit rows.csv --target y --layers 3 --kernel barker --width 2".split()
    done = command_without_tensorflow(tmp_path, *fit)
    check_refusal((done.returncode, done.stdout, done.stderr), "width", "2")
