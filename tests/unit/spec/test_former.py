"""Names that have ended answer with what stands in their place, at every entrance that had them."""

import pytest

import tfbnn
from tests.support.commands import check_refusal
from tfbnn.engine.kernels.registry import kernel_from_json, kernel_to_json, resolve_kernel
from tfbnn.run.report import Run
from tfbnn.spec.habits import FORMER

# Where a name was, as an attribute or as an argument.
ATTRIBUTES = (
    "kernels.SMSUBU networks datasets.read_cifar10 datasets.read_utkface plots.plot_weight_planes "
    "plots.plot_traces storage.RunFolder LogMetrics WorkerError WorkerWarning"
)
ARGUMENTS = [
    (lambda: resolve_kernel("sms_ubu"), "sms_ubu"),
    (lambda: tfbnn.kernels.PowerPosterior(keep_rungs=True), "keep_rungs"),
    (lambda: tfbnn.BayesianMLP([1, 1]).fit_posterior([[1.0]], [1.0], restart="best"), "restart"),
    (lambda: tfbnn.BayesianMLP([1, 1]).fit_posterior([[1.0]], [1.0], num_workers=2), "num_workers"),
    (lambda: tfbnn.sample(None, None, num_workers=2), "num_workers"),
    (lambda: tfbnn.plots.plot_truth(None, [], [], unit="fb"), "unit"),
    (lambda: tfbnn.resume("run", num_workers=2), "num_workers"),
]
OPTIONS = ["restart", "num_workers"]


@pytest.mark.parametrize("path", ATTRIBUTES.split())
def test_attributes_of_modules(path):
    module, _, name = path.rpartition(".")
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
        getattr(getattr(tfbnn, module) if module else tfbnn, name)
    assert FORMER[name] in str(caught.value)


@pytest.mark.parametrize(("call", "name"), ARGUMENTS, ids=[name for _, name in ARGUMENTS])
def test_arguments(call, name):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert FORMER[name] in str(caught.value)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows.csv").write_text("a,y\n1,2\n3,4\n5,6\n")
    return tmp_path


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_commands(run, monkeypatch, name):
    monkeypatch.setattr("tfbnn.cli.fit.import_tensorflow", None)
    option = "--" + name.replace("_", "-")
    found = run(f"fit rows.csv --target y {option} 1")
    check_refusal(found, f"unknown option {option}. {FORMER[name]}")


def test_attributes_of_a_run():
    run = object.__new__(Run)
    with pytest.raises(AttributeError) as caught:
        run.coarsening  # noqa: B018
    assert FORMER["coarsening"] in str(caught.value)


def test_kernels_in_files_are_read_without_settings_that_have_ended():
    plain = kernel_to_json(tfbnn.kernels.PowerPosterior())
    assert kernel_from_json(plain | {"keep_rungs": True}) == tfbnn.kernels.PowerPosterior()
    with pytest.raises(ValueError, match="SMSUBU was removed") as caught:
        kernel_from_json({"name": "SMSUBU", "num_batches": 32})
    assert FORMER["SMSUBU"] in str(caught.value)


def test_settings_of_an_estimator():
    pytest.importorskip("sklearn")
    with pytest.raises(ValueError, match="has no setting 'num_workers'") as caught:
        tfbnn.sklearn.BayesianMLPRegressor().set_params(num_workers=2)
    assert FORMER["num_workers"] in str(caught.value)


def test_values_of_options(run):
    check_refusal(run("fit rows.csv --target y --kernel sms_ubu"), FORMER["sms_ubu"])
