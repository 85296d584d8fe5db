"""Model files: bitwise round trips, refusal of everything else, replacement only when complete."""

import json
import os
import stat

import h5py
import numpy as np
import pytest
from conftest import make_rows

import tfbnn
from tfbnn.likelihoods import Gaussian, HeteroscedasticGaussian, StudentT
from tfbnn.priors import HierarchicalNormal, Laplace, LogNormal, Uniform
from tfbnn.storage import model_file, read_model, write_model

LOG = ["log10", "standardize"]
CONFIGURATIONS = {
    "default": {},
    "float32": {"dtype": "float32"},
    "logarithm": {"y_transform": LOG},
    "no transforms": {"x_transform": None, "y_transform": None},
    "Student-t, fixed noise": {"likelihood": StudentT(3.5, [0.1, 0.2]), "layer_sizes": (3, 4, 2)},
    "heteroscedastic": {"likelihood": HeteroscedasticGaussian(), "layer_sizes": (2, 5, 4)},
    "priors": {
        "prior": [
            {"kernel": Laplace(0.3), "bias": Uniform(-1.0, 2.0)},
            HierarchicalNormal(LogNormal(-1.0, 0.5)),
        ],
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
    before = synthetic_ensemble(**configuration)
    write_model(before, path)
    after = read_model(path)
    assert after.spec == before.spec
    assert (after.x_pipeline, after.y_pipeline) == (before.x_pipeline, before.y_pipeline)
    assert after.feature_names == before.feature_names
    assert after.row_noise is before.row_noise
    assert after.provenance.items() >= before.provenance.items()
    for name in ("draws", "chain_weights", "x_reference"):
        assert bits(getattr(after, name)) == bits(getattr(before, name))
    assert after.sample_stats.keys() == before.sample_stats.keys()
    for name, values in before.sample_stats.items():
        assert bits(after.sample_stats[name]) == bits(values)


@each_configuration
def test_a_loaded_model_predicts_the_same_bits(synthetic_ensemble, configuration, path):
    model = tfbnn.BayesianMLP.from_ensemble(synthetic_ensemble(**configuration))
    x, y = make_rows(9, model.spec.num_inputs, model.spec.num_targets, seed=3)
    noise = 0.1 * y if model.posterior.row_noise else None
    model.save(path)
    loaded = tfbnn.load(path)
    settings = {"include_noise": True, "quantiles": [0.1, 0.9], "noise_scale": noise}
    before, after = model.predict(x, **settings), loaded.predict(x, **settings)
    assert list(map(bits, (*after, after.quantiles))) == list(
        map(bits, (*before, before.quantiles))
    )
    assert bits(loaded.predict_draws(x)) == bits(model.predict_draws(x))
    assert str(loaded.evaluate(x, y, noise_scale=noise)) == str(
        model.evaluate(x, y, noise_scale=noise)
    )
    assert bits(loaded.diagnose().rhat_function) == bits(model.diagnose().rhat_function)


def test_a_sampled_model_predicts_the_same_bits(tiny_model, tiny_data, path):
    tiny_model.save(path)
    loaded = tfbnn.load(path)
    assert bits(loaded.predict(tiny_data[0]).mean) == bits(tiny_model.predict(tiny_data[0]).mean)
    assert (
        loaded.posterior.provenance["data_sha256"]
        == (tiny_model.posterior.provenance["data_sha256"])
    )


def test_saving_a_loaded_model_again_loses_nothing(saved, tmp_path):
    again = tmp_path / "again.h5"
    tfbnn.load(saved).save(again)
    assert bits(read_model(again).draws) == bits(read_model(saved).draws)
    assert read_model(again).spec == read_model(saved).spec


def test_path_may_be_a_string(synthetic_ensemble, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_model(synthetic_ensemble(), "model.h5")
    assert read_model("model.h5").num_chains == 2


def test_names_in_the_file_are_those_of_arviz(saved):
    with h5py.File(saved) as file:
        assert file["posterior/theta"].shape == (2, 15, 22)
        assert set(file["sample_stats"]) == {
            "lp",
            "acceptance_rate",
            "step_size",
            "n_steps",
            "diverging",
            "energy",
        }
        assert {"format", "format_version", "inference_library_version"} <= set(file.attrs)


# What is not a model file at all.


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"mass,xs\n1,2\n", b"PK\x03\x04 npz", b"\x89HDF\r\n\x1a\n", b"\0" * 4096],
    ids=["empty", "newline", "csv", "zip", "signature only", "zeros"],
)
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(tfbnn.ModelFileError, match="model.h5.*not a readable tfbnn model"):
        tfbnn.load(path)


def test_another_hdf5_file_is_refused(path):
    with h5py.File(path, "w") as file:
        file["model_weights"] = np.zeros(3)
        file.attrs["keras_version"] = "3.0.0"
    with pytest.raises(tfbnn.ModelFileError, match="model.h5.*not a tfbnn model"):
        tfbnn.load(path)


def test_a_missing_file_is_reported_by_name(path):
    with pytest.raises(FileNotFoundError, match="model.h5"):
        tfbnn.load(path)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(tfbnn.ModelFileError, match="not a file"):
        tfbnn.load(tmp_path)


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(tfbnn.ModelFileError, match="model.h5"):
        tfbnn.load(saved)


@pytest.mark.parametrize(
    "place",
    [
        "posterior/theta",
        "posterior/chain_weights",
        "metadata",
        "constant_data/x_reference",
        "sample_stats/lp",
    ],
)
def test_one_flipped_bit_in_the_data_is_found(saved, place):
    with h5py.File(saved) as file:
        offset = file[place].id.get_offset() + file[place].id.get_storage_size() - 5
    content = bytearray(saved.read_bytes())
    content[offset] ^= 1
    saved.write_bytes(content)
    with pytest.raises(tfbnn.ModelFileError, match="model.h5"):
        tfbnn.load(saved)


@pytest.mark.parametrize("block", range(0, 8192, 512))
def test_a_block_overwritten_is_refused_or_without_consequence(saved, block):
    expected, content = read_model(saved), bytearray(saved.read_bytes())
    content[block : block + 512] = b"\xff" * len(content[block : block + 512])
    saved.write_bytes(content)
    try:
        found = tfbnn.load(saved).posterior
    except tfbnn.ModelFileError:
        return
    assert bits(found.draws) == bits(expected.draws) and found.spec == expected.spec


# Files that contradict themselves.


def replace(name, change):
    """An edit that replaces a dataset by change(its values)."""

    def edit(file):
        values = file[name][()]
        del file[name]
        file[name] = change(values)

    return edit


def rewrite(*keys, value):
    """An edit of one entry of the metadata."""

    def edit(file):
        metadata = json.loads(file["metadata"][()].tobytes())
        place = metadata
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        del file["metadata"]
        file["metadata"] = np.frombuffer(json.dumps(metadata).encode(), np.uint8)

    return edit


def set_one(value):
    def change(values):
        values = values.copy()
        values[(0,) * values.ndim] = value
        return values

    return change


def remove(name):
    def edit(file):
        del file[name]

    return edit


def as_group(name):
    def edit(file):
        del file[name]
        file.create_group(name)

    return edit


def set_attribute(name, value):
    def edit(file):
        file.attrs[name] = value

    return edit


def declare(name, shape):
    """An edit that declares a dataset of a huge shape without storing anything."""

    def edit(file):
        del file[name]
        file.create_dataset(name, shape=shape, dtype="f4", chunks=(1, 1, shape[-1]))

    return edit


def seal(path):
    """Recomputes the hashes of an edited file, so that what it says is judged, not its hashes."""
    if hasattr(tfbnn.storage, "seal"):
        tfbnn.storage.seal(path)


THETA = "posterior/theta"
EDITS = {
    "NaN weight": replace(THETA, set_one(np.nan)),
    "infinite weight": replace(THETA, set_one(np.inf)),
    "a parameter too few": replace(THETA, lambda v: v[..., :-1]),
    "theta without chains": replace(THETA, lambda v: v[0]),
    "no draws": lambda file: (
        replace(THETA, lambda v: v[:, :0])(file),
        [replace(f"sample_stats/{n}", lambda v: v[:, :0])(file) for n in file["sample_stats"]],
    ),
    "no chains": lambda file: (
        replace(THETA, lambda v: v[:0])(file),
        replace("posterior/chain_weights", lambda v: v[:0])(file),
        [replace(f"sample_stats/{n}", lambda v: v[:0])(file) for n in file["sample_stats"]],
    ),
    "theta in float64": replace(THETA, lambda v: v.astype("<f8")),
    "theta big-endian": replace(THETA, lambda v: v.astype(">f4")),
    "theta of integers": replace(THETA, lambda v: v.astype(int)),
    "theta of bytes": replace(THETA, lambda v: v.astype("S8")),
    "theta missing": remove(THETA),
    "theta a group": as_group(THETA),
    "theta of a size no memory holds": declare(THETA, (2, 10**16, 22)),
    "a statistic missing": remove("sample_stats/energy"),
    "a statistic too short": replace("sample_stats/lp", lambda v: v[:, :-1]),
    "a statistic of bytes": replace("sample_stats/lp", lambda v: v.astype("S8")),
    "statistics missing": remove("sample_stats"),
    "chain weights missing": remove("posterior/chain_weights"),
    "chain weights too many": replace("posterior/chain_weights", lambda v: np.full(4, 0.25)),
    "chain weights negative": replace("posterior/chain_weights", lambda v: np.array([1.5, -0.5])),
    "chain weights NaN": replace("posterior/chain_weights", lambda v: v * np.nan),
    "chain weights do not add up": replace("posterior/chain_weights", lambda v: 0.9 * v),
    "reference rows NaN": replace("constant_data/x_reference", set_one(np.nan)),
    "reference rows too narrow": replace("constant_data/x_reference", lambda v: v[:, :1]),
    "reference rows of bytes": replace("constant_data/x_reference", lambda v: v.astype("S8")),
    "no reference rows": replace("constant_data/x_reference", lambda v: v[:0]),
    "metadata missing": remove("metadata"),
    "metadata a group": as_group("metadata"),
    "metadata no JSON": replace("metadata", lambda v: v[:-3]),
    "metadata no UTF-8": replace("metadata", set_one(255)),
    "metadata a list": replace("metadata", lambda v: np.frombuffer(b"[]", np.uint8)),
    "metadata a string": replace("metadata", lambda v: v.tobytes().decode()),
    "metadata nested deeply": replace(
        "metadata", lambda v: np.frombuffer(b"[" * 200_000, np.uint8)
    ),
    "another architecture": rewrite("spec", "layer_sizes", value=[2, 6, 1]),
    "absurd architecture": rewrite("spec", "layer_sizes", value=[2, 10**30, 1]),
    "an unknown activation": rewrite("spec", "activations", value=["__import__"]),
    "an unknown likelihood": rewrite("spec", "likelihood", value={"name": "os.system"}),
    "a prior that is none": rewrite("spec", "priors", 0, "kernel", value={"name": "Gaussian"}),
    "spec missing": rewrite("spec", value=None),
    "a scale of zero": rewrite("x_pipeline", 0, "scale", value=[1.0, 0.0]),
    "a scale that is NaN": rewrite("x_pipeline", 0, "scale", value=[1.0, float("nan")]),
    "a mean too long": rewrite("x_pipeline", 0, "mean", value=[0.0, 0.0, 0.0]),
    "a pipeline for more columns": rewrite(
        "x_pipeline", value=[{"name": "standardize", "mean": [0.0] * 3, "scale": [1.0] * 3}]
    ),
    "a pipeline of other steps than the spec": rewrite("y_pipeline", value=[]),
    "a logarithm the spec does not know": rewrite("y_pipeline", value=[{"name": "log10"}] * 2),
    "an unknown transform": rewrite("y_pipeline", 0, "name", value="exp"),
    "a feature name too many": rewrite("feature_names", value=["a", "b", "c"]),
    "feature names no list": rewrite("feature_names", value="ab"),
    "provenance no dict": rewrite("provenance", value=7),
    "provenance with a text for a count": rewrite(
        "provenance", value={"num_results_requested": "many"}
    ),
    "format version from the future": set_attribute("format_version", 999),
    "format version no number": set_attribute("format_version", "one"),
    "format missing": lambda file: file.attrs.pop("format"),
    "format version missing": lambda file: file.attrs.pop("format_version"),
}


def test_the_edits_below_start_from_a_sound_file(saved):
    with h5py.File(saved, "r+") as file:
        replace(THETA, lambda values: values)(file)
        rewrite("row_noise", value=False)(file)
    seal(saved)
    assert tfbnn.load(saved).posterior.num_draws == 30


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_file_that_contradicts_itself_is_refused(saved, edit):
    with h5py.File(saved, "r+") as file:
        edit(file)
    with pytest.raises(tfbnn.ModelFileError, match="model.h5"):
        seal(saved)
        tfbnn.load(saved)


def test_a_newer_format_is_refused_by_its_version(saved):
    with h5py.File(saved, "r+") as file:
        file.attrs["format_version"] = 999
    with pytest.raises(tfbnn.ModelFileError, match=r"version \d+, the file has 999"):
        tfbnn.load(saved)


def outside(kind, file, other):
    """Puts theta, or what stands for it, into another file."""
    values = file[THETA][()]
    del file[THETA]
    if kind == "external link":
        with h5py.File(other, "w") as target:
            target["theta"] = values
        file[THETA] = h5py.ExternalLink(str(other), "theta")
    elif kind == "external storage":
        other.write_bytes(values.tobytes())
        file.create_dataset(
            THETA, values.shape, values.dtype, external=[(str(other), 0, values.nbytes)]
        )
    elif kind == "virtual dataset":
        with h5py.File(other, "w") as target:
            target["theta"] = values
        layout = h5py.VirtualLayout(values.shape, values.dtype)
        layout[:] = h5py.VirtualSource(str(other), "theta", values.shape)
        file.create_virtual_dataset(THETA, layout)


@pytest.mark.parametrize("kind", ["external link", "external storage", "virtual dataset"])
def test_a_file_that_reads_another_file_is_refused(saved, tmp_path, kind):
    with h5py.File(saved, "r+") as file:
        outside(kind, file, tmp_path / "other")
    with pytest.raises(tfbnn.ModelFileError, match="model.h5"):
        seal(saved)
        tfbnn.load(saved)


# Writing.


def test_a_missing_folder_is_reported(synthetic_ensemble, tmp_path):
    with pytest.raises(FileNotFoundError, match="folder of .*nowhere.*does not exist"):
        write_model(synthetic_ensemble(), tmp_path / "nowhere" / "model.h5")
    assert os.listdir(tmp_path) == []


def test_an_older_file_is_replaced(saved, synthetic_ensemble):
    write_model(synthetic_ensemble((3, 4, 1)), saved)
    assert read_model(saved).spec.layer_sizes == (3, 4, 1)
    assert os.listdir(saved.parent) == ["model.h5"]


@pytest.mark.parametrize("step", ["_write", "h5py.File", "os.fsync", "os.replace", "os.chmod"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=repr)
def test_a_failure_while_writing_leaves_the_older_file(
    saved, synthetic_ensemble, monkeypatch, step, error
):
    def fail(*args, **kwargs):
        raise error

    before = saved.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(f"tfbnn.storage.model_file.{step}", fail)
        with pytest.raises(type(error)):
            write_model(synthetic_ensemble((3, 4, 1)), saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == ["model.h5"]


def test_a_failure_in_the_middle_of_the_file_leaves_the_older_file(
    saved, synthetic_ensemble, monkeypatch
):
    before, ensemble = saved.read_bytes(), synthetic_ensemble()
    del ensemble.sample_stats["energy"]  # the last dataset that is written
    with pytest.raises(KeyError):
        write_model(ensemble, saved)
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
    assert seen == [((2, 5, 1), (3, 4, 1))]


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


def test_loading_leaves_the_file_as_it_is(saved):
    before, modified = saved.read_bytes(), saved.stat().st_mtime_ns
    tfbnn.load(saved).predict(np.zeros((1, 2)))
    assert saved.read_bytes() == before and saved.stat().st_mtime_ns == modified


def test_arrays_of_a_loaded_model_are_read_only(saved):
    ensemble = read_model(saved)
    for array in (ensemble.draws, ensemble.chain_weights, ensemble.sample_stats["lp"]):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
