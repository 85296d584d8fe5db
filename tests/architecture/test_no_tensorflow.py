"""With NumPy and h5py alone `import tfbnn` is light and a saved model is of full use."""

import importlib.util

import numpy as np
import pytest

import tfbnn
from tests.support.without_tensorflow import run_without_tensorflow

PUBLIC = [
    "BayesianMLP",
    "ConvergenceWarning",
    "DataWarning",
    "ModelFileError",
    "NotFittedError",
    "Pretraining",
    "RunFolderError",
    "RunFolderWarning",
    "RunLockedError",
    "StartError",
    "__version__",
    "datasets",
    "hep",
    "kernels",
    "likelihoods",
    "load",
    "priors",
    "storage",
]


@pytest.fixture(scope="module")
def saved(tiny_model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny.h5"
    tiny_model.save(path)
    return path


@pytest.fixture(scope="module")
def without(saved):
    """What a loaded model says in an interpreter with NumPy and h5py alone."""
    code = """
import json
import tfbnn

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
    "scores": model.evaluate(x, y),
    "rhat": diagnosis.rhat_function.tolist(),
    "diagnosis": diagnosis.summary(),
    "summary": lines,
    "imported": sorted({name.split(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)),
}))
"""
    return run_without_tensorflow(code, saved)


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
for name in ("tensorflow", "scipy", "threadpoolctl", "pytest", "numpy", "h5py"):
    try:
        __import__(name)
        found.append(name)
    except ImportError as error:
        assert "blocked by this test" in str(error)
print(json.dumps(found))
"""
    assert run_without_tensorflow(code) == ["numpy", "h5py"]
    assert "scipy" in run_without_tensorflow(code, others=True)
    assert "tensorflow" not in run_without_tensorflow(code, others=True)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_exist(name):
    assert name in tfbnn.__all__ and name in dir(tfbnn)
    assert getattr(tfbnn, name) is not None


def test_every_exported_name_exists():
    missing = []
    for name in tfbnn.__all__:
        try:
            getattr(tfbnn, name)
        except (AttributeError, ImportError) as error:
            missing.append(f"{name}: {error}")
    assert missing == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'BayesianMPL'. Did you mean 'Bay.*MLP'"):
        tfbnn.BayesianMPL  # noqa: B018
    with pytest.raises(AttributeError, match="'tfbnn' has no attribute 'xyzzy'.$"):
        tfbnn.xyzzy  # noqa: B018


def test_names_besides_the_kernels_need_no_tensorflow():
    names = "BayesianMLP load priors likelihoods storage datasets hep Pretraining NotFittedError"
    code = "import json, tfbnn\nprint(json.dumps([repr(getattr(tfbnn, n)) for n in sys.argv[1:]]))"
    for name, found in zip(
        names.split(), run_without_tensorflow(code, *names.split()), strict=True
    ):
        assert name.lower() in found.lower()


def test_predictions_are_the_same(without, tiny_model, rows):
    expected = tiny_model.predict(rows[0], include_noise=True, quantiles=[0.1, 0.9])
    for name in ("mean", "stddev", "quantiles"):
        np.testing.assert_allclose(without[name], getattr(expected, name), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        without["draws"], tiny_model.predict_draws(rows[0]), rtol=1e-5, atol=1e-6
    )


def test_scores_are_the_same(without, tiny_model, rows):
    expected = tiny_model.evaluate(*rows)
    assert without["scores"].keys() == expected.keys()
    for name in ("rmse", "crps", "log_predictive_density", "pull_width", "n_effective"):
        np.testing.assert_allclose(without["scores"][name], expected[name], rtol=1e-4)


def test_the_diagnosis_is_the_same(without, tiny_model):
    np.testing.assert_allclose(without["rhat"], tiny_model.diagnose().rhat_function, rtol=1e-4)
    assert without["diagnosis"] == tiny_model.diagnose().summary()


def test_the_summary_is_the_same(without, tiny_model):
    lines = []
    tiny_model.summary(lines.append)
    assert without["summary"] == lines


def test_nothing_but_numpy_and_h5py_was_imported(without):
    # Of h5py, Cython makes modules of its own; editable installations leave a finder, and
    # distributions import a sitecustomize of theirs into every process.
    names = {name for name in without["imported"] if not name.startswith(("_", "cython"))}
    assert names - {"sitecustomize"} == {"numpy", "h5py", "tfbnn"}


@pytest.mark.processes
@pytest.mark.skipif(importlib.util.find_spec("arviz") is None, reason="needs ArviZ")
def test_draws_are_handed_to_arviz(saved, tiny_model):
    shape = run_without_tensorflow(
        """
import json, warnings
warnings.simplefilter("ignore")
import tfbnn
data = tfbnn.load(sys.argv[1]).posterior.to_arviz()
theta = data["posterior"]["theta"]
names = sorted(data["sample_stats"].data_vars)
print(json.dumps([dict(theta.sizes), float(theta.values.sum()), names]))
""",
        saved,
        others=True,
    )
    draws = tiny_model.posterior.draws
    assert list(shape[0].values()) == list(draws.shape)
    assert list(shape[0])[:2] == ["chain", "draw"]
    np.testing.assert_allclose(shape[1], draws.sum(), rtol=1e-4)
    assert {"lp", "acceptance_rate", "diverging", "energy"} <= set(shape[2])


def test_without_arviz_the_message_names_the_extra(saved):
    message = run_without_tensorflow(
        """
import json
import tfbnn
try:
    tfbnn.load(sys.argv[1]).posterior.to_arviz()
except ImportError as error:
    print(json.dumps(str(error)))
""",
        saved,
    )
    assert "tfbnn[arviz]" in message


def test_bad_input_is_refused_before_tensorflow_is_missed():
    message = run_without_tensorflow("""
import json
import tfbnn
try:
    tfbnn.BayesianMLP([2, 4, 1]).fit_posterior([[1.0, float("nan")]], [1.0])
except ValueError as error:
    print(json.dumps(str(error)))
""")
    assert message.startswith("x must be finite")
