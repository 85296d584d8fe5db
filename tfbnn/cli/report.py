"""Write a report as one self-contained HTML page.

It shows the verdict and the next steps, the model, convergence, relevance of the inputs, calibration,
basins and settings. With a table of rows with known targets it also shows scores, pulls and coverage, or
reliability for a classifier. It opens offline in any browser, also on a phone, and has a light and a
dark mode. Needs Matplotlib and Jinja2 (tfbnn[plots]).

example:
  tfbnn report bnn.h5 test.csv -o report.html
"""

import argparse
import os
import shlex
from typing import Annotated

from tfbnn.cli.arguments import RowOptions, load_model
from tfbnn.cli.columns import read_rows
from tfbnn.cli.console import DONE, say
from tfbnn.cli.outputs import PAGE, STREAM, check_output
from tfbnn.diagnostics.problem import Interface
from tfbnn.diagnostics.wording import megabytes


class Options(RowOptions):
    """Options of the command.

    Attributes:
        output: File to write, which replaces only an earlier report; default: report.html.
    """

    output: Annotated[str, {"flags": ("-o",), "metavar": "REPORT.html"}] = "report.html"


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    check_output(args.output, PAGE, [args.model, args.data])
    # Imported here, so that other commands do not wait for the plotting modules.
    from tfbnn.plots.page.subject import KnownRows, Subject
    from tfbnn.plots.page.writing import write_report

    model, rows = load_model(args), None
    if args.data is not None:
        source = "standard input" if args.data == STREAM else args.data
        rows = KnownRows(*read_rows(model, args), source)
    folder = args.model if os.path.isdir(args.model) else None
    interface = Interface(is_command_line=True, folder=folder)
    without = f"tfbnn report {shlex.quote(args.model)} DATA"
    subject = Subject(model, rows, interface, without)
    write_report(subject, args.output, os.path.basename(os.path.abspath(args.model)))
    size = megabytes(os.path.getsize(args.output))
    say(f"Wrote {args.output}. It takes {size}; open it in a browser.")
    return DONE
