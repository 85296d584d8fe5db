"""Tables in text as people have them: separators, comments, headers, blank lines; rows never shift."""

import gzip
import io
import itertools
import sys

import numpy as np
import pytest

from tfbnn.data.csv_tables import CsvRows, open_csv
from tfbnn.data.tables import read_table
from tfbnn.exceptions import DataWarning

VALUES = [[1.0, 2.0], [3.0, 4.0]]


def read(text):
    """(Columns, lines, values of all columns) of a text."""
    rows = CsvRows(iter(text.splitlines(keepends=True)), "t.csv")
    lines = list(rows)
    return rows.columns, [line for line, _ in lines], rows.numbers(lines, rows.columns).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n", "a;b\n1;2\n3;4\n", "a\tb\n1\t2\n3\t4\n", "a b\n1 2\n3 4\n",
        "  a   b \n 1.0   2\n 3\t4 \n", "a, b\n1, 2\n3, 4\n", '"a", "b"\n1, 2\n3, 4\n',
        '"a";"b"\n1;2\n3;4\n', '"a" "b"\n1 2\n"3" 4\n', "# a b\n1 2\n3 4\n", "#a,b\n1,2\n3,4\n",
        "# made by prospino, 2024\n#\n# a\tb\n1\t2\n3\t4\n# the end\n",
        "# made by prospino\na,b\n1,2\n# a word between\n3,4\n", "\n\na,b\n\n1,2\n \n3,4\n\n",
        "a b\n#---\n\n1 2\n3 4\n", "a,b\r\n1,2\r\n3,4\r\n", "\ufeffa,b\n1,2\n3,4",
        "\ufeff# a,b\n1,2\n3,4",
    ],
)  # fmt: skip
def test_separators_comments_and_headers(text):
    columns, _, values = read(text)
    assert columns == ("a", "b") and values == VALUES


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("my column\n1\n2\n", ("my column",)),
        ('"my, column"\n1\n2\n', ("my, column",)),
        ('"my column"\n1\n2\n', ("my column",)),
        ("column\n1\n2\n", ("column",)),
        ("mass; xsec (fb, LO)\n1;2\n3;4\n", ("mass", "xsec (fb, LO)")),
        ('"two\nlines",b\n1,2\n', ("two\nlines", "b")),
        ('"my column" b\n1 2\n', ("my column", "b")),
        ('"one; two; three",b\n1,2\n', ("one; two; three", "b")),
        ("#id,name\n1,foo\n", ("id", "name")),
        ("# three more words\na,b\n1,2\n", ("a", "b")),
    ],
)
def test_which_line_names_the_columns(text, columns):
    assert CsvRows(iter(text.splitlines(keepends=True)), "t.csv").columns == columns


def test_errors_of_spreadsheets_are_no_comments(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n#N/A,1\n0.5,1\n")
    table = read_table(tmp_path / "t.csv", gaps=True)
    assert len(table) == 3 and np.isnan(table.values[1, 0])
    with pytest.raises(ValueError, match="line 2, column a: .*'#DIV/0!'"):
        read("a,b\n#DIV/0!,1\n")


@pytest.mark.parametrize("word", ["NA", "n/a", "NaN", "null"])
def test_missing_labels_are_refused(tmp_path, word):
    (tmp_path / "t.csv").write_text(f"a,kind\n1,u\n2,{word}\n")
    with pytest.raises(ValueError, match=f"line 3, column kind: expected a value, got '{word}'"):
        read_table(tmp_path / "t.csv", labels=["kind"])


def test_standard_input_is_utf8_whatever_the_locale_is(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO("\ufeffna\u00efve\n1\n".encode()), "latin-1")
    monkeypatch.setattr(sys, "stdin", stream)
    with open_csv("-") as rows:
        assert rows.columns == ("na\u00efve",)
    assert not stream.buffer.closed


def test_a_row_with_an_empty_first_cell_is_no_comment(tmp_path):
    (tmp_path / "t.tsv").write_text("a\tb\tc\n1\t#2\t3\n\t#5\t6\n # a comment\n")
    table = read_table(tmp_path / "t.tsv", gaps=True, texts=True)
    assert len(table) == 2 and table.column("b")[1] == "#5"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_quoted_cells_hold_anything(separator):
    cells = ['"one, two; three\tfour"', '"#1\n# no comment\n\nthe end"', '"say ""x"""', '""', "5"]
    text = separator.join("abcde") + "\n" + separator.join(cells) + "\n"
    _, cells = next(iter(CsvRows(iter(text.splitlines(keepends=True)), "t.csv")))
    expected = ["one, two; three\tfour", "#1\n# no comment\n\nthe end", 'say "x"', "", "5"]
    assert cells == expected


def test_lines_are_those_of_the_file():
    assert read("# one\n\na,b\n# four\n1,2\n\n\n3,4\n")[1] == [5, 8]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# a,b,c\n0,1\nx,y\n", "line 2: expected a header line"),
        ("a,b\n1,2\n,\n5,6\n", "line 3, column a: expected a finite number, got ''"),
        ('a,b\n1,2\n"",""\n5,6\n', "line 3, column a: expected a finite number, got ''"),
        ("a\tb\n1\t2\n\t\n5\t6\n", "line 3, column a: expected a finite number, got ''"),
        ('a\n1\n""\n3\n', "line 3, column a: expected a finite number, got ''"),
        ("a\n1\n\n3\n", "line 3: expected a value, got a blank line"),
        ("a b\n1 2\n3\n", "line 3: expected 2 cells as in the header, got 1;.*by white space"),
        ("a;b\n1;2\n3,4\n", "line 3: .*got 1;.*by semicolons"),
        ("a;b\n1,5;2\n", "line 2, column a: .*'1,5'; write decimal points"),
        ("a,b\n1,x\n2,y\n", "line 2, column b: .*'x'; the column holds no numbers"),
        ("a,b\n1,x\n2,3\n", "line 2, column b: .*'x'; repair or remove the row"),
    ],
)
def test_rows_are_refused_with_their_line_and_never_shift(text, words):
    with pytest.raises(ValueError, match=f"^t.csv, {words}"):
        read(text)


def test_blank_lines_after_the_last_row_of_one_column():
    assert read("a\n1\n2\n\n\n")[2] == [[1.0], [2.0]]


def test_damaged_compressed_text(tmp_path):
    path, whole = tmp_path / "t.csv.gz", gzip.compress(b"a b\n1 2\n3 4\n")
    for damaged in (b"a,b\n1,2\n", whole[:-9], whole[:-8] + bytes(8)):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="not a table in UTF-8 text"), open_csv(path) as rows:
            list(rows)


def test_the_rows_before_a_damage_are_read_as_they_come():
    lines = itertools.chain(["a b\n"], itertools.repeat("1 2\n", 5), ["3\n"])
    rows = iter(CsvRows(lines, "t.dat"))
    assert len(list(itertools.islice(rows, 5))) == 5
    with pytest.raises(ValueError, match="line 7"):
        next(rows)


def test_a_first_row_that_looks_like_numbers_is_said(tmp_path):
    path = tmp_path / "iris.csv"
    path.write_text("5.1,3.5,1.4,0.2,a\n4.9,3.0,1.4,0.2,a\n6.2,3.4,5.4,2.3,b\n")
    with pytest.warns(DataWarning, match="first row is read as column names.*'5.1', '3.5'"):
        read_table(path, texts=True)
    wavelengths = "sample,400.5,410.5,420.5,430.5,440.5\na,1,2,3,4,5\n"
    for text in (wavelengths, "country,2019,2020\na,1,2\n", "9,8,7,y\n1,2,3,4\n"):
        path.write_text(text)
        assert len(read_table(path, texts=True)) == 1
