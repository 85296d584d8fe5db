"""Tables to fit to, out of spectra and the results of their calculations."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfbnn.data.tables import read_table
from tfbnn.data.validation import check_number
from tfbnn.hep.expressions import Expression
from tfbnn.hep.inputs import Input, features_among, input_text, input_values, places_of, unit_of
from tfbnn.hep.slha import Place, number_of, place_text, read_places, read_rows
from tfbnn.system.arrays import Array
from tfbnn.system.words import did_you_mean

# One result: dict column -> what stands there, words or numbers.
Row = Mapping[str, Any]
_KEYS = ("file", "block", "columns", "spectrum", "failed")
_FAILED = (-1.0, 0.0)
# Numbers in a row of a mixing matrix, whose squares add up to 1 within what spectra are rounded to.
_MIXINGS = {"NMIX": 4, "UMIX": 2, "VMIX": 2}
_NORM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Results:
    """Where results are.

    Attributes:
        file: A table with a header, or with `columns` a file of lines of words; None: in a block.
        block: The block of each spectrum that has them.
        columns: Names of the words of a line or of a row of the block, or of the columns of a table.
        has_lines: Whether `file` has lines of words without a header.
        spectrum: Column that names the spectrum of a row, with or without folder and ending; None: rows of
            a file are in the order of the spectra.
        failed: Numbers that stand for a failed calculation, besides what is no number.
    """

    file: str | None
    block: str | None
    columns: tuple[str, ...]
    has_lines: bool
    spectrum: str | None
    failed: tuple[float, ...]

    @classmethod
    def of(cls, given: Mapping[str, Any], folder: str) -> "Results":
        """Return what a table of a description says, with paths relative to a folder."""
        if unknown := [key for key in given if key not in _KEYS]:
            raise ValueError(
                f"[results] has the unknown key {unknown[0]!r}.{did_you_mean(unknown[0], _KEYS)} Known: "
                f"{', '.join(_KEYS)}."
            )
        file, block, spectrum = (given.get(key) for key in ("file", "block", "spectrum"))
        columns, failed = given.get("columns", []), given.get("failed", _FAILED)
        if not all(isinstance(one, str | None) for one in (file, block, spectrum)):
            raise TypeError("file, block and spectrum of [results] must be text.")
        if (file is None) == (block is None):
            raise ValueError("[results] must have file or block, one of them.")
        if not (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
            raise TypeError(f"columns of [results] must be names, received {columns!r:.100}.")
        if not columns and file is None:
            raise ValueError("[results] with a block needs columns, the names of its numbers.")
        file = None if file is None else os.path.join(folder, file)
        names = tuple(columns) or _names_of(str(file))
        if spectrum is not None and spectrum not in names:
            raise ValueError(
                f"The results have no column {spectrum!r}.{did_you_mean(spectrum, names)} They have "
                f"{', '.join(names)}."
            )
        block = block and block.upper()
        return cls(file, block, names, bool(columns), spectrum, _checked_failed(failed))


def _checked_failed(failed: Any) -> tuple[float, ...]:
    if not isinstance(failed, (list, tuple)):
        raise TypeError(f"failed of [results] must be a list of numbers, received {failed!r:.100}.")
    return tuple(check_number("failed of [results]", value) for value in failed)


def _names_of(path: str) -> tuple[str, ...]:
    """Names of the columns of a table."""
    names: list[str] = []

    def look(available: tuple[str, ...]) -> Sequence[str]:
        names.extend(available)
        return available[:1]

    read_table(path, look, texts=True, gaps=True)
    return tuple(names)


@dataclass(frozen=True)
class Tabulation:
    """What the table of a process has.

    Attributes:
        pids: The particles.
        inputs: Dict name -> place or expression; those that no other uses are columns.
        targets: Dict column -> expression over columns of results and inputs: that of the cross section first,
            then those of errors.
        rows: What the row of a result has in some columns, dict column -> number or word.
    """

    pids: tuple[int, int]
    inputs: Mapping[str, Input]
    targets: Mapping[str, Expression]
    rows: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        pids: tuple[int, int],
        inputs: Mapping[str, Input],
        target: str,
        errors: Mapping[str, Any],
        rows: Any,
        columns: Sequence[str],
    ) -> "Tabulation":
        """Return a checked Tabulation; errors are dict name -> expression or [down, up]."""
        targets = {target if target.isidentifier() else "target": Expression(target)}
        for name, one in errors.items():
            if isinstance(one, list):
                targets |= {f"{name}_error_{side}": Expression(part) for side, part in zip(("down", "up"), one)}  # fmt: skip
            else:
                targets[f"{name}_error"] = Expression(one)
        if not isinstance(rows, dict):
            raise TypeError(f"rows must be a table of columns and values, received {rows!r:.100}.")
        used = [name for one in targets.values() for name in one.names if ":" not in name]
        for name in [*rows, *(name for name in used if name not in inputs)]:
            if name not in columns:
                raise ValueError(
                    f"the results have no column {name!r}.{did_you_mean(name, columns)} They have "
                    f"{', '.join(columns)}."
                )
        return cls(pids, inputs, targets, rows)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the inputs that are columns of the table."""
        return features_among(self.inputs)

    def places(self, columns: Sequence[str]) -> dict[str, Place]:
        """What is read of a spectrum: all places but those of inputs that the results have."""
        items = [*self.inputs.items(), *self.targets.items()]
        places = places_of((name, one) for name, one in items if name not in columns)
        return {name: place for name, place in places.items() if name not in columns}

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Columns of the results that targets and inputs use."""
        used = [*self.inputs, *(name for one in self.targets.values() for name in one.names)]
        return tuple(dict.fromkeys(name for name in used if name in columns))


class Tabulated(NamedTuple):
    """The table of a process.

    Attributes:
        names: Names of its spectra.
        columns: Dict column -> [N].
        left_out: How many spectra were left out for which reason.
    """

    names: list[str]
    columns: dict[str, Array]
    left_out: Counter[str]


def tabulate(
    spectra: Iterable[tuple[str, str]], results: Results, tabulations: Sequence[Tabulation]
) -> tuple[list[Tabulated], list[str]]:
    """Make the tables of processes.

    Args:
        spectra: (name, SLHA text) of each point.
        results: Where results are.
        tabulations: What the tables have.

    Returns:
        The tables, and what is to be said of the conventions of the spectra.

    Raises:
        ValueError: For rows of a file that do not go with the spectra.
    """
    places: dict[str, Place] = {}
    for one in tabulations:
        places |= one.places(results.columns)
    of_file = None if results.file is None else _RowsOfFile(results, tabulations)
    points: list[tuple[str, dict[str, float]]] = []
    numbers: list[dict[int, dict[str, float]]] = [{} for _ in tabulations]
    left_out: list[Counter[str]] = [Counter() for _ in tabulations]
    num_spectra = num_complex = 0
    for number, (name, text) in enumerate(spectra):
        num_spectra += 1
        try:
            point = read_places(text, places)
            num_complex += _has_complex_mixings(text)
            if of_file is None:
                rows = _rows_of_block(text, results, tabulations)
            else:
                rows = of_file.rows(number, name)
        except ValueError as error:
            for reasons in left_out:
                reasons[re.split(r"[.:] ", str(error))[0]] += 1
            continue
        for one, mine, found, reasons in zip(tabulations, rows, numbers, left_out):
            result = _result_of(mine, one.needed(results.columns), results.failed)
            if isinstance(result, str):
                reasons[result] += 1
            else:
                found[len(points)] = result
        points.append((name, point))
    if of_file is not None:
        of_file.check_order(num_spectra)
    tables = []
    for one, found, reasons in zip(tabulations, numbers, left_out):
        names = [points[place][0] for place in found]
        columns = {
            name: np.array([(points[place][1] | more)[name] for place, more in found.items()])
            for name in (*one.places(results.columns), *one.needed(results.columns))
        }
        tables.append(_tabulated(one, names, columns, reasons))
    of_points = {name: np.array([point[name] for _, point in points]) for name in places}
    notes = [*_conventions(places, of_points), *_signed_features(tabulations)]
    if num_complex:
        notes.append(
            f"{num_complex} spectra have imaginary parts of mixings, which are not read: cross sections "
            "depend on them."
        )
    return tables, notes


def _rows_of_block(
    text: str, results: Results, tabulations: Sequence[Tabulation]
) -> list[Sequence[Row]]:
    """The rows of a block of a spectrum that belong to each process."""
    rows = [dict(zip(results.columns, words)) for words in read_rows(text, str(results.block))]
    return [[row for row in rows if _matches(row, one.rows)] for one in tabulations]


class _RowsOfFile:
    """Rows of a file that belong to each process, in order or by the spectrum that they name."""

    def __init__(self, results: Results, tabulations: Sequence[Tabulation]) -> None:
        rows = list(_read_rows_of_file(results))
        self._results = results
        self._mine = [[row for row in rows if _matches(row, one.rows)] for one in tabulations]
        self._by_name: list[dict[str, list[Row]]] = [{} for _ in tabulations]
        if results.spectrum is not None:
            for mine, by_name in zip(self._mine, self._by_name):
                for row in mine:
                    by_name.setdefault(_stem(str(row[results.spectrum])), []).append(row)

    def rows(self, number: int, name: str) -> list[Sequence[Row]]:
        """Those of a spectrum, for each process."""
        if self._results.spectrum is not None:
            return [by_name.get(_stem(name), []) for by_name in self._by_name]
        return [mine[number : number + 1] for mine in self._mine]

    def check_order(self, num_spectra: int) -> None:
        """Refuse rows that are in the order of the spectra, and not as many."""
        for mine in self._mine:
            if self._results.spectrum is None and len(mine) != num_spectra:
                raise ValueError(
                    f"{self._results.file} has {len(mine)} rows of a process, and there are {num_spectra} "
                    "spectra. Name the column that says the spectrum of a row: spectrum = ... in [results]."
                )


def _read_rows_of_file(results: Results) -> Iterator[Row]:
    path, columns = str(results.file), results.columns
    if not results.has_lines:
        labels = [] if results.spectrum is None else [results.spectrum]
        table = read_table(path, labels=labels, texts=True, gaps=True)
        for number, row in enumerate(table.values.tolist()):
            texts = {name: str(column[number]) for name, column in table.texts.items()}
            yield dict(zip(table.columns, row)) | texts
        return
    for line in Path(path).read_text("utf-8", "surrogateescape").splitlines():
        words = line.partition("#")[0].split()
        if words:
            yield dict(zip(columns, words))


def _stem(name: str) -> str:
    """The name of a spectrum without folder and ending."""
    return os.path.splitext(os.path.basename(name.strip()))[0]


def _matches(row: Row, wanted: Mapping[str, Any]) -> bool:
    return all(
        row.get(column) == value if isinstance(value, str) else number_of(row.get(column)) == value
        for column, value in wanted.items()
    )


def _result_of(
    rows: Sequence[Row], needed: Sequence[str], failed: Sequence[float]
) -> dict[str, float] | str:
    """The numbers in the row of a point; why not, where there is none."""
    if len(rows) != 1:
        return f"{len(rows)} results" if rows else "no result"
    numbers = {name: number_of(rows[0].get(name)) for name in needed}
    for name, number in numbers.items():
        if not np.isfinite(number) or number in failed:
            return f"failed calculation, {name} = {number:g}"
    return numbers


def _has_complex_mixings(text: str) -> bool:
    """Whether a spectrum has imaginary parts of mixings."""
    rows = (row for block in _MIXINGS for row in read_rows(text, f"IM{block}"))
    return any(number_of(row[-1]) != 0 for row in rows)


def _tabulated(
    one: Tabulation,
    names: list[str],
    values: Mapping[str, Array],
    left_out: Counter[str],
) -> Tabulated:
    """The table of a process out of its parameters and results [N]."""
    if not names:
        reasons = "; ".join(f"{count} {reason}" for reason, count in left_out.most_common(3))
        raise ValueError(f"No spectrum is left for {one.pids}: {reasons or 'there are none'}.")
    values = input_values(one.inputs, values)
    columns = {name: values[name] for name in one.features}
    for name, target in one.targets.items():
        columns[name] = np.broadcast_to(target(values), (len(names),))
    sound = np.isfinite(np.stack([*columns.values()])).all(axis=0)
    left_out["input or target not finite"] += int(np.sum(~sound))
    return Tabulated(
        [name for name, is_sound in zip(names, sound) if is_sound],
        {name: column[sound] for name, column in columns.items()},
        +left_out,
    )


def _conventions(places: Mapping[str, Place], values: Mapping[str, Array]) -> Iterator[str]:
    """Yield what spectra say of signs of masses, and rows of mixings that are none."""
    rows: dict[Place, dict[Place, Array]] = {}
    for name, place in places.items():
        if place[0] in _MIXINGS and len(place) == 3:
            rows.setdefault((place[0], place[1]), {})[place] = values[name]
        elif place[0] == "MASS" and (share := np.mean(values[name] < 0)):
            yield (
                f"{place_text(place)} is negative in {100 * share:.1f} % of the spectra, whose mixings are "
                "real then."
            )
    for row, entries in rows.items():
        norms = np.square([*entries.values()]).sum(axis=0)
        odd = np.sum(np.abs(norms - 1.0) > _NORM_TOLERANCE)
        if odd and len(entries) == _MIXINGS[str(row[0])]:
            yield f"{place_text(row)} is no unit vector in {odd} spectra: check these mixings."


def _signed_features(tabulations: Iterable[Tabulation]) -> Iterator[str]:
    """Yield that mixings are features, whose signs are a convention."""
    signed = {
        name: None
        for one in tabulations
        for name in one.features
        if not isinstance(item := one.inputs[name], Expression) and item[0] in _MIXINGS
    }
    if signed:
        yield (
            f"{', '.join(signed)} change sign with a convention, which cross sections do not. "
            "tfbnn.datasets.cross_sections.symmetries proposes inputs that do not either."
        )


def column_text(one: Tabulation, name: str) -> str:
    """What a column of the table is, for its head."""
    if name in one.targets:
        return one.targets[name].text
    return f"{input_text(one.inputs[name])} {unit_of(one.inputs[name])}".rstrip()
