"""`tfbnn predict`: predictions of a saved model for a table of points. Needs no TensorFlow."""

import argparse
import contextlib
import itertools
from collections.abc import Iterator, Sequence
from functools import partial

from tfbnn.cli.columns import Roles, as_noise, feature_columns, inputs_of
from tfbnn.cli.console import DONE
from tfbnn.cli.options import (
    add_model_argument,
    add_uncalibrated_option,
    comma_list,
    load_model,
    number,
)
from tfbnn.cli.outputs import STREAM, TABLE, check_output, is_device
from tfbnn.data.csv_tables import open_csv
from tfbnn.data.table import Table
from tfbnn.data.table_files import Writer, csv_writer, table_writer
from tfbnn.data.tables import is_csv, read_table, table_of
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction_frame import value_names, values_of
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import open_text
from tfbnn.system.streams import data_output

_ROWS_AT_ONCE = 1000

HELP = "predict with error bars for a table of points"
DESCRIPTION = """\
Predict mean and standard deviation for every row of a table.

The columns are found by the names the model was fitted with; a table without any of them must have
exactly the model's columns, in order. A classifier gives the most probable class, then for each
class its probability and the standard deviation of that, for two classes of the second only. Text is
worked through in pieces, so it may be of any length. What the encoding of standard output lacks is
written as an escape (\\xe9); files are UTF-8.
Needs no TensorFlow."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_model_argument(parser)
    parser.add_argument(
        "points",
        metavar="POINTS",
        help="text with a header such as CSV, NPZ, HDF5 or Parquet; '-': text from standard input",
    )
    parser.add_argument(
        "-o",
        dest="output",
        metavar="OUT.csv",
        help="file to write, in the format of its ending: .csv, .tsv (also .gz), .npz, .h5, "
        ".parquet; default: CSV on standard output",
    )
    parser.add_argument(
        "--quantiles",
        type=_quantiles,
        metavar="Q,Q,...",
        help="also these quantiles, for example 0.16,0.5,0.84",
    )
    parser.add_argument(
        "--include-noise",
        action="store_true",
        help="spread of a new observation; without it, of the function alone",
    )
    add_uncalibrated_option(parser)
    parser.add_argument(
        "--space",
        choices=["original", "transformed"],
        default="original",
        help="units of the target (default), or the scale the network sees",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="column 'trust': 1 inside the training inputs, 0 at their edge, -1 outside",
    )
    parser.add_argument(
        "--noise-column",
        action="append",
        metavar="COL",
        help="column with the known standard deviation of each row, for --include-noise after a "
        "fit with such a column; default: the name used in the fit",
    )


def run(args: argparse.Namespace) -> int:
    """Predicts and writes a table."""
    check_output(args.output, TABLE, [args.model, args.points])
    model = load_model(args)
    noise = Roles(model.posterior, noise=args.noise_column).noise
    noise = noise if args.include_noise else []
    has_labels = model.spec.has_classes and args.space == "original"
    columns = value_names(model.posterior, args.quantiles or (), args.space)
    if has_labels:
        columns = _class_columns(model.posterior) + columns
    if args.trust:
        columns.append("trust")
    predict = partial(
        model.predict, include_noise=args.include_noise, quantiles=args.quantiles or None
    )
    predict = partial(predict, space=args.space, return_trust=args.trust)
    predict = partial(predict, calibrated=False if args.uncalibrated else "auto")
    with (
        _pieces(args.points, model.posterior, noise) as pieces,
        _written(args.output, columns) as write,
    ):
        for x, row_noise in pieces:
            prediction = predict(x, noise_scale=row_noise).columns
            labels = model.posterior.most_probable(prediction.mean) if has_labels else None
            write(values_of(prediction), labels)
    return DONE


def _class_columns(ensemble: Ensemble) -> list[str]:
    """Names of the columns of most probable classes, one for each target."""
    names = ensemble.target_names
    return ["class"] if len(names) == 1 else [f"{name}_class" for name in names]


@contextlib.contextmanager
def _pieces(
    path: str, ensemble: Ensemble, noise: Sequence[str]
) -> Iterator[Iterator[tuple[Table, Array | None]]]:
    """Yields an iterator over (x, noise or None) of successive rows."""

    def pick(available: Sequence[str]) -> list[str]:
        return [*feature_columns(ensemble, available, path, apart=noise), *noise]

    def split(table: Table) -> tuple[Table, Array | None]:
        features = table.columns[: ensemble.spec.num_inputs]
        return inputs_of(ensemble, table, features), as_noise(table, noise)

    if not is_csv(path):
        table = read_table(path, columns=pick)
        starts = range(0, len(table), _ROWS_AT_ONCE)
        yield (split(table.take(slice(start, start + _ROWS_AT_ONCE))) for start in starts)
        return
    with open_csv(path) as rows:
        names = pick(rows.columns)
        lines = iter(rows)
        first = list(itertools.islice(lines, _ROWS_AT_ONCE))
        if not first:
            raise ValueError(f"{rows.source} has a header but no rows; expected at least one row.")
        rest = iter(lambda: list(itertools.islice(lines, _ROWS_AT_ONCE)), [])
        yield (split(table_of(rows, piece, names)) for piece in itertools.chain([first], rest))


@contextlib.contextmanager
def _written(path: str | None, columns: Sequence[str]) -> Iterator[Writer]:
    """Yields what takes the rows of the table: a file, a pipe or standard output."""
    if path is None or path == STREAM:
        yield csv_writer(data_output(), columns)
    elif is_device(path):
        with open_text(path) as stream:
            yield csv_writer(stream, columns)
    else:
        with table_writer(path, columns) as write:
            yield write


def _quantiles(text: str) -> list[float]:
    wanted = "numbers between 0 and 1 with commas, such as 0.16,0.5,0.84"
    values: list[float] = [number(entry, float, wanted) for entry in comma_list(text)]
    if len(set(values)) < len(values):
        raise argparse.ArgumentTypeError(f"expected different numbers, received {text!r}")
    return values
