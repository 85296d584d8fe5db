"""Make training tables from SLHA spectra and the cross sections that were calculated for them.

SPECTRA are SLHA files, folders or tars of them; a file may hold many spectra. A description in TOML, below,
says where the cross sections are and defines the columns of the tables. Points are left out and counted if their
spectrum is marked invalid (SPINFO 4), if they lack a value, or if their calculation failed. 'tfbnn slha make'
reads the same description.

example of a description, gauginos.toml:
  energy = 13000
  unit = "fb"

  [results]
  file = "prospino.dat"              # rows in the order of the spectra
  columns = ["pid1", "pid2", "LO", "NLO", "pdf"]    # leave out if the file has a header
  # spectrum = "name"                # if the column "name" names the spectrum of each row
  # block = "PROSPINO_OUTPUT"        # in place of file: results are in this block of each spectrum

  [[process]]
  pids = [1000022, 1000023]
  rows = {pid1 = 1000022, pid2 = 1000023}           # selects the results of this process
  target = "NLO"                     # or an expression: "log10(NLO)"; "NLO / LO" with an input LO
  inputs = {N11 = "NMIX 1 1", N12 = "NMIX 1 2", log_m = "log10(abs(MASS:1000022))", bino = "N11**2"}
  errors = {pdf = {relative = "pdf / NLO", model = "pdf.h5"}}
  model = "chi10chi20.h5"            # for 'tfbnn slha make'

In an expression, a place in the spectrum is written with colons: NMIX:1:1 for "NMIX 1 1". An input that other
inputs use, such as N11 above, does not become a column. A cross section that is not a positive number, such as
-1, counts as a failed calculation. Results of errors have no sign: rows with a negative one are left out.

examples:
  tfbnn slha table spectra/ gauginos.toml -o chi10chi20.csv
  tfbnn slha table scan.tar.gz gauginos.toml -o tables/       # a table for each of several processes
"""

import argparse
import os
import warnings
from collections import Counter
from typing import Annotated

import numpy as np

from tfbnn.cli.arguments import argument
from tfbnn.cli.console import DONE, say
from tfbnn.cli.outputs import FOLDER, STREAM, TABLE, check_output
from tfbnn.cli.slha.points import find_spectra, read_spectra
from tfbnn.data.tables import ENDINGS, ending_of, table_writer
from tfbnn.diagnostics.wording import counted
from tfbnn.exceptions import DataWarning
from tfbnn.hep.process_toml import read_tabulations
from tfbnn.hep.tabulation import SPECTRUM, Tabulated, Tabulation, column_text, tabulate

_MOST_REASONS = 5


class Options:
    """Options of the command.

    Attributes:
        spectra: Files in SLHA with one or many spectra, tars, or folders of files that end in .slha,
            .slha1, .slha2, .lha or .spc.
        description: Description of the tables.
        output: Table to write, in the format of its ending; a folder if there are several processes.
    """

    spectra: Annotated[list[str], argument("SPECTRA", nargs="+")]
    description: Annotated[str, argument("DESCRIPTION.toml")]
    output: Annotated[str, {"flags": ("-o",), "metavar": "TABLE.csv"}]


def run(args: argparse.Namespace) -> int:
    """Read all spectra, and write a table for each process."""
    if args.output == STREAM:
        raise ValueError("-o must name a file, or a folder for several processes, received '-'.")
    results, tabulations = read_tabulations(args.description)
    inputs = [*args.spectra, args.description, results.file]
    paths = [args.output]
    if len(tabulations) > 1:
        if ending_of(args.output) in ENDINGS[1:]:
            raise ValueError(
                f"-o must name a folder for {len(tabulations)} processes, received {args.output}."
            )
        check_output(args.output, FOLDER)
        os.makedirs(args.output, exist_ok=True)
        paths = [os.path.join(args.output, _name_of(one)) for one in tabulations]
    for path in paths:
        check_output(path, TABLE, inputs)
    spectra = find_spectra(args.spectra)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", DataWarning)
        tables, notes = tabulate(read_spectra(spectra), results, tabulations)
    for text, count in Counter(str(warning.message) for warning in found).most_common():
        say(f"Warning, {count} times: {text}")
    for path, one, table in zip(paths, tabulations, tables):
        _write(path, one, table)
        say(
            f"Wrote {counted(len(table.names), 'row')} to {path}, targets {', '.join(one.targets)}."
        )
        for reason, count in table.left_out.most_common(_MOST_REASONS):
            say(f"  left out {count}: {reason}")
        if more := sum(count for _, count in table.left_out.most_common()[_MOST_REASONS:]):
            say(f"  left out {more} for other reasons")
    for note in notes:
        say(f"Note: {note}")
    return DONE


def _name_of(one: Tabulation) -> str:
    """Return the name of a table among others.

    It does not begin with a minus, which would be taken for an option.
    """
    first, second = sorted(one.pids, key=lambda code: (code < 0, abs(code)))
    return f"{first}_{second}.csv"


def _write(path: str, one: Tabulation, table: Tabulated) -> None:
    texts = {name: column_text(one, name) for name in table.columns}
    comments = [f"{name} = {text}" for name, text in texts.items() if text != name]
    with table_writer(path, [SPECTRUM, *table.columns], comments) as write:
        write(np.column_stack([*table.columns.values()]), [np.array(table.names)])
