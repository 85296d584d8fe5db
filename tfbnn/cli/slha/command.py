"""Make and evaluate folders of networks for the cross sections of new-physics models.

'make' fits one network per process and puts them into a folder with what they mean; 'eval' reads SLHA
spectra, or a table of points, and gives the cross sections of all processes with errors and trust. Python
and GAMBIT read the same folder by tfbnn.hep.CrossSectionPredictor.
"""

import argparse
from types import ModuleType

from tfbnn.cli.slha import evaluation, info, make

_COMMANDS: dict[str, ModuleType] = {"make": make, "info": info, "eval": evaluation}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the commands, each with its options."""
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="slha_command", required=True
    )
    for name, module in _COMMANDS.items():
        texts = {"description": module.DESCRIPTION, "epilog": module.EPILOG}
        command = commands.add_parser(name, help=module.HELP, **texts)
        module.add_options(command)
        command.set_defaults(command=f"slha {name}")  # as messages name it


def run(args: argparse.Namespace) -> int:
    """Runs the one that was given."""
    code: int = _COMMANDS[args.slha_command].run(args)
    return code
