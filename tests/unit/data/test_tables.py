"""Tables: every format gives the same numbers, and what is wrong is named with its place."""

import gzip
import io
import sys

import h5py
import numpy as np
import pandas as pd
import pytest

from tests.support.tables import write_csv
from tfbnn.data.csv_tables import CsvRows, csv_writer
from tfbnn.data.frames import column_names
from tfbnn.data.table import Table
from tfbnn.data.tables import is_csv, read_table
from tfbnn.data.validation import as_matrix
from tfbnn.exceptions import DataWarning

NAMES = ("mass", "N11", "xsec")
VALUES = np.array([[120.5, -0.5, 2e-4], [-300.0, 1.0, 0.1], [1 / 3, 0.0, 12.0]])


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def write_npz(path):
    np.savez(path, **dict(zip(NAMES, VALUES.T)))


def write_hdf5(path):
    with h5py.File(path, "w") as file:
        for name, column in zip(NAMES, VALUES.T):
            file[name] = column


def write_parquet(path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(dict(zip(NAMES, VALUES.T))), path)


@pytest.mark.parametrize(
    ("name", "writer"),
    [
        *((name, lambda path: write_csv(path, NAMES, VALUES)) for name in ("t.csv", "t.txt", "t")),
        ("t.npz", write_npz),
        ("t.h5", write_hdf5),
        ("t.HDF5", write_hdf5),
        ("t.parquet", write_parquet),
    ],
)
def test_every_format_gives_the_same_table(tmp_path, name, writer):
    path = tmp_path / name
    writer(path)
    table = read_table(path)
    order = [table.columns.index(column) for column in NAMES]  # HDF5 sorts names
    np.testing.assert_array_equal(table.values[:, order], VALUES)
    assert table.values.dtype == np.float64
    chosen = read_table(str(path), columns=["xsec", "mass"])
    assert chosen.columns == ("xsec", "mass")
    np.testing.assert_array_equal(chosen.values, VALUES[:, [2, 0]])
    picked = read_table(path, columns=lambda names: [n for n in names if n.startswith("N")])
    assert picked.columns == ("N11",)
    with pytest.raises(ValueError, match="has no column absent"):
        read_table(path, columns=["absent"])


@pytest.mark.parametrize("name", ["t.tsv", "t.dat", "t.txt", "t.csv.gz", "t.DAT.GZ", "t.gz", "t"])
def test_endings_of_text(tmp_path, name):
    text = b"# mass N11\n1 2\n\n3 4\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.lower().endswith(".gz") else text)
    table = read_table(tmp_path / name)
    assert is_csv(name) and table.columns == ("mass", "N11")
    assert table.values.tolist() == [[1, 2], [3, 4]] and table.lines.tolist() == [2, 4]
    assert table.take([1]).select(["N11"]).lines.tolist() == [4]


def test_the_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [3, 4]}, index=[7, 8])
    frame.to_csv(tmp_path / "t.csv")
    with pytest.warns(DataWarning, match="no name: ''"):
        assert read_table(tmp_path / "t.csv").columns == ("a", "b")
    (tmp_path / "t.csv").write_text("a,b,,\n1,2,,\n3,4,,\n")  # as spreadsheets do
    with pytest.warns(DataWarning, match="no name: ''"):
        assert read_table(tmp_path / "t.csv").columns == ("a", "b")


def test_closed_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="Standard input is closed"):
        read_table("-")


def test_table_passes_for_a_frame():
    table = Table(NAMES, VALUES)
    assert len(table) == 3
    assert column_names(table) == NAMES
    np.testing.assert_array_equal(as_matrix(table, "x", num_columns=3), VALUES)
    assert np.shares_memory(as_matrix(table, "x"), VALUES)  # nobody else changes them
    assert table.select(["xsec", "mass"]).values.flags.c_contiguous
    assert np.asarray(table, dtype=np.float32).dtype == np.float32
    assert not np.shares_memory(np.array(table, copy=True), VALUES)
    part = table.select(["xsec"]).take([2, 0])
    assert part.columns == ("xsec",)
    np.testing.assert_array_equal(part.values, [[12.0], [2e-4]])
    with pytest.raises(ValueError, match="has no column y; its columns of numbers are mass"):
        table.select(["y"])


def test_csv_from_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("\ufeffa, b\n1,2\n\n3,4\n"))
    table = read_table("-")
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])
    assert is_csv("-") and is_csv("x.csv") and not is_csv("x.npz") and not is_csv("x.unknown")


@pytest.mark.parametrize("cell", ["abc", "", "nan", "inf", "-inf", "1.0.0"])
def test_csv_names_line_and_column_of_a_bad_cell(tmp_path, cell):
    path = write(tmp_path / "t.csv", f"a,b\n1,2\n\n3,{cell}\n")
    with pytest.raises(ValueError, match=r"t.csv, line 4, column b: expected a finite number"):
        read_table(path)
    assert read_table(path, columns=["a"]).values.tolist() == [[1.0], [3.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,b\n", "no rows"),
        ("1,2\n3,4\n", "line 1: expected a header line"),
        ("a,a\n1,2\n", "2 columns a"),
        ("a,b\nx,y\n", "no column of numbers"),
        ("a,b\n1,2\n\0,3\n", "line 3"),
    ],
)
def test_csv_that_cannot_be_read(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path / "t.csv", text))


def test_missing_file_and_unknown_ending(tmp_path):
    for name in ("t.csv", "t.npz", "t.h5", "t.parquet"):
        with pytest.raises(FileNotFoundError, match="No file"):
            read_table(tmp_path / name)
    with pytest.raises(ValueError, match="unknown ending '.xlsx'; expected one of .gz, .csv"):
        read_table(tmp_path / "t.xlsx")


def test_two_dimensional_arrays_are_numbered(tmp_path):
    np.savez(tmp_path / "t.npz", x=VALUES, y=np.arange(3), unit="fb", one=np.ones(()))
    with pytest.warns(DataWarning, match="no name: 'unit', 'one'"):
        table = read_table(tmp_path / "t.npz")
    assert table.columns == ("x_0", "x_1", "x_2", "y")
    np.testing.assert_array_equal(table.values[:, :3], VALUES)
    with pytest.raises(ValueError, match="column x: expected one column of numbers.*x_0, x_1"):
        read_table(tmp_path / "t.npz", columns=["x"])


def test_arrays_that_do_not_fit(tmp_path):
    for columns, words in (
        ({"a": np.ones(3), "b": np.ones(2)}, "same number of rows, but a has 3, b has 2"),
        ({"a": [1.0, np.nan]}, r"row 1 \(the first is 0\), column a.*got nan"),
        ({"a": np.ones(0)}, "no rows"),
        ({"unit": "fb"}, "no column of numbers"),
    ):
        np.savez(tmp_path / "t.npz", **columns)
        with pytest.raises(ValueError, match=words):
            read_table(tmp_path / "t.npz")


class Bomb:
    """Unpickling it would leave a trace."""

    def __reduce__(self):
        return (print, ("unpickled",))


def test_pickles_stay_closed(tmp_path, capsys):
    path = tmp_path / "t.npz"
    np.savez(path, a=np.ones(2), bad=np.array([Bomb(), Bomb()], dtype=object))
    with pytest.warns(DataWarning, match="no name: 'bad'"):
        assert read_table(path).columns == ("a",)
    with pytest.raises(ValueError, match="column bad"):
        read_table(path, columns=["bad"])
    np.array([Bomb()], dtype=object).dump(path)
    with pytest.raises(ValueError, match="not a readable NPZ file"):
        read_table(path)
    assert capsys.readouterr().out == ""


def array_file():
    stream = io.BytesIO()
    np.save(stream, np.ones(3))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        *((f"t.{kind}", b"another", "not a readable") for kind in ("npz", "h5", "parquet")),
        ("t.npz", array_file(), "single array"),
        ("t.csv", b"\x89HDF\r\n\x1a\n\xff\xfe", "line 1: not a table in UTF-8 text"),
    ],
)
def test_files_that_are_not_what_they_are_called(tmp_path, name, content, words):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_table(tmp_path / name)


def test_numbers_are_written_with_nine_digits():
    stream = io.StringIO()
    write = csv_writer(stream, ["a"])
    write([[1 / 3]])
    write([[2.0]])
    assert stream.getvalue() == "a\n0.333333333\n2\n"
    with pytest.raises(ValueError, match=r"shape \[N, 2\]"):
        csv_writer(stream, ["a", "b"])([[1.0]])


def test_csv_is_read_as_it_is_iterated():
    lines = ("1,2\n" if number else "a,b\n" for number in range(10**9))
    rows = CsvRows(lines, "endless")
    piece = [row for row, _ in zip(rows, range(1000))]
    assert rows.numbers(piece, ["b"]).shape == (1000, 1)
