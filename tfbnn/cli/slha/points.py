"""Points of a scan, batch by batch: out of SLHA spectra, or of a table."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbnn.cli.console import say
from tfbnn.cli.slha.spectra import read_text
from tfbnn.data.table import Table
from tfbnn.data.tables import read_table
from tfbnn.hep.predictor import CrossSectionPredictor
from tfbnn.system.arrays import Array

# Points that are read before they are predicted together: enough to outweigh a call.
_AT_ONCE = 1000


@dataclass(frozen=True, eq=False)
class Batch:
    """Some points of a scan, N of them.

    Attributes:
        names: Names of the points: paths of spectra, or ids.
        inputs: Dict name of an input -> values [N].
        errors: Dict name -> relative errors of other origin, as `predict` takes them.
    """

    names: list[str]
    inputs: Mapping[str, Array]
    errors: Mapping[str, Any]


def of_spectra(
    predictor: CrossSectionPredictor,
    paths: Sequence[str],
    errors: Mapping[str, Any],
    skip_bad: bool = False,
) -> Iterator[Batch]:
    """Yields the points of SLHA files.

    Args:
        predictor: Says which inputs are needed.
        paths: The files.
        errors: Relative errors of all points.
        skip_bad: Whether files that lack something are named and left out.

    Raises:
        ValueError: For a file that lacks something, with its name.
        OSError: For one that cannot be read.
    """
    told: set[str] = set()
    for start in range(0, len(paths), _AT_ONCE):
        names, rows = [], []
        for path in paths[start : start + _AT_ONCE]:
            try:
                with warnings.catch_warnings(record=True) as found:
                    warnings.simplefilter("always")
                    rows.append(predictor.read_slha_string(read_text(path)))
                names.append(path)
                for text in {str(warning.message) for warning in found} - told:
                    say(f"Warning: {path}: {text}")
                    told.add(text)  # many spectra of a scan say the same
            except ValueError as error:
                if not skip_bad:
                    raise ValueError(f"{path}: {error} (--skip-bad leaves it out.)") from error
                say(f"Left out: {path}: {error}")
        if rows:
            inputs = {name: np.array([row[name] for row in rows]) for name in rows[0]}
            yield Batch(names, inputs, errors)


def of_table(
    predictor: CrossSectionPredictor,
    path: str,
    id_column: str | None,
    errors: Mapping[str, Any],
) -> Iterator[Batch]:
    """Yields the points of a table, which has inputs under the names of the fit.

    Args:
        predictor: Says which inputs are needed.
        path: Of the table.
        id_column: Column with their names; None: their numbers, from 0.
        errors: Dict name -> relative error of all points, or name of the column that has them.

    Raises:
        ValueError: For tables that cannot be read, or lack a column.
    """
    columns = {name: value for name, value in errors.items() if isinstance(value, str)}
    wanted = list(dict.fromkeys([*predictor.places, *columns.values()]))
    labels = [] if id_column is None or id_column in wanted else [id_column]
    table = read_table(path, wanted, labels)
    ids = _ids(table, id_column)
    for start in range(0, len(table), _AT_ONCE):
        part = table.take(slice(start, start + _AT_ONCE))
        names = ids[start : start + _AT_ONCE]
        values = dict(zip(part.columns, part.values.T))
        of_points = {name: values[column] for name, column in columns.items()}
        yield Batch(names, values, dict(errors) | of_points)


def _ids(table: Table, id_column: str | None) -> list[str]:
    """Names of all points; of a column that is read as numbers these, 100.0 as 100."""
    if id_column is None:
        return [*map(str, range(len(table)))]
    ids = table.labels([id_column])[:, 0].tolist()
    are_numbers = id_column not in table.texts
    return [str(entry).removesuffix(".0") if are_numbers else str(entry) for entry in ids]
