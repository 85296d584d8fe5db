"""Model files of every released format version load for ever, with the numbers they had then."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

import tfbnn
from tfbnn.storage import write_model
from tfbnn.storage.format import schema

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.h5"))
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_there_are_files_of_every_version():
    versions = {int(path.stem[1:].partition("_")[0]) for path in FILES}
    assert versions == set(range(1, schema.FORMAT_VERSION + 1))


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


@pytest.mark.parametrize("path", [FOLDER / f"v{schema.FORMAT_VERSION}_regression.h5"])
def test_what_is_written_now_has_the_format_of_the_golden_file(path, synthetic_ensemble, tmp_path):
    """Whoever changes the format has to count the version up and add files of it."""
    write_model(synthetic_ensemble(), tmp_path / "new.h5")
    assert description(tmp_path / "new.h5") == description(path)


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
