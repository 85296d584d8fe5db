"""Model files: bitwise round trips, refusal of everything else, replacement only when complete."""

import os
import stat

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows
from tfbnn.likelihoods import Gaussian, HeteroscedasticGaussian, StudentT
from tfbnn.priors import ARD, HierarchicalNormal, Laplace, LogNormal, Uniform
from tfbnn.storage import read_model, write_model
from tfbnn.storage.model import file as model_file

LOG = ["log10", "standardize"]
CONFIGURATIONS = {
    "default": {},
    "float32": {"dtype": "float32"},
    "logarithm": {"y_transform": LOG},
    "compressed": {"dtype": "float32", "layer_sizes": (2, 20, 1), "num_results": 333},
    "a target fitted as [N]": {"vector_target": True},
    "no transforms": {"x_transform": None, "y_transform": None},
    "Student-t, fixed noise": {"likelihood": StudentT(3.5, [0.1, 0.2]), "layer_sizes": (3, 4, 2)},
    "heteroscedastic": {"likelihood": HeteroscedasticGaussian(), "layer_sizes": (2, 5, 4)},
    "priors": {
        "prior": [
            {"kernel": Laplace(0.3), "bias": Uniform(-1.0, 2.0)},
            HierarchicalNormal(LogNormal(-1.0, 0.5)),
        ],
    },
    "prior per input": {
        "prior": [{"kernel": ARD(LogNormal()), "bias": Laplace(0.3)}, Laplace(0.5)]
    },
    "ntk": {"parameterization": "ntk", "activation": ["silu"]},
    "weights, names, row noise": {
        "chain_weights": [0.3, 0.7],
        "feature_names": ("mass", "naïve λ"),
        "row_noise": True,
        "likelihood": Gaussian(0.1),
        "provenance": {"seed": 3, "versions": {"numpy": "2"}, "max_tree_depth": None},
    },
}
each_configuration = pytest.mark.parametrize(
    "configuration", CONFIGURATIONS.values(), ids=CONFIGURATIONS
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.h5"


@pytest.fixture
def saved(path, synthetic_ensemble):
    """The path of a sound model file."""
    write_model(synthetic_ensemble(dtype="float32"), path)
    return path


def bits(array):
    array = np.asarray(array)
    return array.dtype, array.shape, array.tobytes()


@each_configuration
def test_everything_comes_back_bit_by_bit(synthetic_ensemble, configuration, path):
    """And so do predictions and scores, which depend on how arrays lie in memory."""
    model = tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble(**configuration))
    model.save(path)
    loaded = tfbnn.load(path)
    before, after = model.posterior, loaded.posterior
    for name in ("spec", "x_pipeline", "y_pipeline", "feature_names", "row_noise", "vector_target"):
        assert getattr(after, name) == getattr(before, name)
    assert after.provenance.to_json().items() >= before.provenance.to_json().items()
    for name in ("draws", "chain_weights", "x_reference"):
        assert bits(getattr(after, name)) == bits(getattr(before, name))
    assert after.sample_stats.keys() == before.sample_stats.keys()
    for name, values in before.sample_stats.items():
        assert bits(after.sample_stats[name]) == bits(values)
    x, y = make_rows(9, model.spec.num_inputs, model.spec.num_targets, seed=3)
    noise = {"noise_scale": 0.1 * y if before.row_noise else None}
    expected, found = (
        one.predict(x, include_noise=True, quantiles=[0.1, 0.9], **noise) for one in (model, loaded)
    )
    assert bits(found.quantiles) == bits(expected.quantiles)
    assert list(map(bits, found)) == list(map(bits, expected))
    assert bits(loaded.predict_draws(x)) == bits(model.predict_draws(x))
    assert str(loaded.evaluate(x, y, **noise)) == str(model.evaluate(x, y, **noise))
    assert bits(loaded.diagnose().rhat_function) == bits(model.diagnose().rhat_function)


def test_a_vector_of_two_targets_is_not_written(synthetic_ensemble, path):
    ensemble = synthetic_ensemble((2, 4, 2), vector_target=True)
    with pytest.raises(tfbnn.ModelFileError, match="vector_target goes with one target.* for 2"):
        write_model(ensemble, path)
    assert not path.exists()


# Networks that no chain drew.

NOT_SAMPLED = "pretrained networks: the run was stopped before its first draw"


def test_networks_that_are_no_draws_say_so_wherever_they_are_used(synthetic_ensemble, path):
    says = {"not_sampled": NOT_SAMPLED, "num_results_requested": 1000}
    write_model(synthetic_ensemble(num_results=1, provenance=says), path)
    model = tfbnn.load(path)
    x, y = make_rows(9, 2, 1)
    for refused in (lambda: model.predict(x), lambda: model.evaluate(x, y)):
        with pytest.raises(tfbnn.NotFittedError, match=f"before its first draw .{NOT_SAMPLED}"):
            refused()
    with pytest.warns(UserWarning, match=f"are not sampled from .*{NOT_SAMPLED}") as caught:
        mean, _ = model.predict(x, allow_unsampled=True)
    assert len(caught) == 1 and np.isfinite(mean).all()
    model.predict(x, allow_unsampled=True)  # once is enough
    with pytest.raises(ValueError, match=f"has none. The networks .*{NOT_SAMPLED}"):
        model.diagnose()


# What is not a model file at all.


@pytest.mark.parametrize(
    "content",
    [b"", b"mass,xs\n1,2\n", b"\x89HDF\r\n\x1a\n", b"\0" * 4096],
    ids=["empty", "csv", "signature only", "zeros"],
)
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(tfbnn.ModelFileError, match="model.h5.*not a readable tfbnn model"):
        tfbnn.load(path)


def test_a_missing_file_is_reported_by_name(path):
    with pytest.raises(FileNotFoundError, match="model.h5"):
        tfbnn.load(path)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(tfbnn.RunFolderError, match="not a run folder"):
        tfbnn.load(tmp_path)


# Writing.


def test_a_missing_folder_is_reported(synthetic_ensemble, tmp_path):
    with pytest.raises(FileNotFoundError, match="folder of .*nowhere.*does not exist"):
        write_model(synthetic_ensemble(), tmp_path / "nowhere" / "model.h5")
    assert os.listdir(tmp_path) == []


SEALED = "tfbnn.storage.format.sealing.h5py.File"


@pytest.mark.parametrize("step", [f"{SEALED}.create_dataset", SEALED, "os.fsync", "os.replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=repr)
def test_a_failure_while_writing_leaves_the_older_file(
    saved, synthetic_ensemble, monkeypatch, step, error
):
    def fail(*args, **kwargs):
        raise error

    before = saved.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(step, fail)
        with pytest.raises(type(error)):
            write_model(synthetic_ensemble((3, 4, 1)), saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == ["model.h5"]


def test_the_older_file_can_be_read_until_the_new_one_is_complete(
    saved, synthetic_ensemble, monkeypatch
):
    seen, replace_file = [], os.replace

    def look_and_replace(source, target):
        seen.append((read_model(target).spec.layer_sizes, read_model(source).spec.layer_sizes))
        replace_file(source, target)

    monkeypatch.setattr(model_file.os, "replace", look_and_replace)
    write_model(synthetic_ensemble((3, 4, 1)), saved)
    assert seen == [((2, 5, 1), (3, 4, 1))] and read_model(saved).spec.layer_sizes == (3, 4, 1)


def test_content_and_name_are_on_the_disk_in_this_order(saved, synthetic_ensemble, monkeypatch):
    calls, sync, replace_file = [], os.fsync, os.replace

    def record_sync(handle):
        calls.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def record_replace(source, target):
        calls.append("name")
        replace_file(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", record_replace)
    write_model(synthetic_ensemble((3, 4, 1)), saved)
    assert calls == ["file", "name", "folder"]


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077, 0o002])
def test_permissions_follow_the_umask(synthetic_ensemble, path, umask):
    previous = os.umask(umask)
    try:
        write_model(synthetic_ensemble(), path)
        assert os.umask(umask) == umask  # writing has not changed it
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_saving_onto_a_folder_fails_and_leaves_nothing(synthetic_ensemble, path):
    path.mkdir()
    with pytest.raises(OSError):
        write_model(synthetic_ensemble(), path)
    assert os.listdir(path.parent) == ["model.h5"] and os.listdir(path) == []


def test_arrays_of_a_loaded_model_are_read_only(saved):
    ensemble = read_model(saved)
    arrays = ensemble.draws, ensemble.chain_weights, ensemble.sample_stats["lp"]
    assert not any(array.flags.writeable for array in arrays)


@pytest.mark.parametrize("name", ["m.keras", "M.ONNX", "m.pkl"])
def test_endings_of_other_formats_are_refused(synthetic_ensemble, tmp_path, name):
    model = tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble())
    with pytest.raises(ValueError, match=r"end in \.h5.*to_onnx, to_savedmodel and to_keras"):
        model.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
