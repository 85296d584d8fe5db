"""All commands, and how one ends: exit codes, messages, signals."""

import contextlib
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from tfbnn.cli import (
    calibrate,
    completion,
    demo,
    diagnose,
    evaluate,
    fit,
    info,
    plot,
    predict,
    report,
    resuming,
)
from tfbnn.cli.console import BAD_INPUT, FAILED, STOPPED, say
from tfbnn.cli.derived import compress, export, stack
from tfbnn.cli.parsing import Parser, parse
from tfbnn.cli.slha import command as slha
from tfbnn.exceptions import ChainError
from tfbnn.system.aside import exit_at_once
from tfbnn.system.signals import ignore_signals, signals_held
from tfbnn.system.streams import open_standard_streams, plain_standard_output
from tfbnn.system.version import __version__

_COMMANDS: dict[str, ModuleType] = {
    "demo": demo,
    "fit": fit,
    "predict": predict,
    "evaluate": evaluate,
    "calibrate": calibrate,
    "diagnose": diagnose,
    "plot": plot,
    "report": report,
    "info": info,
    "resume": resuming,
    "compress": compress,
    "stack": stack,
    "export": export,
    "completion": completion,
    "slha": slha,
}
_MAX_LINES, _MAX_CHARACTERS = 3, 1000

_DESCRIPTION = """\
Bayesian neural networks whose posterior is sampled by Markov chain Monte Carlo: every prediction
comes with an error bar. New here? Try: tfbnn demo"""

_EPILOG = """\
example:
  tfbnn fit train.csv --target xsec_fb --layers 20,20 --y-transform log10,standardize -o bnn.h5
  tfbnn evaluate bnn.h5 test.csv
  tfbnn predict bnn.h5 points.csv --quantiles 0.16,0.5,0.84 -o out.csv

exit codes:
  0   done
  1   a chain failed
  2   bad input
  3   ended without draws, or with --strict and not usable for error bars
  85  stopped by SIGINT or SIGTERM, and with a run folder resumable"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: Arguments after the program's name; those of the process by default.

    Returns:
        The exit code.
    """
    open_standard_streams()
    with signals_held() as hold, plain_standard_output(), warnings.catch_warnings():
        # Ours are UserWarnings: always worth a line here, whatever PYTHONWARNINGS says.
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _warning_printer()
        try:
            with hold.lifted():
                code = _run(sys.argv[1:] if argv is None else argv)
        except KeyboardInterrupt:
            say("Stopped.")
            code = STOPPED
    if argv is None:
        # Libraries take seconds to unload, longer under a call that was left; a second signal then
        # would be told as another end.
        ignore_signals()
        if code == STOPPED:
            exit_at_once(code)
    return code


def _run(argv: Sequence[str]) -> int:
    try:
        args = parse(*parsers(), argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    if args.command == "fit":
        args.fitted_by = shlex.join(["tfbnn", *argv])
    code: int = 0
    try:
        code = args.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough.
        _close_standard_output()
        return code
    except (TypeError, ValueError, ImportError, OSError, ChainError) as error:
        if args.traceback:
            raise
        say(_shorten(f"tfbnn {args.command}: error: {_text(error)}"))
        return FAILED if isinstance(error, ChainError) else BAD_INPUT


def parsers() -> tuple[Parser, dict[str, Parser]]:
    """The parser of the program, and those of its commands."""
    parser = Parser(prog="tfbnn", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"tfbnn {__version__}")
    parser.add_argument(
        "--traceback", action="store_true", help="show where an error came from, for bug reports"
    )
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True
    )
    for name, module in _COMMANDS.items():
        texts = {"description": module.DESCRIPTION, "epilog": vars(module).get("EPILOG")}
        command = commands.add_parser(name, help=module.HELP, **texts)
        module.add_options(command)
        command.set_defaults(run=module.run)
    parser.set_defaults(program=parser)  # `completion` is about all of it
    return parser, commands.choices


def _text(error: Exception) -> str:
    # An OSError knows its file; its plain text is "[Errno 13] Permission denied: 'x'".
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _shorten(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    text = "\n".join(lines[:_MAX_LINES])
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 4] + " ..."


def _warning_printer() -> Callable[..., None]:
    """A `warnings.showwarning` that prints one line, once per text, without Python source."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            say(f"Warning: {text}")

    return show


def _close_standard_output() -> None:
    # Otherwise Python complains when it flushes the broken pipe at exit.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
