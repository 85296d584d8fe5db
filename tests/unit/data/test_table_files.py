"""Tables that come piece by piece: every format holds the same, and nothing is half written."""

import os
import sys

import numpy as np
import pandas as pd
import pytest

from tfbnn.data.tables import ENDINGS, read_table, table_writer

NAMES = ("class", "p", "file")
PIECES = [
    (np.array([[0.5, 1.0], [1 / 3, 2.0]]), [np.array(["λ, b", "1"])]),
    (np.array([[0.25, 3.0]]), [np.array(["a longer one"])]),
]
P, LABELS = [0.5, 1 / 3, 0.25], ["λ, b", "1", "a longer one"]


def write(path, pieces=PIECES, names=NAMES):
    with table_writer(path, names) as write:
        for values, labels in pieces:
            write(values, labels)


def read_any(path):
    """(Names, labels, numbers p) of a table, without the reader of tfbnn."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            table = pd.DataFrame(dict(file))
    elif path.suffix in (".parquet", ".pq"):
        table = pd.read_parquet(path)
    else:
        table = pd.read_csv(path, sep="\t" if ".tsv" in path.name else ",")
    return tuple(table), table["class"].tolist(), table["p"].tolist()


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_holds_the_same(tmp_path, ending):
    path = tmp_path / f"table{ending.upper() if ending == '.csv' else ending}"
    write(path)
    names, labels, numbers = read_any(path)
    assert names == NAMES and labels == LABELS
    np.testing.assert_allclose(numbers, P, rtol=1e-8)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_what_is_no_text_keeps_every_bit_and_is_read_again(tmp_path, ending):
    values = np.random.default_rng(0).normal(size=(7, 2))
    write(tmp_path / f"t{ending}", [(values[:4], ()), (values[4:], ())], ("mean", "stddev"))
    table = read_table(tmp_path / f"t{ending}", ["mean", "stddev"])
    np.testing.assert_array_equal(table.values, values)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".npz"])
def test_a_table_that_is_not_finished_leaves_what_was_there(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    path.write_text("before")
    with pytest.raises(OSError, match="half way"), table_writer(path, NAMES) as write:
        write(*PIECES[0])
        raise OSError("half way")
    assert path.read_text() == "before" and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("ending", [".csv", ".npz", ".parquet"])
def test_links_are_replaced_and_never_followed(tmp_path, ending):
    (tmp_path / "victim").write_text("mine")
    path = tmp_path / f"t{ending}"
    path.symlink_to(tmp_path / "victim")
    write(path)
    assert (tmp_path / "victim").read_text() == "mine" and not path.is_symlink()


@pytest.mark.parametrize(
    ("ending", "names"),
    [(".npz", ("a", "a", "b")), (".npz", ("a/b", "c", "d")), (".parquet", ("a", "b", "a"))],
)
def test_names_that_a_format_cannot_hold(tmp_path, ending, names):
    path = tmp_path / f"t{ending}"
    with pytest.raises(ValueError, match="Write a .csv file"), table_writer(path, names):
        pytest.fail("refused before any row is asked for")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "t.pq"
    with pytest.raises(ImportError, match=r"tfbnn\[parquet\]"), table_writer(path, "a"):
        pytest.fail("refused before any row is asked for")


def test_labels_that_begin_like_comments_are_read_again(tmp_path):
    with table_writer(tmp_path / "t.csv", ("#id", "mean")) as write:
        write([[1.0], [2.0], [3.0]], [np.array(["#1", "2", "#3"])])
    table = read_table(tmp_path / "t.csv", labels=["#id"])
    assert table.labels(["#id"])[:, 0].tolist() == ["#1", "2", "#3"]
    assert table.numbers(["mean"])[:, 0].tolist() == [1.0, 2.0, 3.0]
