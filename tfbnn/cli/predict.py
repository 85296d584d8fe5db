r"""Predict mean and standard deviation for every row of a table.

The columns are found by the names the model was fitted with; a table without any of them must have
exactly the model's columns, in order. A classifier gives the most probable class, then for each
class its probability and the standard deviation of that, for two classes of the second only. Text is
worked through in pieces, so it may be of any length. What the encoding of standard output lacks is
written as an escape (\xe9); files are UTF-8.
Needs no TensorFlow.
"""

import argparse
import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

from tfbnn.cli.columns import ModelInputs, as_noise
from tfbnn.cli.console import DONE
from tfbnn.cli.options import (
    ErrorBarOptions,
    ModelOptions,
    argument,
    comma_list,
    load_model,
    number,
)
from tfbnn.cli.outputs import TABLE, check_output, written_table
from tfbnn.data.csv_tables import open_csv
from tfbnn.data.table import Table
from tfbnn.data.tables import is_csv, table_of
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction_frame import target_prefixes, value_names, values_of
from tfbnn.system.arrays import Array, row_slices

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
        points: Text with a header such as CSV, NPZ, HDF5 or Parquet; '-': text from standard input.
        output: File to write, in the format of its ending: .csv, .tsv (also .gz), .npz, .parquet;
            default: CSV on standard output.
        quantiles: Also these quantiles, for example 0.16,0.5,0.84.
        include_noise: Spread of a new observation; without it, of the function alone.
        space: Units of the target (default), or the scale the network sees.
        trust: Column 'trust': 1 inside the training inputs, 0 at their edge, -1 outside.
        unsampled: Predict with the networks of a run that ended before its first draw: their spread is
            no error bar.
        noise_column: Column with the known standard deviation of each row, for --include-noise after a
            fit with such a column; default: the name used in the fit.
        keep: Repeat these columns of POINTS before the others, such as an id.
        named: Name columns after the target where there is only one, too, such as xsec_fb_mean.
    """

    points: Annotated[str, argument("POINTS")]
    output: Annotated[str | None, {"flags": ("-o",), "metavar": "OUT.csv"}] = None
    quantiles: Annotated[list[float] | None, {"type": _quantiles, "metavar": "Q,Q,..."}] = None
    include_noise: bool = False
    space: Annotated[str, {"choices": ["original", "transformed"]}] = "original"
    trust: bool = False
    unsampled: bool = False
    noise_column: Annotated[list[str] | None, {"action": "append", "metavar": "COL"}] = None
    keep: Annotated[Sequence[str], {"type": comma_list, "metavar": "COL,COL,..."}] = ()
    named: bool = False


def run(args: argparse.Namespace) -> int:
    """Predict and write a table."""
    check_output(args.output, TABLE, [args.model, args.points])
    model = load_model(args)
    noise = args.noise_column or model.posterior.provenance.noise_columns or ()
    noise = noise if args.include_noise else ()
    has_labels = model.spec.has_classes and args.space == "original"
    columns = value_names(model.posterior, args.quantiles or (), args.space, args.named)
    if has_labels:
        prefixes = target_prefixes(model.posterior, args.named)
        columns = [*(f"{prefix}class" for prefix in prefixes), *columns]
    if args.trust:
        columns.append("trust")
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
    with (
        _pieces(args.points, model.posterior, noise, args.keep) as pieces,
        written_table(args.output, [*args.keep, *columns]) as write,
    ):
        for x, known, kept in pieces:
            prediction = model.predict(x, noise_scale=known, **settings).columns
            if has_labels:
                kept += [*model.posterior.most_probable(prediction.mean).T]
            write(values_of(prediction), kept)
    return DONE


# Some rows: inputs, known noise or None, and each of the columns that are kept [n].
_Piece: TypeAlias = tuple[Table, Array | None, list[Array]]


@contextlib.contextmanager
def _pieces(
    path: str, ensemble: Ensemble, noise: Sequence[str], keep: Sequence[str]
) -> Iterator[Iterator[_Piece]]:
    """Yield an iterator over successive rows."""
    others = [name for name in keep if name not in {*(ensemble.column_names or ()), *noise}]
    inputs = ModelInputs(ensemble, path, [*noise, *others])

    def split(table: Table) -> _Piece:
        kept = [table.labels([name])[:, 0] for name in keep]
        return inputs.of(table), as_noise(table, noise), kept

    if not is_csv(path):
        table = inputs.read(others)
        yield (split(table.take(some)) for some in row_slices(len(table), _ROWS_AT_ONCE))
        return
    with open_csv(path) as rows:
        names = [name for name in inputs.pick(rows.columns) if name not in others]
        lines = iter(rows)
        pieces = iter(lambda: list(itertools.islice(lines, _ROWS_AT_ONCE)), [])
        first = next(pieces, None)
        if first is None:
            raise ValueError(f"{rows.source} has a header but no rows; expected at least one row.")
        settings = inputs.categories or (), set(names if inputs.gaps else ())
        yield (
            split(table_of(rows, piece, names, *settings, texts=rows.cells(piece, keep)))
            for piece in itertools.chain([first], pieces)
        )
