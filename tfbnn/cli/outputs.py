"""Check the output paths of commands before any work is done, so that no work is lost.

An output never replaces an input. A model replaces only a model, and a report only a report. The ending
of its name determines the kind of an output.
"""

import argparse
import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfbnn.cli.console import DONE, print_json
from tfbnn.data.csv_tables import Writer, csv_writer
from tfbnn.data.tables import ENDINGS, ending_of, table_writer
from tfbnn.diagnostics.wording import megabytes
from tfbnn.storage.format.sealing import is_sealed
from tfbnn.storage.run.folder import RunFolder
from tfbnn.system.atomic import check_page_path, check_writable, is_device, open_text
from tfbnn.system.terminals import data_output

# Standard output.
STREAM = "-"


class OutputKind(NamedTuple):
    """Kind of an output.

    Attributes:
        name: Name in words.
        endings: Allowed endings of a file; empty for a folder.
    """

    name: str
    endings: tuple[str, ...] = ()


MODEL = OutputKind("a model", (".h5", ".hdf5"))
TABLE = OutputKind("a table", ENDINGS)
ONNX = OutputKind("an ONNX file", (".onnx",))
PAGE = OutputKind("a report", (".html", ".htm"))
FOLDER = OutputKind("a folder of results")


def check_output(path: str | None, kind: OutputKind, inputs: Iterable[str | None] = ()) -> None:
    """Refuse an output path that would overwrite something needed, or that cannot be written.

    Args:
        path: As given with -o; None and, for a table, "-" are not files.
        kind: Kind of the output.
        inputs: Files and run folders of the command, including one that is to be made. None and "-" are
            ignored.

    Raises:
        ValueError: When the ending is of another kind; when the path is an input, also under another name
            or through a link, or lies in a run folder; when the path exists and is not of the same kind.
        OSError: When it cannot be written.
    """
    if path is None or (kind is TABLE and path == STREAM):
        return
    if not path:
        raise ValueError(f"-o must name {kind.name}, received ''. Leave it out, or give a name.")
    for name in inputs:
        if name not in (None, STREAM) and _is_in(path, str(name)):
            raise ValueError(
                f"-o {path} would overwrite {name}, or a file in it, which this command needs. "
                "Choose another name."
            )
    run = RunFolder.around(path)
    if run is not None:
        raise ValueError(f"-o {path} lies in the run folder {run}. Choose another place.")
    if kind is FOLDER:
        _check_folder(path)
    elif not (kind is TABLE and is_device(path)):
        _check_file(path, kind)


@contextlib.contextmanager
def written_table(path: str | None, columns: Sequence[str]) -> Iterator[Writer]:
    """Yield a writer for the rows of a table: to a file, a pipe or standard output (None, "-")."""
    if path is None or path == STREAM:
        yield csv_writer(data_output(), columns)
    elif is_device(path):
        with open_text(path) as stream:
            yield csv_writer(stream, columns)
    else:
        with table_writer(path, columns) as write:
            yield write


def tell_saved(args: argparse.Namespace, size: int, summary: str, record: dict[str, Any]) -> int:
    """Print what was made from a model and saved.

    Args:
        args: Arguments with `output` and `json`.
        size: Bytes of the output.
        summary: Aligned lines, for people.
        record: The same as a dict.

    Returns:
        The exit code.
    """
    if args.json:
        print_json(record | {"saved": args.output, "bytes": size})
    else:
        print(f"{summary}\n{'saved':<13}{args.output}, {megabytes(size)}")
    return DONE


def _check_folder(path: str) -> None:
    folder = os.path.abspath(path)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise ValueError(f"-o {path} cannot be a folder: {folder} is a file. Choose another name.")
    check_writable(os.path.join(folder, "file"))


def _check_file(path: str, kind: OutputKind) -> None:
    if os.path.isdir(path) or path.endswith(("/", os.sep)):
        raise ValueError(f"-o {path} cannot be written: it is a folder. Choose a file's name.")
    if ending_of(path) not in kind.endings:
        raise ValueError(
            f"-o {path} has the ending {ending_of(path)!r}; {kind.name} is written as one of "
            f"{', '.join(filter(None, kind.endings))}. Choose one of them."
        )
    if os.path.exists(path):
        if not os.path.isfile(path):
            raise ValueError(f"-o {path} is a device. Choose a file's name.")
        if kind is PAGE:
            check_page_path(path)
        elif kind is MODEL and not is_sealed(path):
            raise ValueError(
                f"-o {path} would overwrite a file that is not a tfbnn model. Remove it, or choose "
                "another name."
            )
    check_writable(path)


def _is_in(path: str, other: str) -> bool:
    """Return whether a path names the same file as the other, or something in that folder."""
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(other)):
        return True
    with contextlib.suppress(OSError):
        return os.path.samefile(path, other)
    return False  # one of them does not exist
