"""The parser of the command line, with errors of two lines that suggest corrections."""

import argparse
import inspect
import re
import textwrap
from collections.abc import Sequence
from itertools import groupby, takewhile
from typing import Any, NoReturn

from tfbnn.cli.console import BAD_INPUT, say
from tfbnn.spec.habits import CALLED, HINTS, hint
from tfbnn.system.words import did_you_mean


class HelpFormatter(argparse.HelpFormatter):
    """Fills descriptions as argparse does, but leaves empty and indented lines unchanged."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        for stays, found in groupby(text.splitlines(), lambda line: line[:1] in ("", " ")):
            block = list(found)
            lines += block if stays else textwrap.wrap(" ".join(block), width)
        return textwrap.indent("\n".join(lines), indent)


class Parser(argparse.ArgumentParser):
    """Argument parser with errors of two lines and without abbreviated options."""

    def __init__(self, **settings: Any):
        super().__init__(allow_abbrev=False, formatter_class=HelpFormatter, **settings)
        # A pair of PDG codes, -1000024,1000022, is no option, as in Python 3.14.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    @property
    def commands(self) -> dict[str, "Parser"]:
        """The parsers of its commands by name; empty without commands."""
        found = (act for act in self._actions if isinstance(act, argparse._SubParsersAction))
        return {name: parser for action in found for name, parser in action.choices.items()}

    def error(self, message: str) -> NoReturn:
        say(f"{self.prog}: error: {message}\nTry '{self.prog} --help'.")
        raise SystemExit(BAD_INPUT)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # Checks commands and choices. From Python 3.14 on, argparse itself makes suggestions.
        choices = [*map(str, action.choices or ())]
        if choices and value not in choices:
            raise argparse.ArgumentError(
                action,
                f"invalid choice: {value!r}.{hint(value, choices)} Choose from "
                f"{', '.join(choices)}.",
            )


def flag(name: str) -> str:
    """Return the command-line option of a setting."""
    return "--" + name.replace("_", "-")


def texts_of(docstring: str | None) -> dict[str, Any]:
    """Split a docstring for argparse into description and epilog, which begins at the examples."""
    description, example, rest = inspect.cleandoc(docstring or "").partition("\n\nexample")
    return {"description": description, "epilog": (example + rest).strip()}


def parse(parser: Parser, argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments.

    Args:
        parser: The parser of the program, or of one command.
        argv: Arguments after its name.

    Raises:
        SystemExit: For a bad command line, after printing the error in the name of the given command; and
            after --help.
    """
    command, rest = parser, argv
    while named := set(command.commands).intersection(rest):
        index = min(map(rest.index, named))
        command, rest = command.commands[rest[index]], rest[index + 1 :]
    # This is checked first, because a misspelt option may also be reported as missing.
    for text in [] if command is parser and command.commands else takewhile("--".__ne__, rest):
        _check_option(command, text.partition("=")[0])
    args, unknown = parser.parse_known_args(argv)
    # argparse ends a list of arguments at the first option.
    for action in command._actions:
        if not action.option_strings and action.nargs == "*":
            getattr(args, action.dest).extend(t for t in unknown if not t.startswith("-"))
            unknown = [text for text in unknown if text.startswith("-")]
        if not action.option_strings and action.nargs == "?" and unknown:
            if getattr(args, action.dest) is None and not unknown[0].startswith("-"):
                setattr(args, action.dest, unknown.pop(0))
    if unknown:
        command.error(
            f"unexpected argument {unknown[0]!r}. Separate the entries of a list by commas."
        )
    return args


def _check_option(command: Parser, name: str) -> None:
    options = command._option_string_actions
    if name.startswith("--") and name not in options:
        asked = name.removeprefix("--").replace("-", "_")
        here = flag(CALLED.get(asked, asked))
        meant = did_you_mean(here, options) if here in options else hint(asked)
        if asked in HINTS and here not in options:
            from tfbnn.diagnostics.problem import on_command_line  # keeps --help fast

            meant = on_command_line(meant)
        command.error(f"unknown option {name}.{meant or did_you_mean(name, options)}")
