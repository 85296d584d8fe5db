"""Draw figures of a saved model.

The figures show convergence of the predictions, predictions along each input, and relevance of the
inputs. With a table of rows they also show predictions against truth, pulls and coverage, or reliability
for a classifier. Needs Matplotlib (tfbnn[plots]).
"""

import argparse
import os
from collections.abc import Iterator
from typing import Annotated, Any

from tfbnn.cli.arguments import RowOptions, load_model
from tfbnn.cli.columns import read_rows
from tfbnn.cli.console import DONE, say
from tfbnn.cli.outputs import FOLDER, check_output
from tfbnn.posterior.facts import known_relevance
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.spec.rows import as_argument
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import replacing


class Options(RowOptions):
    """Options of the command.

    Attributes:
        output: Folder for the figures.
        format: File format, default: png.
    """

    output: Annotated[str, {"flags": ("-o",), "metavar": "FOLDER"}]
    format: Annotated[str, {"choices": ["png", "pdf", "svg"]}] = "png"


def run(args: argparse.Namespace) -> int:
    """Draw, save and list the figures."""
    check_output(args.output, FOLDER, [args.data])
    model = load_model(args)
    rows = None if args.data is None else read_rows(model, args)
    if model.posterior.no_chains is not None:
        say(f"Left out the figures of chains. {model.posterior.no_chains}.")
    figures = dict(_figures(model, rows))
    os.makedirs(args.output, exist_ok=True)
    for name, figure in figures.items():
        path = os.path.join(args.output, f"{name}.{args.format}")
        with replacing(path) as temporary:
            figure.savefig(temporary, format=args.format)
        print(path)
    return DONE


def _figures(
    model: SampledModel,
    rows: tuple[Any, Array, Array | None] | None,
) -> Iterator[tuple[str, Any]]:
    """Yield (name, figure) of all figures that can be drawn."""
    from tfbnn import plots
    from tfbnn.plots.slicing import why_no_slices

    ensemble, (x, y, noise) = model.posterior, rows or (None, None, None)
    known = as_argument(ensemble.spec, noise)
    if ensemble.no_chains is None:
        yield "convergence", plots.plot_convergence(model)
    if why_no_slices(ensemble) is None:
        yield "slices", plots.plot_slices(model, x, y, **known)
    if known_relevance(ensemble) is not None:
        yield "relevance", plots.plot_relevance(model)
    if rows is not None and ensemble.spec.has_classes:
        yield "reliability", plots.plot_reliability(model, *rows[:2])
    elif rows is not None:
        yield "truth", plots.plot_truth(model, *rows[:2], **known)
        yield "pulls", plots.plot_pulls(model, *rows[:2], **known)
        yield "coverage", plots.plot_coverage(model, *rows[:2], **known)
