"""Tables in NPZ, HDF5 and Parquet that strangers made: refused with a word, and nothing left out."""

import struct
import zipfile
from decimal import Decimal

import h5py
import numpy as np
import pandas as pd
import pytest

from tfbnn.data.tables import read_table
from tfbnn.exceptions import DataWarning

SECRET = b"a secret of 24 bytes ..."


def npz_bytes(path, flag=None, method=None):
    """Writes an NPZ file, and changes what its two records say of how to read it."""
    np.savez(path, a=np.ones(3))
    data = bytearray(path.read_bytes())
    for signature, shift in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        start = data.index(signature) + shift
        values = struct.unpack_from("<HH", data, start)
        changed = [old if new is None else new for new, old in zip((flag, method), values)]
        struct.pack_into("<HH", data, start, *changed)
    path.write_bytes(data)


def npz_bomb(path):
    """An array that says it has 8 TB."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: npz_bytes(path, flag=1),
        lambda path: npz_bytes(path, method=99),
        npz_bomb,
    ],
    ids=["encrypted", "unknown compression", "8 TB"],
)
def test_npz_that_cannot_be_read(tmp_path, write):
    write(tmp_path / "t.npz")
    with pytest.raises(ValueError, match="t.npz is not a readable NPZ file"):
        read_table(tmp_path / "t.npz")


def external_link(file, secret):
    file["a"] = h5py.ExternalLink(secret, "/")


def soft_link(file, secret):
    file["b"] = np.ones(3)
    file["a"] = h5py.SoftLink("/b")


def external_storage(file, secret):
    file.create_dataset("a", (3,), "<f8", external=[(secret, 0, 24)])


def virtual(file, secret):
    layout = h5py.VirtualLayout((3,), "<f8")
    layout[:] = h5py.VirtualSource(secret, "a", (3,))
    file.create_virtual_dataset("a", layout)


def hollow(file, secret):
    file.create_dataset("a", (2**40,), "<f8")


def hollow_chunks(file, secret):
    file.create_dataset("a", (2**40,), "<f8", chunks=(2**20,))


def huge_chunk(file, secret):
    file.create_dataset("a", (2**24,), "<f8", chunks=(2**24,), compression="gzip")


def plugin(file, secret):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((3,))
    plist.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, ())
    h5py.h5d.create(file.id, b"a", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((3,)), plist)


@pytest.mark.parametrize(
    ("craft", "words"),
    [
        (external_link, "a must be in this file, found a link"),
        (soft_link, "a must be in this file, found a link"),
        (external_storage, "a must be a plain dataset of this file"),
        (virtual, "a must be a plain dataset of this file"),
        (hollow, "a declares the shape .*, 8796093022208 bytes, but does not hold them"),
        (hollow_chunks, "a declares the shape .* but does not hold them"),
        (huge_chunk, "a must have chunks of at most"),
        (plugin, "a must have no filters but"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_hdf5_that_reaches_elsewhere_or_holds_too_little(tmp_path, craft, words):
    (tmp_path / "secret").write_bytes(SECRET)
    with h5py.File(tmp_path / "t.h5", "w") as file:
        craft(file, str(tmp_path / "secret"))
    with pytest.raises(ValueError, match=f"t.h5 is not a readable HDF5 file .{words}"):
        read_table(tmp_path / "t.h5")


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
def test_hdf5_as_it_is_usually_written(tmp_path, compression):
    values = np.arange(60.0).reshape(30, 2)
    with h5py.File(tmp_path / "t.h5", "w") as file:
        options = {"compression": compression, "shuffle": True} if compression else {}
        file.create_dataset("x", data=values, **options)
        file["n"] = np.arange(30, dtype=">i2")
    table = read_table(tmp_path / "t.h5")
    assert table.columns == ("n", "x_0", "x_1")
    np.testing.assert_array_equal(table.values, np.column_stack([np.arange(30), values]))


def test_columns_of_one_name_are_refused(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.ones((3, 2)), x_0=np.zeros(3))
    with pytest.raises(ValueError, match="2 columns x_0"):
        read_table(tmp_path / "t.npz")
    assert read_table(tmp_path / "t.npz", columns=["x_1"]).values.tolist() == [[1.0]] * 3


def test_the_index_of_pandas_is_no_column(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]})
    frame[::-1].to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").columns == ("a", "y")


def test_missing_categories_of_parquet_stay_missing(tmp_path):
    kinds = pd.Categorical(["r", None, "g", "b"])
    pd.DataFrame({"kind": kinds, "a": np.arange(4.0)}).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", texts=True, gaps=True)
    assert table.column("kind").tolist() == ["r", None, "g", "b"]
    with pytest.raises(ValueError, match="row 1 .*column kind: expected a label"):
        read_table(tmp_path / "t.parquet", labels=["kind"])


def test_a_matrix_is_ignored_by_its_name(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.ones((3, 2)), z=np.ones((3, 2)), y=np.ones(3))
    found = read_table(tmp_path / "t.npz", without=["z"]).columns
    assert found == ("x_0", "x_1", "y")


def test_parquet_decimals_are_numbers(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    values = [Decimal("0.1"), Decimal("12345678901234567.875"), Decimal("-3")]
    column = pyarrow.array(values, pyarrow.decimal128(38, 18))
    parquet.write_table(pyarrow.table({"a": column, "b": [1, 2, 3]}), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.columns == ("a", "b")
    assert table.values[:, 0].tolist() == [float(value) for value in values]
    column = pyarrow.array([Decimal("0.1"), None], pyarrow.decimal128(5, 2))
    parquet.write_table(pyarrow.table({"a": column}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="row 1 .*column a"):
        read_table(tmp_path / "t.parquet")


def test_text_of_parquet_is_taken_in_every_type_and_labels_without_blanks(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()):
        columns = {"a": [1.0, 2.0, 3.0], "kind": pyarrow.array(["u", "u ", "v"], kind)}
        parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
        table = read_table(tmp_path / "t.parquet", labels=["kind"])
        assert table.labels(["kind"])[:, 0].tolist() == ["u", "u", "v"]


def test_labels_are_exact_in_every_format(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    labels, species = [2**53 + 1, 2**53, 5], ["naïve λ", "y", "naïve λ"]
    columns = {"a": [1.0, 2.0, 3.0], "label": labels, "species": species}
    np.savez(tmp_path / "t.npz", **{name: np.array(column) for name, column in columns.items()})
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file.update(columns)
    for name in ("t.npz", "t.parquet", "t.h5"):
        table = read_table(tmp_path / name, labels=["label", "species"])
        assert table.columns == ("a",)
        assert table.labels(["label"])[:, 0].tolist() == labels
        assert table.take([0, 2]).labels(["species"])[:, 0].tolist() == ["naïve λ"] * 2
        with pytest.warns(DataWarning, match="no name: 'species'"):
            assert read_table(tmp_path / name, labels=["label"]).columns == ("a",)
    parquet.write_table(pyarrow.table({"a": [1, 2], "label": ["x", None]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="row 1 .*column label: expected a label, got None"):
        read_table(tmp_path / "t.parquet", labels=["label"])


def test_the_first_of_bad_columns_is_named(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, **{name: np.array([1.0, np.nan]) for name in ("zeta", "alpha", "mu", "beta")})
    with pytest.raises(ValueError, match="zeta"):
        read_table(path)


def test_a_member_of_npz_that_is_no_array_is_left_out(tmp_path):
    np.savez(tmp_path / "t.npz", a=np.arange(5.0), b=np.arange(5.0))
    with zipfile.ZipFile(tmp_path / "t.npz", "a") as archive:
        archive.writestr("README.txt", "made by hand")
    with pytest.warns(DataWarning, match="Left out.*'README.txt'"):
        assert read_table(tmp_path / "t.npz").columns == ("a", "b")


def test_hdf5_with_columns_elsewhere_says_where(tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as file:  # pandas' to_hdf has such a group
        file["df/block0_values"] = np.ones((3, 2))
        file["df/block0_items"] = np.array([b"mass", b"xsec"])
        file["table"] = np.array([(1.0, 2.0)], dtype=[("mass", "f8"), ("xsec", "f8")])
    words = r"columns as datasets of numbers at its root, found none. .*CSV or Parquet"
    with pytest.raises(ValueError, match=words):
        read_table(tmp_path / "t.h5")
    with h5py.File(tmp_path / "t.h5", "a") as file:
        file["mass"] = np.ones(3)
    with pytest.warns(DataWarning, match="Left out.*'table'"):
        assert read_table(tmp_path / "t.h5").columns == ("mass",)
