"""Tables for fits, made from SLHA spectra and the results of cross-section calculations."""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tfbnn.data.table import column_indices
from tfbnn.exceptions import DataWarning
from tfbnn.hep.expressions import Expression
from tfbnn.hep.inputs import Input, features_among, input_text, input_values, places_of, unit_of
from tfbnn.hep.results import Results, Row, check_matches, chosen_rows, rows_of_block, rows_of_file
from tfbnn.hep.slha import Place, number_of, place_text, read_places, read_rows
from tfbnn.system.arrays import Array
from tfbnn.system.words import repeated

# The column that names the spectrum of a row.
SPECTRUM = "spectrum"
# Row lengths of the mixing matrices. The squares of a row add up to 1 within the rounding of
# spectra.
_MIXINGS = {"NMIX": 4, "UMIX": 2, "VMIX": 2}
_NORM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Tabulation:
    """Definition of the columns of one process's table.

    Attributes:
        pids: PDG codes of the particles.
        inputs: Dict name -> SLHA place or expression.
        targets: Dict column -> expression of result columns and inputs; the cross section first,
            then relative errors.
        rows: Condition that selects the results of the process, dict column -> number or word.
        columns: Columns of the results.

    Raises:
        TypeError, ValueError: For names that the results do not have, and duplicate columns.
    """

    pids: tuple[int, int]
    inputs: Mapping[str, Input]
    targets: Mapping[str, Expression]
    rows: Mapping[str, Any]
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        values = self.rows.values() if isinstance(self.rows, dict) else [None]
        if not all(isinstance(value, (str, int, float)) for value in values):
            raise TypeError(
                f"rows must be a table of columns with a number or word each, received {self.rows!r:.100}."
            )
        names = [*self.rows, *(name for name in self._used if name not in self.inputs)]
        column_indices(names, self.columns, "[results]")
        if twice := repeated([SPECTRUM, *self.features, *self.targets]):
            raise ValueError(f"Two columns of the table would be {twice[0]!r}. Rename the input.")

    @property
    def _used(self) -> list[str]:
        """Names that the targets use, without SLHA places."""
        return [name for one in self.targets.values() for name in one.names if ":" not in name]

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the inputs that are columns of the table."""
        return features_among(self.inputs, self.targets.values())

    @cached_property
    def results(self) -> dict[str, bool]:
        """Result columns that the targets use, dict name -> whether the cross section uses it."""
        first = next(iter(self.targets.values()))
        return {name: name in first.names for name in self._used if name in self.columns}

    @cached_property
    def places(self) -> dict[str, Place]:
        """SLHA places to read from a spectrum, by name; result columns take precedence."""
        items = [*self.inputs.items(), *self.targets.items()]
        return places_of((name, one) for name, one in items if name not in self.results)


class Tabulated(NamedTuple):
    """Table of a process.

    Attributes:
        names: Names of its spectra.
        columns: Dict column -> [N].
        left_out: Number of spectra that were left out, by reason.
    """

    names: list[str]
    columns: dict[str, Array]
    left_out: Counter[str]


def tabulate(
    spectra: Iterable[tuple[str, str]], results: Results, tabulations: Sequence[Tabulation]
) -> tuple[list[Tabulated], list[str]]:
    """Build the tables of processes from spectra and results.

    Args:
        spectra: (name, SLHA text) of each point.
        results: Results.
        tabulations: Definitions of the tables.

    Returns:
        The tables, and notes on the conventions of the spectra.

    Raises:
        ValueError: For result rows that do not match the spectra, and for a table without rows.
    """
    wanted = [one.rows for one in tabulations]
    chosen = chosen_rows(results.rows, wanted)
    rows_of = (
        rows_of_block(results, wanted) if results.file is None else rows_of_file(results, chosen)
    )
    places = {name: place for one in tabulations for name, place in one.places.items()}
    found: list[dict[str, _Point]] = [{} for _ in tabulations]
    left_out: list[Counter[str]] = [Counter() for _ in tabulations]
    names: list[str] = []
    num_complex = 0
    for name, text in spectra:
        rows = rows_of(len(names), name, text)
        names.append(name)
        num_complex += _has_complex_mixings(text)
        try:
            together: dict[str, float] | None = read_places(text, places)
        except ValueError:  # an entry is missing for some process, or for all
            together = None
        for one, mine, points, reasons in zip(tabulations, rows, found, left_out):
            try:
                with warnings.catch_warnings():
                    # The first reading has repeated the warnings of the spectrum program.
                    warnings.simplefilter("ignore", DataWarning)
                    parameters = read_places(text, one.places) if together is None else together
                points[name] = parameters, _result_of(mine, one.results)
            except ValueError as error:
                reasons[re.split(r"[.:] ", str(error))[0]] += 1
    check_matches(results, chosen, names)
    tables: list[Tabulated] = []
    of_places: dict[Place, Array] = {}
    for one, points, reasons in zip(tabulations, found, left_out):
        pairs = points.values()
        values = {name: np.array([place[name] for place, _ in pairs]) for name in one.places}
        values |= {name: np.array([result[name] for _, result in pairs]) for name in one.results}
        tables.append(_tabulated(one, list(points), values, reasons))
        of_places |= {place: values[name] for name, place in one.places.items()}
    notes = [*_conventions(of_places), *_signed_features(tabulations)]
    if num_complex:
        notes.append(
            f"Imaginary parts of mixings are not read: {num_complex} of {len(names)} spectra have them. Cross "
            "sections depend on them."
        )
    return tables, notes


# The parameters of a point, which its processes may share, and its result.
_Point: TypeAlias = tuple[Mapping[str, float], Mapping[str, float]]


def _result_of(rows: Sequence[Row], needed: Mapping[str, bool]) -> dict[str, float]:
    """Read the numbers in the result row of a point.

    Args:
        rows: Rows that belong to the point.
        needed: Dict column -> whether its number must be above zero, as for cross sections; errors
            may be zero.

    Raises:
        ValueError: When there is no usable result; the message has the reason.
    """
    if len(rows) != 1:
        raise ValueError(f"{len(rows)} results where one is needed" if rows else "no result")
    numbers = {name: number_of(rows[0].get(name)) for name in needed}
    for name, number in numbers.items():
        if not np.isfinite(number) or (needed[name] and number <= 0):
            raise ValueError(f"failed calculation, {name} = {number:g}")
        if number < 0:
            raise ValueError(f"negative error, {name} = {number:g}")
    return numbers


def _has_complex_mixings(text: str) -> bool:
    """Return whether a spectrum has mixings with imaginary parts that are not zero, or no numbers."""
    blocks = [f"IM{block}" for block in _MIXINGS if f"IM{block}" in text.upper()]
    try:
        return any(number_of(row[-1]) != 0 for block in blocks for row in read_rows(text, block))
    except ValueError:
        return True


def _tabulated(
    one: Tabulation, names: list[str], values: Mapping[str, Array], left_out: Counter[str]
) -> Tabulated:
    """Build the table of a process from its parameters and results, dict name -> [N]."""
    columns: dict[str, Array] = {}
    if names:
        # Columns of the results take precedence over inputs of the same name.
        inputs = {name: item for name, item in one.inputs.items() if name not in one.results}
        values = input_values(inputs, values)
        columns = {name: values[name] for name in one.features}
        for name, target in one.targets.items():
            columns[name] = np.broadcast_to(target(values), (len(names),))
        sound = np.isfinite(np.stack([*columns.values()])).all(axis=0)
        left_out["an input or a target is not finite"] += int(np.sum(~sound))
        names = [name for name, is_sound in zip(names, sound) if is_sound]
        columns = {name: column[sound] for name, column in columns.items()}
    if not names:
        reasons = "; ".join(f"{count} times {text}" for text, count in left_out.most_common(3))
        raise ValueError(f"No spectrum is left for {one.pids}: {reasons or 'there are none'}.")
    return Tabulated(names, columns, +left_out)


def _conventions(of_places: Mapping[Place, Array]) -> Iterator[str]:
    """Yield notes on negative masses, and on rows of mixing matrices that are not unit vectors."""
    rows: dict[Place, list[Array]] = {}
    for place, values in of_places.items():
        if place[0] in _MIXINGS and len(place) == 3:
            rows.setdefault((place[0], place[1]), []).append(values)
        elif place[0] == "MASS" and (share := np.mean(values < 0)):
            yield (
                f"{place_text(place)} is negative in {100 * share:.1f} % of the spectra. The sign is kept, as "
                "it goes with real mixing matrices."
            )
    for row, entries in rows.items():
        if len(entries) < _MIXINGS[str(row[0])] or len({len(values) for values in entries}) > 1:
            continue
        odd = np.sum(np.abs(np.square(entries).sum(axis=0) - 1.0) > _NORM_TOLERANCE)
        if odd:
            yield f"{place_text(row)} is no unit vector in {odd} spectra. Check these mixings."


def _signed_features(tabulations: Iterable[Tabulation]) -> Iterator[str]:
    """Yield a note if mixings are features, because their signs are a convention."""
    items = {name: one.inputs[name] for one in tabulations for name in one.features}
    signed = [
        name
        for name, item in items.items()
        if not isinstance(item, Expression) and item[0] in _MIXINGS
    ]
    if signed:
        yield (
            f"The sign of a row of a mixing matrix is a convention, but changes {', '.join(signed)}. "
            "tfbnn.datasets.cross_sections.symmetries proposes inputs that do not."
        )


def column_text(one: Tabulation, name: str) -> str:
    """Return the description of a table column for the header."""
    if name in one.targets:
        return one.targets[name].text
    return f"{input_text(one.inputs[name])} {unit_of(one.inputs[name])}".rstrip()
