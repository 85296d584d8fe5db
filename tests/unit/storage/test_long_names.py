"""A legal fit can be saved and loaded whatever the number and the length of its names."""

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tests.support.builders import make_ensemble, plain_spec, random_statistics
from tests.support.entries import X, Y, fake_fit
from tests.support.marks import statistics_but
from tfbnn.likelihoods import Categorical
from tfbnn.storage import write_model
from tfbnn.storage.format import schema


@pytest.fixture
def wide():
    """Function (layer sizes, names, settings) -> an Ensemble of two draws of a wide network."""

    def wide(layer_sizes, names, **settings):
        generator = np.random.default_rng(0)
        spec = plain_spec(layer_sizes, x_transform="standardize", dtype="float32", **settings)
        x = generator.normal(size=(4, layer_sizes[0]))
        draws = generator.normal(size=(1, 2, spec.layout.num_parameters)).astype("float32")
        statistics = random_statistics((1, 2), generator)
        return make_ensemble(spec, draws, x, np.ones((4, 1)), statistics, feature_names=names)

    return wide


@pytest.mark.parametrize(
    "layer_sizes, pattern",
    [([8_000, 1], "gene_{:06d}"), ([20_000, 2, 1], "expression_{:04d}"), ([3, 1], "λ{}" * 10**5)],
    ids=["8000 columns", "20000 columns", "three long names"],
)
@pytest.mark.parametrize("untrusted", statistics_but([False], [False, True]))
def test_names_of_any_number_and_length_come_back(wide, tmp_path, layer_sizes, pattern, untrusted):
    names = tuple(pattern.replace("{}", str(i)).format(i) for i in range(layer_sizes[0]))
    ensemble = wide(layer_sizes, names)
    write_model(ensemble, tmp_path / "wide.h5")
    loaded = tfbnn.load(tmp_path / "wide.h5", untrusted=untrusted).posterior
    assert loaded.feature_names == names
    assert loaded.draws.tobytes() == ensemble.draws.tobytes()


@pytest.fixture
def narrow(monkeypatch):
    """Makes the format hold little, as 64 MiB of names would take a second."""
    monkeypatch.setattr(schema, "MAX_METADATA_BYTES", 20_000)
    monkeypatch.setattr(schema, "RESERVED_METADATA_BYTES", 15_000)


@pytest.mark.tensorflow
def test_names_that_no_file_can_hold_are_refused_before_anything_is_sampled(engine, narrow):
    """And labels of classes."""
    model = tfbnn.BayesianMLP([2, 3, 1])
    frame = pd.DataFrame(X, columns=["a" * 5000, "b"])
    with pytest.raises(ValueError, match="at most 5000 bytes.*Shorten the names of columns"):
        fake_fit(model, frame)
    classifier = tfbnn.BayesianMLP([2, 3, 3], likelihood=Categorical())
    labels = np.array(["x" * 5000, "y", "z"])[np.arange(len(X)) % 3]
    with pytest.raises(ValueError, match="at most 5000 bytes.*labels of classes"):
        fake_fit(classifier, y=labels)
    assert engine.calls == []
    fake_fit(model, frame.set_axis(["a", "b"], axis=1))


@pytest.mark.tensorflow
def test_what_may_be_fitted_may_be_saved(engine, narrow, tmp_path):
    """The run, its diagnosis and stacking have more to say than what the fit began with."""
    model = tfbnn.BayesianMLP([2, 3, 1])
    long = "a" * 2490
    fake_fit(model, pd.DataFrame(X, columns=[long, "b"]), Y)
    model.stack_chains(X + 0.01, Y)
    model.save(tmp_path / "model.h5")
    assert tfbnn.load(tmp_path / "model.h5").posterior.feature_names == (long, "b")
