"""Print a script that lets a shell complete commands, options, their values and file names.

Printing needs the package shtab (tfbnn[completion]), the script itself needs nothing. Print it anew after
an update.

examples:
  tfbnn completion bash > ~/.local/share/bash-completion/completions/tfbnn
  tfbnn completion zsh > ~/.zfunc/_tfbnn       # with fpath+=~/.zfunc before compinit in ~/.zshrc
  tfbnn completion tcsh > ~/.complete-tfbnn     # with source ~/.complete-tfbnn in ~/.tcshrc
"""

import argparse
from collections.abc import Iterator
from typing import Annotated

from tfbnn.cli.arguments import Words
from tfbnn.cli.console import DONE
from tfbnn.cli.parsing import Parser
from tfbnn.system.words import required


class Options:
    """Options of the command.

    Attributes:
        shell: Shell for which the script is made.
    """

    shell: Annotated[str, {"flags": (), "choices": ["bash", "zsh", "tcsh"]}]


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    shtab = required("shtab", "Completion needs the package shtab", "completion")
    from tfbnn.cli.app import parsers  # avoids a circular import

    program, _ = parsers()
    for action in all_actions(program):
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:  # zsh would show the long description
                action.choices[choice.dest].description = choice.help
        if isinstance(action.type, Words):
            action.choices = action.type.known
        elif action.choices is None and action.nargs != 0:  # most such values are paths
            vars(action)["complete"] = shtab.FILE
    print(shtab.complete(program, shell=args.shell))
    return DONE


def all_actions(parser: Parser) -> Iterator[argparse.Action]:
    """Yield the arguments and options of a parser, and of those of its commands."""
    yield from parser._actions
    for command in parser.commands.values():
        yield from all_actions(command)
