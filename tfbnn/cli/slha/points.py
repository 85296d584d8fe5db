"""Read the points of a scan in batches, from SLHA spectra or a table, and write copies of spectra."""

import itertools
import lzma
import os
import tarfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np

from tfbnn.cli.console import say
from tfbnn.data.table import Table
from tfbnn.data.tables import read_table
from tfbnn.exceptions import DataWarning
from tfbnn.hep.inputs import columns_of
from tfbnn.hep.predictor import CrossSectionPredictor
from tfbnn.hep.slha import SPECTRUM_ENDINGS, spectra_in
from tfbnn.system.arrays import Array, row_slices
from tfbnn.system.atomic import check_writable, replacing

_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def find_spectra(paths: Sequence[str]) -> list[str]:
    """Return the files to read: named files, and those in named folders with one of `SPECTRUM_ENDINGS`.

    Raises:
        FileNotFoundError: For a path that does not exist.
        ValueError: For a folder without such files.
    """
    found: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            if not os.path.exists(path):
                raise FileNotFoundError(f"No file {path}; give SLHA files, or folders of them.")
            found.append(path)
            continue
        names = [
            name for name in sorted(os.listdir(path)) if name.lower().endswith(SPECTRUM_ENDINGS)
        ]
        if not names:
            raise ValueError(
                f"{path} has no file that ends in one of {', '.join(SPECTRUM_ENDINGS)}. Name the files."
            )
        found += [os.path.join(path, name) for name in names]
    return found


def read_spectra(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every spectrum in files.

    A file holds one or many spectra, or is a tar of files with `SPECTRUM_ENDINGS`. A spectrum is named by its
    path, or TAR/PATH in a tar. The second spectrum of a file is PATH#2, and so on.
    """
    for path in paths:
        if not path.lower().endswith(_TARS):
            yield from _each(path, read_text(path))
            continue
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.isfile() and member.name.lower().endswith(SPECTRUM_ENDINGS):
                        content = cast(IO[bytes], archive.extractfile(member)).read()
                        yield from _each(f"{path}/{member.name}", content.decode("utf-8", _ERRORS))
        except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise ValueError(f"{path} is no readable tar: {error}. Pack it again.") from error


def _each(name: str, text: str) -> Iterator[tuple[str, str]]:
    for number, one in enumerate(spectra_in(text), 1):
        yield (name if number == 1 else f"{name}#{number}"), one


# Comments may be in any encoding; this error handler preserves their bytes.
_ERRORS = "surrogateescape"


def read_text(path: str) -> str:
    """Return the text of a spectrum. `write_text` restores the same bytes from it."""
    if path.lower().endswith(".gz"):
        raise ValueError(f"{path} is compressed. Unpack it, or pack spectra in a .tar.gz.")
    with open(path, encoding="utf-8", errors=_ERRORS, newline="") as file:
        return file.read()


def paths_of_copies(
    target: str, given: Sequence[str], spectra: Sequence[str], overwrite: bool
) -> dict[str, str]:
    """Return a dict spectrum -> path of its copy, after checking that nothing is lost.

    Copies are written to a folder. If a single spectrum was named and the target is not a folder, its copy
    is written to that file.

    Args:
        target: Path given with -w.
        given: Files and folders, as given.
        spectra: The files found in them.
        overwrite: Whether existing files are replaced.

    Raises:
        ValueError: When two copies would have the same path, or a file exists already.
        OSError: When nothing could be written.
    """
    is_file = list(given) == list(spectra) and len(spectra) == 1
    is_folder = not is_file or target.endswith("/") or os.path.isdir(target)
    paths = [
        os.path.join(target, os.path.basename(one)) if is_folder else target for one in spectra
    ]
    twice, count = Counter(paths).most_common(1)[0]
    if count > 1:
        raise ValueError(
            f"-w {target} would write {count} spectra to one file, {twice}. Pass one input folder at a "
            "time, each with another -w."
        )
    there = [path for path in paths if os.path.lexists(path)]
    if there and not overwrite:
        more = f", and {len(there) - 1} more" if len(there) > 1 else ""
        raise ValueError(
            f"-w {target}: {there[0]} is there already{more}. Choose another place, or pass --overwrite."
        )
    if is_folder:
        os.makedirs(target, exist_ok=True)
    check_writable(paths[0])
    return dict(zip(spectra, paths))


def write_text(path: str, text: str) -> None:
    """Write the text of a spectrum. The file gets its name once it is complete.

    A new file does not wait for the disk, because its original still exists. This way 10 000 files take
    seconds, not minutes.
    """
    with replacing(path, lasting=os.path.lexists(path)) as temporary:
        Path(temporary).write_text(text, "utf-8", _ERRORS, newline="")


# Points that are predicted together, enough to make the overhead of a call negligible.
_AT_ONCE = 1000


# A batch of points: (names, which are paths of spectra or ids; dict input -> values [n]; relative errors of
# other origin, as for `predict`).
Batch: TypeAlias = tuple[list[str], Mapping[str, Array], Mapping[str, Any]]


def of_spectra(
    predictor: CrossSectionPredictor,
    paths: Sequence[str],
    errors: Mapping[str, Any],
    skip_bad: bool = False,
) -> Iterator[Batch]:
    """Yield the points of SLHA files.

    Args:
        predictor: Predictor that determines the inputs.
        paths: The files.
        errors: Relative errors of all points.
        skip_bad: Whether spectra that lack a value are reported and left out.

    Raises:
        ValueError: For a spectrum that lacks a value, with its name.
        OSError: For a file that cannot be read.
    """
    told: set[str] = set()
    spectra = read_spectra(paths)
    while some := list(itertools.islice(spectra, _AT_ONCE)):
        names, rows = [], []
        for path, text in some:
            try:
                with warnings.catch_warnings(record=True) as found:
                    warnings.simplefilter("always", DataWarning)
                    rows.append(predictor.read_slha_string(text))
                names.append(path)
                for warning in dict.fromkeys(str(one.message) for one in found):
                    if warning not in told:  # many spectra of a scan give the same warning
                        say(f"Warning: {path}: {warning}")
                        told.add(warning)
            except ValueError as error:
                if not skip_bad:
                    raise ValueError(f"{path}: {error} (--skip-bad leaves it out.)") from error
                say(f"Left out: {path}: {error}")
        if rows:
            inputs = {name: np.array([row[name] for row in rows]) for name in rows[0]}
            yield names, inputs, errors


def of_table(
    predictor: CrossSectionPredictor,
    path: str,
    id_column: str | None,
    errors: Mapping[str, Any],
) -> Iterator[Batch]:
    """Yield the points of a table, which has inputs under the names of the fit.

    Args:
        predictor: Predictor that determines the inputs.
        path: Path of the table.
        id_column: Column with the names of the points; None: their numbers, from 0.
        errors: Dict name -> relative error of all points, or name of the column that has them.

    Raises:
        ValueError: For tables that cannot be read, or lack a column.
    """
    columns = {name: value for name, value in errors.items() if isinstance(value, str)}

    def wanted(available: tuple[str, ...]) -> list[str]:
        parameters = columns_of(available, predictor.places).values()
        return list(dict.fromkeys([*parameters, *columns.values()]))

    is_number = id_column in (*predictor.places, *columns.values())
    labels = [] if id_column is None or is_number else [id_column]
    table = read_table(path, wanted, labels)
    ids = _ids(table, id_column)
    for rows in row_slices(len(table), _AT_ONCE):
        part = table.take(rows)
        values = dict(zip(part.columns, part.values.T))
        of_points = {name: values[column] for name, column in columns.items()}
        yield ids[rows], values, dict(errors) | of_points


def _ids(table: Table, id_column: str | None) -> list[str]:
    """Return the names of all points. If their column was read as numbers, 100.0 becomes 100."""
    if id_column is None:
        return [*map(str, range(len(table)))]
    ids = [*map(str, table.labels([id_column])[:, 0].tolist())]
    return ids if id_column in table.texts else [entry.removesuffix(".0") for entry in ids]
