"""`tfbnn demo`: the whole story on data that the package computes itself."""

import os
from dataclasses import dataclass

import numpy as np

import tfbnn
from tfbnn.cli.columns import remember_columns
from tfbnn.cli.console import DONE, import_tensorflow
from tfbnn.cli.plot import save_figures
from tfbnn.cli.scores import scores_text
from tfbnn.tables import Table, write_csv

__all__ = ["add_parser"]

_DESCRIPTION = """\
Fit a small network to cross sections that are computed on the spot, and show everything that comes
after: report, test, figures, saved model, one prediction. Takes about a minute on two cores."""

# As large as the statistical error of a short Monte Carlo run.
_SMEARING = 0.1
_TEST = 2


@dataclass(frozen=True)
class _Size:
    """How much the demo does; tests make it small."""

    num_rows: int = 2000
    epochs: int = 2000
    num_leapfrog_steps: int = 256
    num_burnin_steps: int = 600
    num_results: int = 300


_SIZE = _Size()


def add_parser(commands):
    """Adds the command to argparse's subparsers."""
    parser = commands.add_parser(
        "demo", help="the whole story in a minute, on generated data", description=_DESCRIPTION
    )
    parser.add_argument(
        "-o", dest="output", metavar="FOLDER", default="tfbnn-demo", help="default: tfbnn-demo"
    )
    parser.set_defaults(run=run)


def run(args):
    """Tells the story."""
    os.makedirs(args.output, exist_ok=True)
    data, exact = _make_data()
    _tell_data(args.output, data)
    model = _fit(data)
    _tell_test(model, data, exact)
    path = os.path.join(args.output, "demo.h5")
    model.save(path)
    _tell_figures(model, data, args.output)
    _tell_prediction(path, data, exact)
    _tell_next_steps(args.output)
    return DONE
