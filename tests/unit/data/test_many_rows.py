"""Rows that lie in files are not copied on the way, and many are worked through some at a time."""

from dataclasses import replace

import h5py
import numpy as np
import pytest

from tests.support.builders import plain_spec, synthetic_ensemble
from tfbnn import BayesianMLP, ModelFileError, load
from tfbnn.data.tables import read_table
from tfbnn.data.training_inputs import TrainingInputs, summarise_inputs
from tfbnn.data.transforms import checked_forward, fit_pipeline
from tfbnn.data.validation import as_matrix, as_targets
from tfbnn.spec import rows as rows_module
from tfbnn.spec.rows import Rows, data_hash, learn_transforms, num_known, row_digests
from tfbnn.system import arrays

X = np.random.default_rng(0).normal(size=(50, 3))


@pytest.fixture
def mapped(tmp_path):
    """X in a file."""
    np.save(tmp_path / "x.npy", X)
    return tmp_path / "x.npy"


def test_only_a_file_that_is_mapped_for_reading_is_not_copied(mapped):
    x = np.load(mapped, mmap_mode="r")
    assert np.shares_memory(as_matrix(x, "x"), x)
    assert np.shares_memory(as_matrix(x[10:], "x"), x)
    np.testing.assert_array_equal(as_matrix(x, "x"), X)
    view = X.view()
    view.setflags(write=False)
    for other in (view, np.load(mapped, mmap_mode="r+"), np.load(mapped, mmap_mode="c")):
        assert not np.shares_memory(as_matrix(other, "x"), other)


def test_other_numbers_in_a_file_are_converted(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    for name in ("x.npy", "columns.npy"):
        found = as_matrix(np.load(tmp_path / name, mmap_mode="r"), "x")
        assert found.dtype == np.float64 and found.flags.c_contiguous
        np.testing.assert_allclose(found, X, rtol=1e-6)


def test_datasets_of_hdf5_are_rows(tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["x"], file["y"] = X, X[:, 0].astype(np.float32)
        np.testing.assert_array_equal(as_matrix(file["x"], "x", num_columns=3), X)
        y = as_targets(file["y"], "y", num_targets=1)
        np.testing.assert_array_equal(y[:, 0], X[:, 0].astype(np.float32))


def test_npy_files_are_tables(mapped, tmp_path):
    table = read_table(mapped)
    assert table.columns == ("column_0", "column_1", "column_2")
    np.testing.assert_array_equal(table.values, X)
    fields = np.zeros(2, dtype=[("mass", float), ("name", "U3"), ("n", int)])
    fields["mass"], fields["n"] = [1.5, 2.5], [3, 4]
    np.save(tmp_path / "fields.npy", fields)
    with pytest.warns(match="Left out.*'name'"):
        table = read_table(tmp_path / "fields.npy")
    assert table.columns == ("mass", "n") and table.values.tolist() == [[1.5, 3], [2.5, 4]]
    np.save(tmp_path / "pickle.npy", np.array([{}, None]), allow_pickle=True)
    with pytest.raises(ValueError, match="pickle.npy is not a readable NPY file"):
        read_table(tmp_path / "pickle.npy")


def results():
    """Return what is made of rows on their way into a fit."""
    y = np.exp(3.0 * X[:, :1])
    rows, inputs = Rows(X, y, None, None), summarise_inputs(X)
    pipeline = fit_pipeline(("log10", "standardize"), y, "y")
    digests, forward = row_digests(rows), checked_forward(pipeline, y, "y")
    mean, of_inputs = pipeline.to_json()[1]["mean"], (inputs.covariance, inputs.distances)
    return [digests, num_known(digests, rows), forward, mean, *of_inputs, data_hash(rows)]


def test_rows_at_a_time_make_the_same_of_them(monkeypatch):
    whole = results()
    monkeypatch.setattr(arrays, "ROWS_AT_ONCE", 7)
    for one, other in zip(whole, results()):
        if isinstance(one, str):
            assert one == other
        else:
            np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("num_rows", [0, 1, 6, 7, 8, 50])
def test_slices_are_all_rows_once(monkeypatch, num_rows):
    monkeypatch.setattr(arrays, "ROWS_AT_ONCE", 7)
    indices = [np.arange(num_rows)[rows] for rows in arrays.row_slices(num_rows)]
    assert all(0 < len(part) <= 7 for part in indices)
    np.testing.assert_array_equal(np.concatenate([[], *indices]), np.arange(num_rows))


@pytest.mark.parametrize("noise", [None, np.full((50, 1), 0.3)])
def test_very_many_rows_are_kept_as_chains_have_them(monkeypatch, noise):
    """Rounded after their transforms, which are learnt in float64, and only where they are training rows."""
    rows, spec = Rows(X, X[:, :1] * 3.0, noise, None), plain_spec([3, 2, 1], dtype="float32")
    few = learn_transforms(spec, rows, rows)
    assert {array.dtype.name for array in few.train if array is not None} == {"float64"}
    monkeypatch.setattr(rows_module, "ROWS_AT_ONCE", 49)
    many = learn_transforms(spec, rows, rows)
    assert (many.x_pipeline, many.y_pipeline) == (few.x_pipeline, few.y_pipeline)
    for found, exact, kept in zip(many.train, few.train, many.held_out):
        assert (found is None) == (noise is None and exact is None)
        if found is not None:
            np.testing.assert_array_equal(found, exact.astype(np.float32))
            assert found.dtype == np.float32 and kept.dtype == np.float64


def test_inputs_of_very_many_rows_can_be_saved(tmp_path):
    """They come in float32; files have float64, and those of earlier releases float32, too."""
    found = summarise_inputs(X.astype(np.float32))
    assert {one.dtype for one in vars(found).values()} == {np.dtype(float)}
    ensemble = synthetic_ensemble()
    inputs = {name: one.astype(np.float32) for name, one in vars(ensemble.training_inputs).items()}
    model = BayesianMLP.from_ensemble(replace(ensemble, training_inputs=TrainingInputs(**inputs)))
    model.save(tmp_path / "m.h5")
    again = load(tmp_path / "m.h5").posterior.training_inputs
    np.testing.assert_array_equal(again.low, inputs["low"])
    assert again.low.dtype == np.float64
    odd = replace(ensemble, x_reference=ensemble.x_reference.astype(np.float32))
    with pytest.raises(ModelFileError, match="x_reference must not be float32"):
        BayesianMLP.from_ensemble(odd).save(tmp_path / "odd.h5")
