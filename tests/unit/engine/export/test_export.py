"""A SavedModel and an ONNX file predict what the model predicts."""

import json
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf

from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.marks import statistics_but
from tests.support.predictions import with_readouts
from tfbnn import BayesianMLP, NotFittedError
from tfbnn.data.transforms import Pipeline, Standardize, fit_pipeline
from tfbnn.likelihoods import Bernoulli, Categorical, HeteroscedasticGaussian, StudentT
from tfbnn.posterior.calibration.calibration import central_levels
from tfbnn.priors import ARD, HierarchicalNormal, Normal
from tfbnn.spec.activations import ACTIVATIONS

LOG = ["log10", "standardize"]
MODELS = {
    "plain": {"dtype": "float32"},
    "float64": {},
    "logarithm": {"y_transform": LOG},
    "logarithm of inputs": {"x_transform": LOG, "y_transform": None},
    "raw": {"x_transform": None, "y_transform": None, "layer_sizes": (2, 1)},
    "two targets": {"layer_sizes": (3, 4, 2), "y_transform": LOG},
    "deep": {"layer_sizes": (2, 4, 5, 3, 1), "activation": ["relu", "sin", "swish"]},
    "heteroscedastic": {"likelihood": HeteroscedasticGaussian(), "layer_sizes": (2, 5, 4)},
    "ntk": {"parameterization": "ntk", "prior": HierarchicalNormal()},
    "ntk, ARD": {
        "parameterization": "ntk",
        "prior": [{"kernel": ARD(), "bias": Normal(0.5)}, HierarchicalNormal()],
    },
    "weighted chains": {"num_chains": 3, "chain_weights": [0.3, 0.0, 0.7], "y_transform": LOG},
    "Bernoulli": {"likelihood": Bernoulli(), "layer_sizes": (2, 4, 2)},
    "Categorical": {"likelihood": Categorical(), "layer_sizes": (2, 4, 3), "classes": (*"abc",)},
}


@pytest.fixture(scope="module")
def small():
    settings = {"num_results": 40, "dtype": "float32"}
    return BayesianMLP.from_ensemble(synthetic_ensemble((2, 8, 1), **settings))


def rows_of(model, count=30):
    x = make_rows(50, model.spec.num_inputs, 1)[0]
    return np.abs(x[:count]) if "log10" in model.spec.x_transform else x[:count]


def build(settings):
    """The model; inputs that are to have a logarithm are positive."""
    if "log10" not in (settings.get("x_transform") or ()):
        return BayesianMLP.from_ensemble(synthetic_ensemble(**settings))
    plain = synthetic_ensemble(**settings | {"x_transform": None})
    spec = replace(plain.spec, x_transform=tuple(settings["x_transform"]))
    x = np.abs(make_rows(50, spec.num_inputs, 1)[0])
    pipeline = fit_pipeline(spec.x_transform, x, "x")
    return BayesianMLP.from_ensemble(replace(plain, spec=spec, x_pipeline=pipeline))


@pytest.fixture
def onnx_results(tmp_path):
    """A function that exports a model and returns its mean and stddev at x, from onnxruntime."""

    def results(model, x, names=("mean", "stddev")):
        path = str(tmp_path / "model.onnx")
        model.to_onnx(path)
        onnx.checker.check_model(path, full_check=True)
        return onnxruntime.InferenceSession(path).run(names, {"x": x})

    return results


def assert_same(found, prediction, dtype, rtol=1e-5):
    rtol = rtol if dtype == "float32" else 1e-10
    np.testing.assert_allclose(found[0], prediction.mean, rtol=rtol)
    np.testing.assert_allclose(found[1], prediction.stddev, rtol=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_onnx_has_every_activation(activation, dtype, onnx_results):
    model = BayesianMLP.from_ensemble(
        synthetic_ensemble((2, 8, 8, 1), activation=activation, dtype=dtype)
    )
    x = rows_of(model)
    found, expected = onnx_results(model, x), model.predict(x)
    tight = dtype == "float64" and activation not in ("gelu", "erf")
    # Relative to the predictions as a whole: one of them may be close to zero.
    for values, wanted in zip(found, expected):
        atol = (1e-12 if tight else 3e-6) * wanted.max()
        np.testing.assert_allclose(values, wanted, rtol=0, atol=atol)


def test_onnx_takes_any_number_of_rows(small, onnx_results):
    for count in (0, 1, 7):
        found = onnx_results(small, np.zeros((count, 2)))
        assert [values.shape for values in found] == 2 * [(count, 1)]


def test_onnx_names_inputs_and_classes(tmp_path):
    settings = MODELS["Categorical"] | {"feature_names": ("a", "b")}
    path = tmp_path / "model.onnx"
    BayesianMLP.from_ensemble(synthetic_ensemble(**settings)).to_onnx(path)
    properties = {entry.key: json.loads(entry.value) for entry in onnx.load(path).metadata_props}
    assert properties == {"feature_names": ["a", "b"], "classes": ["a", "b", "c"]}


def test_without_onnx_the_message_names_the_extra(tmp_path, small, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"tfbnn\[onnx\]"):
        small.to_onnx(tmp_path / "model.onnx")


def test_draws_beyond_the_limit_of_onnx_are_refused(tmp_path, small, monkeypatch):
    monkeypatch.setattr("tfbnn.posterior.onnx._MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="to_savedmodel"):
        small.to_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def signature(path, names=("mean", "stddev")):
    function = tf.saved_model.load(str(path)).signatures["serving_default"]
    return lambda x: [function(x=tf.constant(x))[name].numpy() for name in names]


def collapsed(y_transform, num_groups=1, **settings):
    """A model with two targets whose readouts were integrated out."""
    ensemble = synthetic_ensemble((2, 5, 2), y_transform=y_transform, **settings)
    return BayesianMLP.from_ensemble(with_readouts(ensemble, num_groups))


COLLAPSED = {
    "affine": {"y_transform": "standardize", "chain_weights": [0.7, 0.3]},
    "affine, groups": {"y_transform": None, "num_groups": 2, "parameterization": "ntk"},
    "logarithm": {"y_transform": LOG},
}


@pytest.mark.parametrize("settings", COLLAPSED.values(), ids=COLLAPSED)
def test_exports_integrate_readouts_out_where_predict_does(settings, onnx_results, tmp_path):
    model = collapsed(**settings)
    x = rows_of(model)
    model.to_savedmodel(tmp_path / "model")
    for found in (partial(onnx_results, model), signature(tmp_path / "model")):
        assert_same(found(x), model.predict(x), "float64")
        assert [len(values) for values in found(x[:0])] == [0, 0]


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_exports_take_inputs_and_targets_of_any_size(unit, onnx_results, tmp_path):
    def in_units(pipeline):
        (step,) = pipeline.steps
        mean, scale = (tuple(unit * np.array(v)) for v in (step.mean, step.scale))
        return Pipeline((Standardize(mean, scale),))

    ensemble = synthetic_ensemble()
    pipelines = {name: in_units(getattr(ensemble, name)) for name in ("x_pipeline", "y_pipeline")}
    model = BayesianMLP.from_ensemble(replace(ensemble, **pipelines))
    x = rows_of(model) * unit
    model.to_savedmodel(tmp_path / "model")
    for found in (onnx_results(model, x), signature(tmp_path / "model")(x)):
        assert_same(found, model.predict(x), "float64")


def test_savedmodel_has_every_activation(tmp_path):
    sizes = (2, *(4 for _ in ACTIVATIONS), 1)
    ensemble = synthetic_ensemble(layer_sizes=sizes, activation=list(ACTIVATIONS))
    model = BayesianMLP.from_ensemble(ensemble)
    x = rows_of(model)
    model.to_savedmodel(tmp_path / "model")
    assert_same(signature(tmp_path / "model")(x), model.predict(x), "float64")


# What these have of their own other models have, too.
ALIKE = ["float64", "logarithm", "ntk", "Bernoulli"]


@pytest.mark.parametrize(
    "name", statistics_but([name for name in MODELS if name not in ALIKE], MODELS)
)
def test_exports_predict_the_same(name, onnx_results, tmp_path):
    model = build(MODELS[name])
    x = rows_of(model)
    model.to_savedmodel(tmp_path / "model")
    for found in (partial(onnx_results, model), signature(tmp_path / "model")):
        assert_same(found(x), model.predict(x), model.spec.dtype)


def test_savedmodel_works_in_tiles(tmp_path, small, monkeypatch):
    monkeypatch.setattr("tfbnn.engine.export.saved_model._MOST_VALUES", 80 * 8 * 4)  # four rows
    small.to_savedmodel(tmp_path / "model")
    predict, x = signature(tmp_path / "model"), make_rows(50, 2, 1)[0]
    for count in (1, 4, 11):
        assert_same(predict(x[:count]), small.predict(x[:count]), "float32")
    assert [values.shape for values in predict(x[:0])] == [(0, 1), (0, 1)]


def test_savedmodel_replaces_nothing(tmp_path, small):
    (tmp_path / "other").write_text("mine")
    for path in (tmp_path, tmp_path / "other"):
        with pytest.raises(FileExistsError, match="not an empty folder"):
            small.to_savedmodel(path)


@pytest.mark.parametrize("export", ["to_onnx", "to_savedmodel"])
def test_there_is_nothing_to_export_before_a_fit(export, tmp_path):
    with pytest.raises(NotFittedError, match="fit_posterior"):
        getattr(BayesianMLP([2, 3, 1]), export)(tmp_path / "model")


CALIBRATED = {
    "two targets by stddev": ({"layer_sizes": (3, 4, 2), "y_transform": LOG}, "stddev"),
    "by trust": ({}, "trust"),
    "collapsed under a logarithm": ({"collapsed": True, "y_transform": LOG}, None),
    "Student-t": ({"likelihood": StudentT(4.0, 0.3)}, None),
    "weighted chains in float32": (
        {"num_chains": 3, "chain_weights": [0.3, 0.0, 0.7], "dtype": "float32"},
        None,
    ),
}


def calibrated(settings, by, factor):
    """(Calibrated model, inputs inside, at the edge of and outside its training inputs)."""
    settings = dict(settings)
    is_collapsed = settings.pop("collapsed", False)
    ensemble = synthetic_ensemble(**settings)
    model = BayesianMLP.from_ensemble(with_readouts(ensemble) if is_collapsed else ensemble)
    ensemble, generator = model.posterior, np.random.default_rng(1)
    inputs, size = ensemble.training_inputs, (900, ensemble.spec.num_inputs)
    width = inputs.high - inputs.low
    x = inputs.low - 0.05 * width + 1.1 * width * generator.uniform(size=size)
    x = ensemble.x_pipeline.inverse(x)
    mean, stddev = model.predict(x, include_noise=True, space="transformed")
    noise = generator.standard_t(5, size=mean.shape)
    model.calibrate(x, ensemble.y_pipeline.inverse(mean + factor * stddev * noise), by=by)
    far = ensemble.x_pipeline.inverse(inputs.high + width)[None]
    return model, np.concatenate([x[:60], far])


@pytest.mark.parametrize("factor", statistics_but([0.4], [0.4, 2.0]))
@pytest.mark.parametrize(
    "name", statistics_but([name for name in CALIBRATED if name != "Student-t"], CALIBRATED)
)
def test_exports_of_a_calibrated_model_have_its_bars(name, factor, onnx_results, tmp_path):
    settings, by = CALIBRATED[name]
    model, x = calibrated(settings, by, factor)
    low, high = central_levels(1)
    prediction = model.predict(
        x, include_noise=True, quantiles=[low, 0.5, high], return_trust=True
    ).columns
    known = prediction.trust > -1 if factor < 1 else np.ones(len(x), bool)
    assert not prediction.trust[-1] > -1 and known.sum() > 40
    names = ["mean", "stddev", "lower", "median", "upper"]
    from_onnx = onnx_results(model, x, names)
    model.to_savedmodel(tmp_path / "saved")
    rtol = 1e-4 if model.spec.dtype == "float32" else 1e-9
    for found in (from_onnx, signature(tmp_path / "saved", names)(x)):
        assert_same(found[:2], model.predict(x).columns, model.spec.dtype, rtol=1e-4)
        np.testing.assert_allclose(
            np.array(found[2:])[:, known], prediction.quantiles[:, known], rtol=rtol, atol=1e-6
        )
    # Where the posterior's bars stay they are those of a normal distribution.
    mean, stddev = model.predict(
        x, include_noise=True, space="transformed", calibrated=False
    ).columns
    ends = [model.posterior.y_pipeline.inverse(mean + k * stddev)[~known] for k in (-1, 0, 1)]
    np.testing.assert_allclose(np.array(from_onnx[2:])[:, ~known], ends, rtol=1e-4)


def test_a_constant_input_may_be_rounded_to_float32(onnx_results):
    model, x = calibrated({"layer_sizes": (2, 5, 1)}, None, 0.4)
    inputs = model.posterior.training_inputs
    constant = model.posterior.x_pipeline.forward(np.full((1, 2), 0.1))[0]
    low, high = (np.array([end[0], constant[1]]) for end in (inputs.low, inputs.high))
    inputs = replace(inputs, low=low, high=high)
    model = BayesianMLP.from_ensemble(replace(model.posterior, training_inputs=inputs))
    x = np.column_stack([x[:50, 0], np.full(50, 0.1)])
    exact, rounded = (
        onnx_results(model, rows, ["lower", "upper"])
        for rows in (x, x.astype(np.float32).astype(float))
    )
    np.testing.assert_allclose(rounded, exact, rtol=1e-4)


def test_bars_with_noise_that_differs_from_row_to_row_are_left_out(tmp_path):
    settings = {"likelihood": HeteroscedasticGaussian(), "layer_sizes": (2, 5, 4)}
    model, _ = calibrated(settings, None, 2.0)
    with pytest.warns(UserWarning, match="bars are not exported"):
        model.to_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    assert [output.name for output in session.get_outputs()] == ["mean", "stddev"]
