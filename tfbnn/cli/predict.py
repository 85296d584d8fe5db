r"""Predict mean and standard deviation for every row of a table.

The columns are found by the names of the fit. A table without any of these names must have exactly the
model's columns, in order. A classifier gives the most probable class, then the probability of each class
with its standard deviation; with two classes, that of the second only. Text tables are read in pieces, so
they may be of any length. Characters that the encoding of standard output lacks are written as escapes
(\xe9); files are UTF-8. Needs no TensorFlow.
"""

import argparse
import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np

from tfbnn.cli.arguments import (
    ErrorBarOptions,
    ModelOptions,
    argument,
    comma_list,
    load_model,
    number,
)
from tfbnn.cli.columns import ModelInputs, as_noise, known_columns, read_labels
from tfbnn.cli.console import DONE
from tfbnn.cli.outputs import STREAM, TABLE, check_output, written_table
from tfbnn.data.csv_tables import open_csv
from tfbnn.data.table import Table
from tfbnn.data.tables import is_csv, table_of
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction_frame import target_prefixes, value_names, values_of
from tfbnn.spec.rows import as_argument
from tfbnn.system.arrays import Array, row_slices
from tfbnn.system.terminals import is_terminal

_ROWS_AT_ONCE = 1000


def _quantiles(text: str) -> list[float]:
    wanted = "numbers between 0 and 1 with commas, such as 0.16,0.5,0.84"
    values: list[float] = [number(entry, float, wanted) for entry in comma_list(text)]
    if len(set(values)) < len(values):
        raise argparse.ArgumentTypeError(f"expected different numbers, received {text!r}")
    return values


class Options(ErrorBarOptions, ModelOptions):
    """Options of the command.

    Attributes:
        points: Rows to predict: text with a header such as CSV, NPZ, HDF5 or Parquet; '-': text from
            standard input.
        output: File to write, in the format of its ending: .csv, .tsv (also .gz), .npz, .parquet;
            default: CSV on standard output.
        quantiles: Also write these quantiles, for example 0.16,0.5,0.84.
        include_noise: Predict the spread of a new observation; default: the spread of the function alone.
        space: Units of the target (default), or the scale the network sees.
        trust: Add a column 'trust': 1 inside the training inputs, 0 at their edge, -1 outside.
        unsampled: Predict with the networks of a run that ended before its first draw; their spread is
            not an error bar.
        noise_column: Column with the known standard deviation of each row, for --include-noise after a
            fit with such a column; default: the name used in the fit.
        offset_column: Column with the logarithm of the exposure of each row of counts; default: the
            name used in the fit, with --include-noise; without offsets the mean is a rate.
        keep: Repeat these columns of POINTS before the others, such as an id.
        density: Also write the predictive density at the targets in these columns; for a classifier, the
            probability of these labels; implies --include-noise, as do the next two.
        cdf: Also write the predictive probability of values up to the targets in these columns.
        sample: Also write this number of draws of a new observation.
        named: Name columns after the target even if there is only one, such as xsec_fb_mean.
    """

    points: Annotated[str, argument("POINTS")]
    output: Annotated[str | None, {"flags": ("-o",), "metavar": "OUT.csv"}] = None
    quantiles: Annotated[list[float] | None, {"type": _quantiles, "metavar": "Q,Q,..."}] = None
    include_noise: bool = False
    space: Annotated[str, {"choices": ["original", "transformed"]}] = "original"
    trust: bool = False
    unsampled: bool = False
    noise_column: Annotated[list[str] | None, {"action": "append", "metavar": "COL"}] = None
    offset_column: Annotated[list[str] | None, {"action": "append", "metavar": "COL"}] = None
    keep: Annotated[Sequence[str], {"type": comma_list, "metavar": "COL,COL,..."}] = ()
    density: Annotated[Sequence[str], {"type": comma_list, "metavar": "COL,COL,..."}] = ()
    cdf: Annotated[Sequence[str], {"type": comma_list, "metavar": "COL,COL,..."}] = ()
    sample: int = 0
    named: bool = False


def run(args: argparse.Namespace) -> int:
    """Predict the rows and write a table."""
    check_output(args.output, TABLE, [args.model, args.points])
    model = load_model(args)
    noise = known_columns(args, model.spec.has_counts)
    if (args.density or args.cdf or args.sample) and not model.spec.has_classes:
        args.include_noise = True  # the distribution is that of a new observation
    if args.include_noise:
        noise = noise or list(model.posterior.provenance.noise_columns or ())
    elif noise and not model.spec.has_counts:
        raise ValueError("--noise-column goes with --include-noise. Give both, or neither.")
    has_labels = model.spec.has_classes and args.space == "original"
    columns = value_names(model.posterior, args.quantiles or (), args.space, args.named)
    if has_labels:
        prefixes = target_prefixes(model.posterior, args.named)
        columns = [*(f"{prefix}class" for prefix in prefixes), *columns]
    if args.trust:
        columns.append("trust")
    columns += _distribution_names(args, model.posterior)
    twice = [name for name in args.keep if name in columns or args.keep.count(name) > 1]
    if twice:
        raise ValueError(
            f"--keep {twice[0]}: two columns of the output would have this name. Leave it out, or "
            "rename it; --named gives the others longer names."
        )
    settings = {
        "include_noise": args.include_noise,
        "quantiles": args.quantiles or None,
        "space": args.space,
        "return_trust": args.trust,
        "calibrated": False if args.uncalibrated else "auto",
        "allow_unsampled": args.unsampled,
    }
    numbers, labels = [*noise, *args.cdf], [*args.keep]
    (labels if model.spec.has_classes else numbers).extend(args.density)
    with (
        _pieces(args.points, model.posterior, [*dict.fromkeys(numbers)], labels) as (pieces, total),
        written_table(args.output, [*args.keep, *columns]) as write,
    ):
        if args.output not in (None, STREAM) and is_terminal(sys.stderr):
            from tfbnn.run.progress import tracked

            pieces = tracked(pieces, total, "predicting")
        for number, (x, table) in enumerate(pieces):
            known = as_argument(model.spec, as_noise(table, noise))
            kept = [table.labels([name])[:, 0] for name in args.keep]
            prediction = model.predict(x, **known, **settings).columns
            if has_labels:
                kept += [*model.posterior.most_probable(prediction.mean).T]
            values = [values_of(prediction)]
            if args.density or args.cdf or args.sample:
                of_rows = model.predict_distribution(x, **known, calibrated=settings["calibrated"])
                values += _distribution_values(args, of_rows, table, model.classes, number)
            write(np.column_stack(values), kept)
    return DONE


def _distribution_names(args: argparse.Namespace, ensemble: Ensemble) -> list[str]:
    """Return the names of the columns of `_distribution_values`, after checking the options."""
    spec, prefixes = ensemble.spec, target_prefixes(ensemble, args.named)
    given = {"--density": args.density, "--cdf": args.cdf, "--sample": args.sample}
    used = [option for option, value in given.items() if value]
    if used and args.space == "transformed":
        raise ValueError(f"{used[0]} is in units of the target. Leave out --space transformed.")
    if args.sample < 0:
        raise ValueError(f"--sample must be 1 or more, received {args.sample}.")
    if spec.has_classes and (args.cdf or args.sample):
        raise ValueError(
            f"{used[-1]} cannot be used with a classifier. Use --density for class probabilities."
        )
    for option in ("--density", "--cdf"):
        if given[option] and len(given[option]) != spec.num_targets:
            raise ValueError(
                f"{option} needs one column for each of the {spec.num_targets} targets, received "
                f"{', '.join(given[option])}."
            )
    names = ["density"] * bool(args.density) + ["cdf"] * bool(args.cdf)
    names += [f"draw_{number}" for number in range(args.sample)]
    return [f"{prefix}{name}" for name in names for prefix in prefixes]


def _distribution_values(
    args: argparse.Namespace, of_rows: Any, table: Table, classes: Any, seed: int
) -> list[Array]:
    """Return density, distribution function and draws of some rows, [n, columns] each."""

    def in_shape(names: Sequence[str]) -> Array:
        return table.numbers(names) if classes is None else read_labels(table, names, classes)

    found = []
    if args.density:
        found.append(np.exp(of_rows.log_prob(in_shape(args.density))))
    if args.cdf:
        found.append(of_rows.cdf(in_shape(args.cdf)))
    if args.sample:
        draws = of_rows.sample(args.sample, seed)
        found.append(np.moveaxis(draws, 0, 1).reshape(draws.shape[1], -1))
    return found


@contextlib.contextmanager
def _pieces(
    path: str, ensemble: Ensemble, numbers: Sequence[str], labels: Sequence[str]
) -> Iterator[tuple[Iterator[tuple[Table, Table]], int | None]]:
    """Yield (iterator over pieces of the table, number of pieces if known).

    A piece is (inputs of some rows, all columns read of these rows).
    """
    known = {*(ensemble.known.column_names or ()), *numbers}
    others = [name for name in labels if name not in known]
    inputs = ModelInputs(ensemble, path, [*numbers, *others])

    def split(table: Table) -> tuple[Table, Table]:
        return inputs.of(table), table

    if not is_csv(path):
        table = inputs.read(others, as_written=True)
        parts = row_slices(len(table), _ROWS_AT_ONCE)
        yield (split(table.take(some)) for some in parts), len(parts)
        return
    with open_csv(path) as rows:
        names = [name for name in inputs.pick(rows.columns) if name not in others]
        lines = iter(rows)
        pieces = iter(lambda: list(itertools.islice(lines, _ROWS_AT_ONCE)), [])
        first = next(pieces, None)
        if first is None:
            raise ValueError(f"{rows.source} has a header but no rows; expected at least one row.")
        settings = inputs.categories or (), set(names if inputs.gaps else ())
        tables = (
            table_of(rows, piece, names, *settings, texts=rows.cells(piece, labels))
            for piece in itertools.chain([first], pieces)
        )
        yield map(split, tables), None
