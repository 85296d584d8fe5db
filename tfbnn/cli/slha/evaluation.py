"""Predict the cross sections of SLHA spectra, or of the points of a table.

All processes of a folder that 'tfbnn slha make' wrote are predicted: medians in fb, distances to the
16 % and 84 % quantiles, and trust, 1 inside the training data, 0 at their edge, -1 outside. The output has
one row per point and process, as CSV on standard output unless -o, -w or --json is given. A spectrum that
lacks an input or is marked invalid (SPINFO 4), and a point at which an input, a target or an error is
undefined, stop the command, unless --skip-bad is given.

examples:
  tfbnn slha eval gauginos/ point.slha
  tfbnn slha eval gauginos/ spectra/ -o scan.csv                # a folder of them
  tfbnn slha eval gauginos/ spectra/ -w with_xsections/         # copies with XSECTION blocks
  tfbnn slha eval gauginos/ --table points.csv --id name --process 1000022,1000023 -o scan.csv
  tfbnn slha eval gauginos/ --table points.csv --error pdf=pdf_rel --error scale=0.05,0.04
"""

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Annotated, Any

import numpy as np

from tfbnn.cli.arguments import JsonOptions, argument, comma_list, number
from tfbnn.cli.console import DONE, print_json, say
from tfbnn.cli.outputs import TABLE, check_output, written_table
from tfbnn.cli.slha.points import (
    Batch,
    find_spectra,
    of_spectra,
    of_table,
    paths_of_copies,
    read_text,
    write_text,
)
from tfbnn.data.numbers import is_number
from tfbnn.data.training_inputs import OUTSIDE
from tfbnn.diagnostics.wording import counted
from tfbnn.hep.errors import PointError
from tfbnn.hep.predictor import CrossSectionPredictor, CrossSections
from tfbnn.hep.process import Pids, Process, pid_pair
from tfbnn.hep.xsection_blocks import Entry, check_calculations, with_blocks
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import is_device
from tfbnn.system.words import repeated

_MOST_NAMED = 5
# Columns, and the attributes of `CrossSections` they show.
_NETWORK = {"central_fb": "central", "err_down_fb": "err_down", "err_up_fb": "err_up"}
_OTHERS = {
    "other_err_down_fb": "other_down",
    "other_err_up_fb": "other_up",
    "tot_err_down_fb": "total_down",
    "tot_err_up_fb": "total_up",
}
_WHOLE = ("pid1", "pid2", "trust")


def pids_of(text: str) -> Pids:
    """Read the two PDG codes of an option."""
    wanted = "two PDG codes with a comma, such as 1000022,1000023"
    codes = [number(entry, int, wanted) for entry in comma_list(text)]
    if len(codes) != 2:
        raise argparse.ArgumentTypeError(f"expected {wanted}, received {text!r}")
    return pid_pair(codes)


def _error(text: str) -> tuple[str, Any]:
    """Read (name, value); the value is a number, (down, up) or the name of a column."""
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise argparse.ArgumentTypeError(
            f"expected NAME=X, such as scale=0.05, scale=0.05,0.04 or pdf=COLUMN, received {text!r}"
        )
    parts = value.split(",")
    if len(parts) > 2 or not all(map(is_number, parts)):
        return name, value
    sides = tuple(map(float, parts))
    return name, sides if len(sides) == 2 else sides[0]


class PointsOptions:
    """Options of commands that predict points.

    Attributes:
        folder: Folder of processes.
        spectra: Files in SLHA with one or many spectra, tars, or folders of files that end in .slha,
            .slha1, .slha2, .lha or .spc.
        table: Table of points with the inputs, in place of spectra.
        id_column: Column of the table that names its points; default: their numbers, from 0.
        process: Use the network of this process only; may be repeated.
        skip_bad: Leave out spectra that lack an input or are marked invalid, and points at which an input, a
            target or an error is undefined, and report them. Blank cells of a table stop the command.
        trusted: Parse the models without the separate, restricted process that protects from files of
            strangers, which is faster; only for folders of your own.
    """

    folder: Annotated[str, argument("FOLDER")]
    spectra: Annotated[list[str], argument("SPECTRA", nargs="*")]
    table: Annotated[str | None, {"metavar": "POINTS"}] = None
    id_column: Annotated[str | None, {"flags": ("--id",), "metavar": "COL"}] = None
    process: Annotated[
        list[Pids] | None, {"action": "append", "type": pids_of, "metavar": "PID,PID"}
    ] = None
    skip_bad: bool = False
    trusted: bool = False


class Options(JsonOptions, PointsOptions):
    """Options of the command.

    Attributes:
        output: Table to write, in the format of its ending.
        write: Write copies of the spectra with XSECTION blocks: to this file if one spectrum is named,
            else to this folder.
        overwrite: Let -w replace existing files.
        add_errors: Add the other errors that the folder has, such as those of scale and parton densities, to
            the network's own in quadrature, and show the parts.
        error: As --add-errors, with one more relative error, or another value for an error of the folder;
            X is a number, two numbers (down and up) with a comma, or a column of the table; may be repeated.
    """

    output: Annotated[str | None, {"flags": ("-o",), "metavar": "OUT.csv"}] = None
    write: Annotated[str | None, {"flags": ("-w", "--write"), "metavar": "PLACE"}] = None
    overwrite: bool = False
    add_errors: bool = False
    error: Annotated[Sequence[Any], {"action": "append", "type": _error, "metavar": "NAME=X"}] = []


def run(args: argparse.Namespace) -> int:
    """Read the points, predict them in batches and write the results."""
    _check_arguments(args)
    errors = dict(args.error)
    predictor, spectra, batches = open_points(args, errors)
    processes = [*predictor.processes.values()]
    copies: dict[str, str] = {}
    if args.write is not None:  # checked before any work is done
        check_calculations(processes)
        if pipes := [path for path in args.spectra if is_device(path)]:
            raise ValueError(
                f"-w reads each spectrum twice, and {pipes[0]} can be read once. Write it to a file first."
            )
        copies = paths_of_copies(args.write, args.spectra, spectra, args.overwrite)
        read = [*batches]
        if inner := [name for names, *_ in read for name in names if name not in copies]:
            raise ValueError(
                f"-w writes copies of files with one spectrum, received {inner[0]}. Unpack them, or use -o."
            )
        batches = iter(read)
    with_others, seconds = bool(args.add_errors or errors), 0.0
    shown = _NETWORK | (_OTHERS if with_others else {}) | {"trust": "trust"}
    columns, records = ["point", "pid1", "pid2", "energy_GeV", *shown], []
    num_points, num_strangers, untrusted = 0, 0, []
    to_copy: list[tuple[dict[str, str], CrossSections]] = []
    is_table = args.output is not None or not (args.json or args.write is not None)
    with ExitStack() as stack:
        write = stack.enter_context(written_table(args.output, columns)) if is_table else None
        for batch in batches:
            began = time.perf_counter()
            names, sections = predicted(predictor, batch, args.skip_bad)
            if sections is None:
                continue
            seconds += time.perf_counter() - began
            num_points += len(names)
            is_outside = np.any(sections.trust == OUTSIDE, axis=1)
            untrusted += [name for name, outside in zip(names, is_outside) if outside]
            points = np.repeat(np.array(names, dtype=str), len(processes))
            values = _values_of(processes, sections, shown.values())
            if write is not None:
                write(values, [points])
            if args.json:
                records += _records_of(columns, points, values)
            if copies:
                to_copy.append(({name: copies[name] for name in names}, sections))
        if not num_points:
            raise ValueError("No point is left. Repair the spectra.")
        # All points are predicted before any copy is written, which would block a repeat.
        for paths, sections in to_copy:
            num_strangers += _write_copies(paths, processes, sections, with_others)
    if args.json:
        print_json({"cross_sections": records, "cite": _citations(processes)})
    number = num_points * len(processes)
    say(
        f"{counted(number, 'cross section')} of {counted(num_points, 'point')}, predicted in "
        f"{seconds:.2f} s, {1000 * seconds / number:.3g} ms each."
    )
    if untrusted:
        first, more = untrusted[:_MOST_NAMED], len(untrusted) - _MOST_NAMED
        say(
            f"Warning: trust is -1, outside the training inputs, at "
            f"{counted(len(untrusted), 'point')}: {', '.join(first)}"
            f"{f' and {more} more' if more > 0 else ''}. Do not rely on these cross sections."
        )
    if args.write is not None:
        say(f"Wrote copies with XSECTION blocks to {args.write}: {num_points} in all.")
    if num_strangers:
        say(
            f"Warning: {num_strangers} of them keep cross sections of another code for the same process "
            "and energy. SModelS takes the largest of those with the same order."
        )
    for text in _citations(processes):
        say(f"Cite: {text}")
    return DONE


def open_points(
    args: argparse.Namespace, errors: Mapping[str, Any]
) -> tuple[CrossSectionPredictor, list[str], Iterator[Batch]]:
    """Return the predictor, the files of spectra (none for a table) and the points, see `Batch`."""
    if (args.table is None) == (not args.spectra):
        raise ValueError("expected SPECTRA or --table POINTS, one of them.")
    if args.table is None and args.id_column is not None:
        raise ValueError("--id goes with --table: points of spectra are named by their files.")
    spectra = find_spectra(args.spectra)
    check_output(args.output, TABLE, [args.folder, args.table, *spectra])
    predictor = CrossSectionPredictor(args.folder, args.process, untrusted=not args.trusted)
    if args.table is None:
        return predictor, spectra, of_spectra(predictor, spectra, errors, args.skip_bad)
    return predictor, spectra, of_table(predictor, args.table, args.id_column, errors)


def predicted(
    predictor: CrossSectionPredictor, batch: Batch, skip_bad: bool
) -> tuple[list[str], CrossSections | None]:
    """Return (names, predictions) of a batch; None: `skip_bad` left out all points, as undefined."""
    names, inputs, errors = batch
    while names:
        try:
            return names, predictor.predict(inputs, errors=errors)
        except PointError as error:
            bad = [names[index] for index in error.points]
            if not skip_bad:
                found = f"{error.before} at {bad[0]}{error.after}"
                raise ValueError(f"{found} (--skip-bad leaves it out.)") from error
            first = ", ".join(bad[:_MOST_NAMED])
            say(f"Left out {counted(len(bad), 'point')}: {error.before} at {first}.")
            left = np.delete(np.arange(len(names)), error.points)
        names = [names[index] for index in left]
        inputs, errors = (
            {
                name: one[left] if isinstance(one, np.ndarray) else one
                for name, one in values.items()
            }
            for values in (inputs, errors)
        )
    return names, None


def _check_arguments(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    if twice := repeated(name for name, _ in args.error):
        raise ValueError(f"--error {twice[0]} is given twice. Give each error one value.")
    if args.table is None:
        for name, value in args.error:
            if isinstance(value, str):
                raise ValueError(
                    f"--error {name}={value} names a column, which spectra do not have. Pass a "
                    "number, or a --table."
                )
    elif args.write is not None:
        raise ValueError("-w writes copies of spectra, so it cannot be used with --table. Use -o.")


def _values_of(
    processes: Sequence[Process], sections: CrossSections, shown: Iterable[str]
) -> Array:
    """Return the numbers of the rows [N * P, columns], point by point."""
    constants = np.array([[*process.pids, process.energy] for process in processes])
    parts = np.broadcast_arrays(*constants.T, *(getattr(sections, name) for name in shown))
    return np.stack(parts, axis=2).reshape(sections.central.size, -1)


def _records_of(columns: Sequence[str], points: Array, values: Array) -> list[dict[str, Any]]:
    """Return the rows as JSON records."""
    return [
        {columns[0]: point}
        | {name: int(value) if name in _WHOLE else value for name, value in zip(columns[1:], row)}
        for point, row in zip(points.tolist(), values.tolist())
    ]


def _write_copies(
    paths: Mapping[str, str],
    processes: Sequence[Process],
    sections: CrossSections,
    with_others: bool,
) -> int:
    """Write copies of spectra with XSECTION blocks.

    Args:
        paths: Dict spectrum -> path of its copy, in the order of the points.
        processes: The processes of the folder.
        sections: Predicted cross sections of the points.
        with_others: Whether errors of other origin are added.

    Returns:
        Number of copies that keep cross sections of another code for the same process.
    """
    down = sections.total_down if with_others else sections.err_down
    up = sections.total_up if with_others else sections.err_up
    numbers = np.stack([sections.central, down, up], axis=2).tolist()
    num_strangers = 0
    for point, (spectrum, copy) in enumerate(paths.items()):
        entries = []
        for index, process in enumerate(processes):
            central, low, high = numbers[point][index]
            others = sections.relative_errors[index] if with_others else {}
            sides = {name: tuple(error[point].tolist()) for name, error in others.items()}
            trust = int(sections.trust[point, index])
            entries.append(Entry(process, central, low, high, trust, sides))
        text, strangers = with_blocks(read_text(spectrum), entries)
        write_text(copy, text)
        num_strangers += bool(strangers)
    return num_strangers


def _citations(processes: Sequence[Process]) -> list[str]:
    """Return the citations, each once."""
    sources = [(process.citation, process.doi and f"doi:{process.doi}") for process in processes]
    texts = (", ".join(filter(None, source)) for source in sources)
    return list(dict.fromkeys(filter(None, texts)))
