"""With NumPy and h5py alone `import tfbnn` is light and a saved model is of full use."""

import importlib.util

import numpy as np
import pytest

import tfbnn
from tests.support.builders import synthetic_ensemble
from tests.support.without_tensorflow import run_without_tensorflow

# Public names that need no TensorFlow, and others.
NAMES = (
    "BayesianMLP load priors likelihoods storage datasets hep Pretraining NotFittedError".split()
)
OTHERS = "ConvergenceWarning DataWarning ModelFileError RunFolderError RunFolderWarning".split()
OTHERS += ["RunLockedError", "StartError", "__version__", "kernels"]


@pytest.fixture(scope="module")
def model():
    """A model of random networks, as what is asked here does not depend on where draws come from."""
    return tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble(dtype="float32", num_results=40))


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.h5"
    model.save(path)
    return path


@pytest.fixture(scope="module")
def without(saved):
    """Return what a loaded model says in an interpreter with NumPy and h5py alone, asked once."""
    code = """
import json
import tfbnn

def refusal(call, error):
    try:
        call()
    except error as caught:
        return str(caught)

model = tfbnn.load(sys.argv[1])
x = [[0.1 * i - 1.0, 0.05 * i] for i in range(20)]
y = [0.3 * row[1] for row in x]
p = model.predict(x, include_noise=True, quantiles=[0.1, 0.9])
lines = []
model.summary(lines.append)
diagnosis = model.diagnose()
print(json.dumps({
    "mean": p.mean.tolist(),
    "stddev": p.stddev.tolist(),
    "quantiles": p.quantiles.tolist(),
    "draws": model.predict_draws(x).tolist(),
    "cdf": model.predict_distribution(x).cdf(0.1).tolist(),
    "scores": model.evaluate(x, y),
    "rhat": diagnosis.rhat_function.tolist(),
    "diagnosis": diagnosis.summary(),
    "summary": lines,
    "imported": sorted({name.split(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)),
    "names": [repr(getattr(tfbnn, name)) for name in sys.argv[2:]],
    "to_arviz": refusal(model.posterior.to_arviz, ImportError),
    "fit": refusal(
        lambda: tfbnn.BayesianMLP([2, 4, 1]).fit_posterior([[1.0, float("nan")]], [1.0]), ValueError
    ),
}))
"""
    return run_without_tensorflow(code, saved, *NAMES)


@pytest.fixture(scope="module")
def rows():
    x = np.array([[0.1 * i - 1.0, 0.05 * i] for i in range(20)])
    return x, 0.3 * x[:, 1]


def test_import_loads_nothing_heavy():
    heavy = run_without_tensorflow("""
import json
import tfbnn
names = ("tensorflow", "tensorflow_probability", "scipy", "matplotlib", "h5py", "pandas", "arviz",
         "numba", "tfbnn.fit.model")
print(json.dumps([name for name in names if name in sys.modules]))
""")
    assert heavy == []


def test_the_block_works():
    code = """
import json
found = []
for name in ("tensorflow", "threadpoolctl", "pluggy", "numpy", "h5py"):
    try:
        __import__(name)
        found.append(name)
    except ImportError as error:
        assert "blocked by this test" in str(error)
print(json.dumps(found))
"""
    assert run_without_tensorflow(code) == ["numpy", "h5py"]
    assert run_without_tensorflow(code, others=True) == ["threadpoolctl", "pluggy", "numpy", "h5py"]


def test_every_exported_name_exists():
    assert {*NAMES, *OTHERS} <= set(tfbnn.__all__) <= set(dir(tfbnn))
    assert [name for name in tfbnn.__all__ if getattr(tfbnn, name, None) is None] == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'BayesianMPL'. Did you mean 'Bay.*MLP'"):
        tfbnn.BayesianMPL  # noqa: B018
    with pytest.raises(AttributeError, match="'tfbnn' has no attribute 'xyzzy'.$"):
        tfbnn.xyzzy  # noqa: B018


def test_names_besides_the_kernels_need_no_tensorflow(without):
    for name, found in zip(NAMES, without["names"], strict=True):
        assert name.lower() in found.lower()


def test_predictions_are_the_same(without, model, rows):
    """And the diagnosis, and the summary."""
    expected = model.predict(rows[0], include_noise=True, quantiles=[0.1, 0.9])
    for name in ("mean", "stddev", "quantiles"):
        np.testing.assert_allclose(without[name], getattr(expected, name), rtol=1e-5, atol=1e-6)
    below = model.predict_distribution(rows[0]).cdf(0.1)
    np.testing.assert_allclose(without["cdf"], below, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(without["draws"], model.predict_draws(rows[0]), rtol=1e-5, atol=1e-6)
    diagnosis, lines = model.diagnose(), []
    np.testing.assert_allclose(without["rhat"], diagnosis.rhat_function, rtol=1e-4)
    model.summary(lines.append)
    assert (without["diagnosis"], without["summary"]) == (diagnosis.summary(), lines)


def test_scores_are_the_same(without, model, rows):
    expected = model.evaluate(*rows)
    assert without["scores"].keys() == expected.keys()
    for name in ("rmse", "crps", "log_predictive_density", "pull_width", "n_effective"):
        np.testing.assert_allclose(without["scores"][name], expected[name], rtol=1e-4)


def test_nothing_but_numpy_and_h5py_was_imported(without):
    # Of h5py, Cython makes modules of its own; editable installations leave a finder, and
    # distributions import a sitecustomize of theirs into every process.
    names = {name for name in without["imported"] if not name.startswith(("_", "cython"))}
    assert names - {"sitecustomize"} == {"numpy", "h5py", "tfbnn"}


@pytest.mark.processes
@pytest.mark.skipif(importlib.util.find_spec("arviz") is None, reason="needs ArviZ")
def test_draws_are_handed_to_arviz(saved, model):
    code = """
import json, warnings
warnings.simplefilter("ignore")
import tfbnn
theta = tfbnn.load(sys.argv[1]).posterior.to_arviz()["posterior"]["theta"]
print(json.dumps([list(theta.dims), list(theta.shape), float(theta.values.sum())]))
"""
    dims, shape, total = run_without_tensorflow(code, saved, others=True)
    draws = model.posterior.draws
    assert dims[:2] == ["chain", "draw"] and shape == list(draws.shape)
    np.testing.assert_allclose(total, draws.sum(), rtol=1e-4)


def test_what_is_missed_and_what_is_wrong_before_is_named(without):
    assert "tfbnn[arviz]" in without["to_arviz"]
    assert without["fit"].startswith("x must be finite")
