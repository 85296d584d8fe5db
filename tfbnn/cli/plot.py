"""`tfbnn plot`: figures of a saved model."""

import argparse
import os
from typing import Any

from tfbnn.cli.columns import Roles, read_rows
from tfbnn.cli.console import DONE, say
from tfbnn.cli.options import DATA, add_model_argument, add_role_options, load_model
from tfbnn.cli.outputs import FOLDER, check_output
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import replacing

HELP = "draw figures of a saved model"
DESCRIPTION = """\
Draw figures of a saved model: traces of the chains and convergence of the predictions; with a table
of rows also predictions against truth, pulls and coverage. Needs Matplotlib (tfbnn[plots])."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_model_argument(parser)
    parser.add_argument("data", metavar="DATA", nargs="?", help=f"rows with known targets: {DATA}")
    parser.add_argument("-o", dest="output", metavar="FOLDER", required=True, help="where to save")
    add_role_options(parser)
    parser.add_argument(
        "--format", choices=["png", "pdf", "svg"], default="png", help="default: png"
    )


def run(args: argparse.Namespace) -> int:
    """Draws, saves and lists the figures."""
    check_output(args.output, FOLDER, [args.data])
    model = load_model(args)
    rows = None
    if args.data is not None:
        roles = Roles(model.posterior, args.target, args.noise_column)
        rows = read_rows(model, args.data, roles)
    if model.posterior.no_chains is not None:
        say(f"{model.posterior.no_chains}: there are no figures of chains.")
    for path in save_figures(model, rows, args.output, args.format):
        print(path)
    return DONE


def save_figures(
    model: SampledModel,
    rows: tuple[Any, Array, Array | None] | None,
    folder: str,
    file_format: str = "png",
) -> list[str]:
    """Saves all figures that can be drawn.

    Args:
        model: A fitted model.
        rows: (x, y, noise or None), or None without rows.
        folder: Where to; it is made where there is none.
        file_format: Ending of the files.

    Returns:
        Paths of the files.
    """
    from tfbnn import plots

    figures: dict[str, Any] = {}
    if model.posterior.no_chains is None:
        figures |= {
            "traces": plots.plot_traces(model),
            "convergence": plots.plot_convergence(model),
        }
    if rows is not None:
        x, y, noise = rows
        figures |= {
            "truth": plots.plot_truth(model, x, y, noise_scale=noise),
            "pulls": plots.plot_pulls(model, x, y, noise_scale=noise),
            "coverage": plots.plot_coverage(model, x, y, noise_scale=noise),
        }
    os.makedirs(folder, exist_ok=True)
    paths = {os.path.join(folder, f"{name}.{file_format}"): f for name, f in figures.items()}
    for path, figure in paths.items():
        with replacing(path) as temporary:
            figure.savefig(temporary, format=file_format)
    return list(paths)
