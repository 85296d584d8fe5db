"""Make and evaluate folders of networks for the cross sections of new-physics models.

'table' makes the training tables, to which 'tfbnn fit' fits networks. 'make' packs these networks, one per
process, into a folder. 'eval' reads SLHA spectra, or a table of points, and gives the cross sections of all processes
with errors and trust. 'next' selects the points to compute next. Python and GAMBIT read the same folder
with tfbnn.hep.CrossSectionPredictor.
"""

import argparse
from types import ModuleType

from tfbnn.cli import arguments
from tfbnn.cli.parsing import texts_of
from tfbnn.cli.slha import evaluation, info, make, next, table

# Commands with their descriptions and modules.
_COMMANDS: dict[str, tuple[str, ModuleType]] = {
    "table": ("make training tables from spectra and calculated cross sections", table),
    "make": ("make a folder of processes from fitted models", make),
    "info": ("show the processes of a folder and their inputs", info),
    "eval": ("predict cross sections of SLHA spectra, or of a table of points", evaluation),
    "next": ("select points to compute next, where errors are largest", next),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the commands, each with its options."""
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="slha_command", required=True
    )
    for name, (text, module) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, **texts_of(module.__doc__))
        arguments.add_options(command, module)
        # Messages name the command in this form.
        command.set_defaults(command=f"slha {name}", run=module.run)
