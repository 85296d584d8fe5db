"""Results of cross-section calculations, and their match with spectra and processes."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tfbnn.data.table import column_indices
from tfbnn.data.tables import read_table
from tfbnn.hep.slha import SPECTRUM_ENDINGS, number_of, read_rows
from tfbnn.system.words import did_you_mean, repeated

# One result: dict column -> word in that column.
Row = Mapping[str, Any]
_KEYS = ("file", "block", "columns", "spectrum")


@dataclass(frozen=True)
class Results:
    """Results of cross-section calculations, from a file or from a block of each spectrum.

    Attributes:
        columns: Names of the columns.
        file: File that the results were read from; None: they are in a block of each spectrum.
        rows: Rows of the file.
        block: Name of the block.
        spectrum: Column with the spectrum's name, which may lack folder and file ending. None: the
            rows of the file are in the order of the spectra.
    """

    columns: tuple[str, ...]
    file: str | None = None
    rows: Sequence[Row] = ()
    block: str = ""
    spectrum: str | None = None


def read_results(given: Mapping[str, Any], folder: str) -> Results:
    """Read the results that a description names, from a file or from a block of each spectrum.

    Args:
        given: Dict with either "file" or "block", and optionally "spectrum". Without "columns", the
            file is a table with a header; with "columns", it has lines of words. A block needs
            "columns".
        folder: Folder that paths are relative to.

    Raises:
        FileNotFoundError: When there is no such file.
        TypeError, ValueError: For invalid entries, and a file that cannot be read.
    """
    if unknown := [key for key in given if key not in _KEYS]:
        raise ValueError(
            f"[results] has the unknown key {unknown[0]!r}.{did_you_mean(unknown[0], _KEYS)} Known: "
            f"{', '.join(_KEYS)}."
        )
    file, block, spectrum = (given.get(key) for key in ("file", "block", "spectrum"))
    columns = given.get("columns", [])
    if not all(isinstance(one, str | None) for one in (file, block, spectrum)):
        raise TypeError("file, block and spectrum of [results] must be text.")
    if not (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
        raise TypeError(f"columns of [results] must be names, received {columns!r:.100}.")
    if (file is None) == (block is None) or (file is None and not columns):
        raise ValueError("[results] must have a file, or a block and the columns of its rows.")
    column_indices(columns, columns, "[results]")
    if file is None:
        return Results(tuple(columns), block=str(block).upper())
    path = os.path.join(folder, file)
    names, rows = _read_lines(path, columns) if columns else _read_with_header(path)
    if spectrum is not None:
        column_indices([spectrum], names, "[results]")
    return Results(tuple(names), path, rows, spectrum=spectrum)


def _read_with_header(path: str) -> tuple[Sequence[str], list[Row]]:
    words: set[str] = set()

    def all_as_words(available: tuple[str, ...]) -> Sequence[str]:
        words.update(available)
        return available

    table = read_table(path, all_as_words, categories=words, gaps=True)
    return table.columns, [dict(zip(table.columns, row)) for row in table.values.tolist()]


def _read_lines(path: str, columns: Sequence[str]) -> tuple[Sequence[str], list[Row]]:
    rows: list[Row] = []
    if path.lower().endswith(".gz"):
        raise ValueError(
            f"{path} is compressed. Unpack it, or give it a header in place of columns."
        )
    text = Path(path).read_text("utf-8-sig", "surrogateescape")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != len(columns):
            raise ValueError(
                f"{path}, line {number}, has {len(words)} words for {len(columns)} columns. Name all of them "
                "in [results]."
            )
        rows.append(dict(zip(columns, words)))
    return columns, rows


# Function of the number, the name and the text of a spectrum; returns its rows for each process.
RowsOf = Callable[[int, str, str], list[Sequence[Row]]]


def rows_of_block(results: Results, wanted: Sequence[Row]) -> RowsOf:
    """Return a function that reads each process's rows of a spectrum from the spectrum's block."""

    def rows_of(number: int, name: str, text: str) -> list[Sequence[Row]]:
        try:
            lines = read_rows(text, results.block)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        # A line with fewer words is a calculation that failed.
        if odd := [words for words in lines if len(words) > len(results.columns)]:
            raise ValueError(
                f"{name} has {len(odd[0])} words in a line of block {results.block} for "
                f"{len(results.columns)} columns. Name all of them in [results]."
            )
        return chosen_rows([dict(zip(results.columns, words)) for words in lines], wanted)

    return rows_of


def rows_of_file(results: Results, chosen: Sequence[Sequence[Row]]) -> RowsOf:
    """Return a function that finds each process's rows of a spectrum in `chosen`.

    Args:
        results: Results from a file.
        chosen: For each process the `chosen_rows` of the file.
    """
    tables: list[dict[Any, list[Row]]] = []
    for mine in chosen:
        tables.append({})
        for number, row in enumerate(mine):
            key = number if results.spectrum is None else _key(str(row[results.spectrum]))
            tables[-1].setdefault(key, []).append(row)

    def rows_of(number: int, name: str, text: str) -> list[Sequence[Row]]:
        key = number if results.spectrum is None else _key(name)
        return [table.get(key, []) for table in tables]

    return rows_of


def check_matches(results: Results, chosen: Sequence[Sequence[Row]], names: Sequence[str]) -> None:
    """Check that each result row belongs to exactly one spectrum without doubt."""
    if twice := repeated(names if results.spectrum is None else map(_key, names)):
        raise ValueError(f"Two spectra are called {twice[0]!r}. Give each a name of its own.")
    if results.file is None or results.spectrum is not None:
        return
    for mine in chosen:
        if len(mine) != len(names):
            raise ValueError(
                f"{results.file} has {len(mine)} rows of a process, and there are {len(names)} spectra. Name "
                "the column that says the spectrum of a row: spectrum = ... in [results]."
            )
    numbers = [[*map(int, re.findall(r"\d+", name))] for name in names]
    if sorted(numbers) != numbers:
        raise ValueError(
            "Rows are matched to spectra in order, but the spectra do not sort by the numbers in their names. "
            "Use leading zeros, or name the spectrum of each row: spectrum = ... in [results]."
        )


def _key(name: str) -> str:
    """Return the name of a spectrum without its folder and file ending."""
    name = os.path.basename(name.strip())
    stem = re.sub(r"#\d+$", "", name)  # of a file with many
    ending = next((one for one in SPECTRUM_ENDINGS if stem.lower().endswith(one)), "")
    return stem[: len(stem) - len(ending)] + name[len(stem) :]


def chosen_rows(rows: Sequence[Row], wanted: Sequence[Row]) -> list[Sequence[Row]]:
    """Select, for each entry of `wanted`, the rows that have its values in its columns.

    Numbers are compared as numbers, all other values as words.
    """
    groups: dict[tuple[str, ...], dict[tuple[Any, ...], list[Row]]] = {}
    for one in wanted:
        if (columns := tuple(one)) not in groups:
            groups[columns] = {}
            for row in rows:
                key = tuple(_comparable(row.get(column)) for column in columns)
                groups[columns].setdefault(key, []).append(row)
    return [groups[tuple(one)].get(tuple(map(_comparable, one.values())), []) for one in wanted]


def _comparable(value: Any) -> Any:
    """Convert a word to a number if it is one, so that notations of a number compare equal."""
    number = number_of(value)
    return value if np.isnan(number) else number
