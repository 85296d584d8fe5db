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
from tests.support import golden
from tests.support.marks import statistics_but
from tfbnn.storage.format import schema
from tfbnn.storage.model.contents import to_arrays

# That of one file, which says so whenever it is used.
pytestmark = pytest.mark.filterwarnings("ignore:The draws of this model are not sampled")

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.h5"))
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_there_are_files_of_every_version():
    versions = {int(path.stem[1:].partition("_")[0]) for path in FILES}
    assert versions == set(range(1, schema.RELEASED_VERSION + 1))


@pytest.mark.parametrize(
    ("path", "untrusted"),
    # That a child reads the same as this process is tested with files of today.
    statistics_but(
        [*((path, False) for path in FILES), (FOLDER / "v1_regression.h5", True)],
        [(path, untrusted) for path in FILES for untrusted in (False, True)],
    ),
    ids=lambda part: getattr(part, "stem", part),
)
def test_a_golden_file_holds_what_it_held(path, untrusted):
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    model = tfbnn.load(path, untrusted=untrusted)
    found = json.loads(json.dumps(golden.held_by(model, expected["x"])))
    sums, expected_sums = found.pop("sums"), expected.pop("sums")
    assert sums.keys() == expected_sums.keys()
    assert sums.pop("chain_weights") == expected_sums.pop("chain_weights")
    assert sums == pytest.approx(expected_sums, rel=1e-12, nan_ok=True)
    for name in ("mean", "stddev"):
        np.testing.assert_allclose(found.pop(name), expected.pop(name), rtol=1e-5, err_msg=name)
    for name, values in expected.pop("with_noise", {}).items():
        now = golden.with_noise(model, expected["x"])[name]
        np.testing.assert_allclose(now, values, rtol=1e-5, err_msg=name)
    # What later formats added means in this one what it means without.
    added = {
        key: value for entries in schema.ADDED_METADATA.values() for key, value in entries.items()
    }
    assert found == added | expected


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
    x = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["x"]
    assert golden.held_by(model, x)["mean"] == golden.held_by(again, x)["mean"]


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.stem.startswith(f"v{schema.RELEASED_VERSION}_")],
    ids=lambda path: path.stem,
)
def test_what_is_written_now_has_the_format_of_the_golden_file(path, tmp_path):
    """Whoever changes a released format has to count the version up and say what it adds."""
    tfbnn.load(path).save(tmp_path / "new.h5")
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
