"""Model files of every released format version load for ever, with the numbers they had then.

The version after the last released one is open: it has no golden files yet, and what it adds is
what `schema.ADDED_METADATA` says.
"""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

import tfbnn
from tfbnn.storage import write_model
from tfbnn.storage.format import schema
from tfbnn.storage.model.contents import to_arrays

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.h5"))
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_there_are_files_of_every_version():
    versions = {int(path.stem[1:].partition("_")[0]) for path in FILES}
    assert versions == set(range(1, schema.RELEASED_VERSION + 1))


@each_file
@pytest.mark.parametrize("untrusted", [False, True])
def test_a_golden_file_holds_what_it_held(path, untrusted):
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    model = tfbnn.load(path, untrusted=untrusted)
    ensemble = model.posterior
    assert ensemble.spec.to_json() == expected["spec"]
    for name in ("feature_names", "classes", "row_noise", "diagnostics"):
        found = getattr(ensemble, name)
        assert (list(found) if isinstance(found, tuple) else found) == expected[name]
    assert ensemble.provenance.to_json() == expected["provenance"]
    arrays = {"theta": ensemble.draws, "x_reference": ensemble.x_reference}
    arrays |= ensemble.sample_stats | vars(ensemble.training_inputs)
    if ensemble.readouts is not None:
        arrays |= {f"readout_{name}": array for name, array in vars(ensemble.readouts).items()}
    assert {*arrays, "chain_weights"} == set(expected["sums"])
    for name, values in arrays.items():
        total = np.sum(values, dtype=np.float64)
        np.testing.assert_allclose(total, expected["sums"][name], rtol=1e-12, err_msg=name)
    assert ensemble.chain_weights.tolist() == expected["sums"]["chain_weights"]
    mean, stddev = model.predict(np.array(expected["x"]))
    np.testing.assert_allclose(mean, expected["mean"], rtol=1e-5)
    np.testing.assert_allclose(stddev, expected["stddev"], rtol=1e-5)


@each_file
def test_a_golden_file_that_is_written_again_holds_the_same_and_predicts_the_same(path, tmp_path):
    model = tfbnn.load(path)
    model.save(tmp_path / "again.h5")
    again = tfbnn.load(tmp_path / "again.h5")
    old, new = (to_arrays(one.posterior, "then") for one in (model, again))
    assert old.keys() == new.keys()
    for name, array in old.items():
        assert (array.dtype, array.shape) == (new[name].dtype, new[name].shape), name
        assert array.tobytes() == new[name].tobytes(), name
    x = np.array(json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["x"])
    for old, new in zip(model.predict(x), again.predict(x)):
        assert old.shape == new.shape
        assert old.tobytes() == new.tobytes()


@pytest.mark.parametrize("path", [FOLDER / f"v{schema.RELEASED_VERSION}_regression.h5"])
def test_what_is_written_now_has_the_format_of_the_golden_file(path, synthetic_ensemble, tmp_path):
    """Whoever changes a released format has to count the version up and say what it adds."""
    write_model(synthetic_ensemble(), tmp_path / "new.h5")
    expected = description(path)
    if schema.FORMAT_VERSION > schema.RELEASED_VERSION:
        metadata, spec = expected["keys"]
        added = schema.ADDED_METADATA[schema.FORMAT_VERSION]
        expected["keys"] = (sorted([*metadata, *added]), spec)
    assert description(tmp_path / "new.h5") == expected | {"format_version": schema.FORMAT_VERSION}


def description(path):
    """Names, kinds and dimensions of all there is in a model file."""
    found = {}

    def visit(name, node):
        if isinstance(node, h5py.Dataset):
            found[name] = (node.dtype.str, node.ndim)

    with h5py.File(path) as file:
        file.visititems(visit)
        found["attributes"] = {name: np.asarray(v).dtype.kind for name, v in file.attrs.items()}
        found["format_version"] = int(file.attrs["format_version"])
        metadata = json.loads(file["metadata"][()].tobytes())
        found["keys"] = (sorted(metadata), sorted(metadata["spec"]))
    return found
