"""Prints the reference of the command line in Markdown, made of the parsers themselves.

python docs/command_reference.py > commands.md
"""

import argparse
import re
from collections.abc import Iterator
from functools import partial

from tfbnn.cli.app import parsers
from tfbnn.cli.parsing import HelpFormatter

# Characters of a line in the blocks of usage.
_WIDTH = 90
# What Markdown would take for itself.
_MARKUP = re.compile(r"[\\`*<\[|]")
# Options and commands within a sentence: a code span keeps their hyphens and quotes as they are.
_CODE = re.compile(r"'(tfbnn [^']*)'|(?<![\w-])(--?[a-z][\w-]*)")


def markdown() -> str:
    """The reference: what the program has, then a section for each command, inner ones after theirs."""
    program, _ = parsers()
    return "\n".join(["# Command reference", "", *_body(program)])


def _body(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The lines on a program or command under its heading, and the sections of its commands."""
    yield from (*_paragraphs(parser.description), *_usage(parser))
    commands = [one for action in _subcommands(parser) for one in action.choices.values()]
    helps = [one.help for action in _subcommands(parser) for one in action._choices_actions]
    if commands:
        yield from ("| command | what it does |", "| --- | --- |")
        for command, text in zip(commands, helps):
            yield f"| [`{command.prog}`](#{_target(command)}) | {_sentence(str(text))} |"
        yield ""
    yield from (*_options(parser), *_block(parser.epilog))
    for command in commands:
        yield from (f"({_target(command)})=", f"## {command.prog}", "", *_body(command))


def _target(parser: argparse.ArgumentParser) -> str:
    """Return the link target of the section of a command name."""
    return parser.prog.replace(" ", "-")


def _subcommands(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction]:
    return [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]


def _usage(parser: argparse.ArgumentParser) -> Iterator[str]:
    parser.formatter_class = partial(HelpFormatter, width=_WIDTH)
    yield from _block(parser.format_usage().removeprefix("usage: "))


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """A list of arguments and options for each group that has any."""
    formatter = parser._get_formatter()
    for group in parser._action_groups:
        shown = [
            action
            for action in group._group_actions
            if action.help != argparse.SUPPRESS and action not in _subcommands(parser)
        ]
        if shown:
            yield from (f"**{group.title}**", "")
        for action in shown:
            text = _sentence(formatter._expand_help(action)) if action.help else ""
            yield f"- `{formatter._format_action_invocation(action)}`: {text}"
        if shown:
            yield ""


def _paragraphs(text: str | None) -> Iterator[str]:
    for paragraph in (text or "").split("\n\n"):
        yield from (_sentence(" ".join(paragraph.split())), "")


def _sentence(text: str) -> str:
    """Text with what Markdown would take for itself escaped, and commands and options as code."""
    parts, end = [], 0
    for found in _CODE.finditer(text):
        parts += [_MARKUP.sub(r"\\\g<0>", text[end : found.start()]), f"`{found[1] or found[2]}`"]
        end = found.end()
    return "".join([*parts, _MARKUP.sub(r"\\\g<0>", text[end:])])


def _block(text: str | None) -> Iterator[str]:
    if text:
        yield from ("```text", *text.strip("\n").splitlines(), "```", "")


if __name__ == "__main__":
    print(markdown())
