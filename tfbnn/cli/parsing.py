"""The parser of the command line: errors in two lines, which say what may have been meant."""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NoReturn

from tfbnn.cli.console import BAD_INPUT, say
from tfbnn.cli.help_text import HelpFormatter
from tfbnn.cli.options import flag
from tfbnn.spec.habits import CALLED, hint
from tfbnn.system.words import did_you_mean


class Parser(argparse.ArgumentParser):
    """Errors take two lines, not the whole usage; options are never guessed from their start."""

    def __init__(self, **settings: Any):
        settings.setdefault("formatter_class", HelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    @property
    def commands(self) -> dict[str, "Parser"]:
        """The parsers of its own commands by their names, if it has any."""
        found = (act for act in self._actions if isinstance(act, argparse._SubParsersAction))
        return {name: parser for action in found for name, parser in action.choices.items()}

    def error(self, message: str) -> NoReturn:
        say(f"{self.prog}: error: {message}\nTry '{self.prog} --help'.")
        raise SystemExit(BAD_INPUT)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # Commands and choices; argparse itself makes suggestions from Python 3.14 on.
        choices = [*map(str, action.choices or ())]
        if choices and value not in choices:
            raise argparse.ArgumentError(
                action,
                f"invalid choice: {value!r}.{did_you_mean(value, choices)} Choose from "
                f"{', '.join(choices)}.",
            )


def parse(
    parser: Parser, commands: Mapping[str, Parser], argv: Sequence[str]
) -> argparse.Namespace:
    """The parsed arguments.

    Args:
        parser: The parser of all commands.
        commands: Their own parsers by their names.
        argv: Arguments after the program's name.

    Raises:
        SystemExit: For a bad command line, after saying what is wrong with it, in the name of the
            command that was given; and after --help.
    """
    command, rest = _innermost(commands, argv)
    return _parsed(parser, argv, command or parser, rest)


def parse_options(command: Parser, argv: Sequence[str]) -> argparse.Namespace:
    """The parsed arguments of one command, without its name; raises as `parse`."""
    return _parsed(command, argv, command, argv)


def _parsed(
    parser: Parser, argv: Sequence[str], command: Parser, rest: Sequence[str]
) -> argparse.Namespace:
    # First, because one that is misspelt may be missing as well.
    for text in takewhile("--".__ne__, rest):
        _check_option(command, text.partition("=")[0])
    args, unknown = parser.parse_known_args(argv)
    unknown = _into_list(command, args, unknown)
    if unknown:
        command.error(_complaint(command, argv, unknown))
    return args


def _into_list(command: Parser, args: argparse.Namespace, unknown: list[str]) -> list[str]:
    """Adds arguments to a list of the command's, which ends for argparse at the first option.

    Returns:
        Those that are none.
    """
    lists = [act for act in command._actions if not act.option_strings and act.nargs == "*"]
    if not lists:
        return unknown
    getattr(args, lists[0].dest).extend(text for text in unknown if not text.startswith("-"))
    return [text for text in unknown if text.startswith("-")]


def _innermost(
    commands: Mapping[str, Parser], argv: Sequence[str]
) -> tuple[Parser | None, Sequence[str]]:
    """The parser of the command that was given, or of one of its own, and what follows its name."""
    place = next((place for place, text in enumerate(argv) if text in commands), None)
    if place is None:
        return None, ()
    command, rest = commands[argv[place]], argv[place + 1 :]
    inner, behind = _innermost(command.commands, rest)
    return (command, rest) if inner is None else (inner, behind)


def _check_option(command: Parser, name: str) -> None:
    options = command._option_string_actions
    if name.startswith("--") and name not in options:
        asked = name.removeprefix("--").replace("-", "_")
        here = flag(CALLED.get(asked, asked))
        meant = did_you_mean(here, options) if here in options else hint(asked)
        command.error(f"unknown option {name}.{meant or did_you_mean(name, options)}")


def _complaint(command: Parser, argv: Sequence[str], unknown: Sequence[str]) -> str:
    """What to say of arguments that a command does not know."""
    for option, entries in _lists(command._option_string_actions, argv):
        if len(entries) > 1:
            return f"{option} takes one list, with commas: {option} {','.join(entries)}."
    return f"unexpected argument {unknown[0]!r}."


def _lists(
    options: dict[str, argparse.Action], argv: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yields, for options that take a list, what follows them that its entries may be."""
    for place, option in enumerate(argv):
        action = options.get(option)
        if action is None or "," not in str(action.metavar) or not callable(action.type):
            continue
        entries = []
        for text in argv[place + 1 :]:
            if text.startswith("-") or os.path.exists(text):
                break
            try:
                action.type(text)
            except (ValueError, argparse.ArgumentTypeError):
                break
            entries.append(text)
        yield option, entries
