"""`tfbnn report`: all that is known of a model, or of a run that goes on, on one HTML page."""

import argparse
import os

from tfbnn.cli.console import DONE, say
from tfbnn.cli.options import DATA, add_model_argument, add_role_options, add_unit_option
from tfbnn.cli.outputs import PAGE, STREAM, check_output
from tfbnn.diagnostics.wording import megabytes

HELP = "write a report as one HTML page"
DESCRIPTION = """\
Write a report as one HTML page that needs nothing but itself: the verdict and what to do next, what
was fitted, convergence, relevance of the inputs, calibration, basins, settings; with a table
of rows with known targets also scores, pulls and coverage, of a classifier reliability. It opens
offline in any browser, light or dark, and on a phone.
With --follow of a run that is going on or has yet to begin: the page is kept up to date, and reads
itself again, until the run ends. Needs Matplotlib and Jinja2 (tfbnn[plots])."""

EPILOG = """\
example:
  tfbnn report bnn.h5 test.csv -o report.html
  tfbnn report runs/long --follow -o long.html"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_model_argument(parser)
    parser.add_argument("data", metavar="DATA", nargs="?", help=f"rows with known targets: {DATA}")
    parser.add_argument(
        "-o",
        dest="output",
        metavar="REPORT.html",
        default="report.html",
        help="file to write, which replaces nothing but an earlier report; default: report.html",
    )
    add_role_options(parser)
    add_unit_option(parser)
    parser.add_argument(
        "--follow",
        action="store_true",
        help="keep the page up to date while the run in this folder goes on",
    )


def run(args: argparse.Namespace) -> int:
    """Writes the page, and where it is followed again and again."""
    check_output(args.output, PAGE, [args.model, args.data])
    _check_data(args.data)
    # Other commands need not wait until what makes figures is imported.
    from tfbnn.cli.reporting import Reporter

    reporter = Reporter(args)
    if args.follow:
        reporter.follow()
    else:
        reporter.write(reporter.page())
    size = megabytes(os.path.getsize(args.output))
    say(f"Wrote {args.output}. It takes {size}; open it in a browser.")
    return DONE


def _check_data(path: str | None) -> None:
    """Refuses a table that is not there before anybody waits for the run that it is for."""
    if path not in (None, STREAM) and not os.path.exists(path):
        raise FileNotFoundError(f"There is no table {path!r}. Check the name.")
