"""Columns of text in tables: the same numbers out of every format, and faults named with their place."""

import h5py
import numpy as np
import pandas as pd
import pytest

from tests.support.coded import FRAME, TARGETS, write_everywhere
from tfbnn.data import hdf5
from tfbnn.data.learn_coding import learn_coding
from tfbnn.data.tables import read_table

CODING = learn_coding(FRAME, "x")
NAMES = [*FRAME]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    return folder, write_everywhere(folder)


def test_every_format_gives_the_same_numbers(written):
    folder, names = written
    expected = CODING.encoded(FRAME, "x")
    for name in names:
        table = read_table(folder / name, texts=True)
        assert name in ("t.h5", "t.parquet") or table.columns == (*NAMES, "y")
        x = table.select(NAMES)
        assert x.words == {"colour", "ok", "kind"}
        assert learn_coding(x, "x") == CODING, name
        np.testing.assert_array_equal(CODING.encoded(x, "x"), expected, err_msg=name)
        np.testing.assert_array_equal(table.numbers(["y"])[:, 0], TARGETS)
        assert table.select(["mass", "mix"]).values.dtype == np.float64
        part = table.take([5, 2]).select(NAMES)
        np.testing.assert_array_equal(CODING.encoded(part, "x"), expected[[5, 2]])


def test_numbers_may_be_called_categories(tmp_path):
    years = np.array([2016, 2017, 2018] * 3)
    frame = pd.DataFrame({"year": years, "a": np.arange(9.0)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.savez(tmp_path / "t.npz", year=years, a=np.arange(9.0))
    for name in ("t.csv", "t.npz"):
        table = read_table(tmp_path / name, categories=["year"], texts=True)
        assert table.categories == table.words == {"year"}
        assert learn_coding(table, "x").input_names == ("year=2016", "year=2017", "year=2018", "a")
        assert learn_coding(read_table(tmp_path / name, texts=True), "x") is None
    frame.assign(year=pd.Categorical(years)).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", categories=["year"])
    assert learn_coding(table, "x").input_names[:1] == ("year=2016",)


def test_columns_are_left_out_unread(tmp_path):
    (tmp_path / "t.csv").write_text("note,a,b\n,1,u\n?,2,v\n,3,u\n")
    table = read_table(tmp_path / "t.csv", without=["note"], texts=True)
    assert table.columns == ("a", "b") and table.left_out == ()
    with pytest.raises(ValueError, match="line 2, column note: expected a value, got an empty cell.*"
                       "or leave out the column"):  # fmt: skip
        read_table(tmp_path / "t.csv", texts=True)
    with pytest.raises(ValueError, match="has no column remark"):
        read_table(tmp_path / "t.csv", without=["remark"])
    np.savez(tmp_path / "t.npz", a=[1.0], b=["u"])
    assert read_table(tmp_path / "t.npz", without=["b"], texts=True).columns == ("a",)
    with pytest.raises(ValueError, match="has no column remark"):
        read_table(tmp_path / "t.npz", without=["remark"])


def test_a_table_of_text_alone(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\nu,True\nv,False\nu,True\nv,False\n")
    coding = learn_coding(read_table(tmp_path / "t.csv", texts=True), "x")
    assert coding.input_names == ("a=v", "b")


def test_empty_columns_and_numbers_with_gaps_are_as_they_were(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,,2\n2,,x\n")
    with pytest.raises(ValueError, match="line 3, column c: expected a finite number, got 'x'"):
        read_table(tmp_path / "t.csv", texts=True)
    (tmp_path / "t.csv").write_text("a,b\n1,\n2,\n")
    with pytest.warns(UserWarning, match="no numbers or no name: 'b'"):
        assert read_table(tmp_path / "t.csv", texts=True).columns == ("a",)


def test_a_target_of_text_is_refused(written):
    folder, names = written
    for name in names:
        table = read_table(folder / name, texts=True)
        words = f"{name}, column colour: expected numbers.*class labels"
        with pytest.raises(ValueError, match=words):
            table.numbers(["colour"])
        with pytest.raises(ValueError, match="column colour: expected .*number"):
            read_table(folder / name, ["colour", "mass"])


@pytest.mark.parametrize(
    "values", [np.array([b"\xff\xfe", b"b"]), np.array([["a"], ["b"]]), np.array(["2020", "2021"], "M8[Y]")]
)  # fmt: skip
def test_what_is_no_column_of_text_is_left_out(tmp_path, values):
    np.savez(tmp_path / "t.npz", a=[1.0, 2.0], b=values)
    with pytest.warns(UserWarning, match="no name: 'b'"):
        assert read_table(tmp_path / "t.npz", texts=True).columns == ("a",)


def test_texts_that_hdf5_names_again_and_again_fill_no_memory(tmp_path, monkeypatch):
    """Every entry refers to the one long text of the file, as no writer makes them."""
    path, count = tmp_path / "t.h5", 50
    with h5py.File(path, "w") as file:
        file["a"] = ["x" * 10_000] * 2
        offset = file["a"].id.get_offset()
        file.create_dataset("b", data=["y"] * count, dtype=h5py.string_dtype())
        start = file["b"].id.get_offset()
    data = bytearray(path.read_bytes())
    data[start : start + 16 * count] = data[offset : offset + 16] * count
    path.write_bytes(data)
    monkeypatch.setattr(hdf5, "_TEXT_BYTES", 3 * len(data))
    with pytest.raises(ValueError, match="b has texts that are longer than the file"):
        read_table(path, texts=True)
    with h5py.File(path, "r") as file:
        assert file["b"][count - 1] == b"x" * 10_000
