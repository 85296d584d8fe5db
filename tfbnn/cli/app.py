"""Bayesian neural networks whose posterior is sampled by Markov chain Monte Carlo.

Every prediction comes with an error bar. New here? Try: tfbnn demo

example:
  tfbnn fit train.csv --target xsec_fb --layers 20,20 --y-transform log10,standardize -o bnn.h5
  tfbnn evaluate bnn.h5 test.csv
  tfbnn predict bnn.h5 points.csv --quantiles 0.16,0.5,0.84 -o out.csv

exit codes:
  0   done
  1   a chain failed
  2   bad input
  3   no draws; or, with --strict, a verdict other than "usable for error bars"
  85  stopped by SIGINT or SIGTERM; a run with a folder can be resumed
"""

# The docstrings of this module and of the command modules are the texts of --help.

import contextlib
import importlib
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tfbnn.cli.console import BAD_INPUT, FAILED, STOPPED, say
from tfbnn.cli.parsing import Parser, parse, texts_of
from tfbnn.exceptions import ChainError
from tfbnn.system.signals import ignore_signals, signals_held
from tfbnn.system.terminals import open_standard_streams, plain_standard_output
from tfbnn.system.threads import exit_at_once
from tfbnn.system.version import __version__

# Commands and their descriptions. Each command is in the module of its name.
_COMMANDS = {
    "demo": "fit, test and plot generated data, in a minute or two",
    "fit": "fit a network to a table: sample its posterior",
    "predict": "predict with error bars for a table of points",
    "evaluate": "score a saved model on rows with known targets",
    "calibrate": "calibrate error bars, so that they hold as often as they claim",
    "diagnose": "check whether the chains of a saved model have converged",
    "plot": "draw figures of a saved model",
    "report": "write a report as one HTML page",
    "info": "show the contents of a model file",
    "resume": "continue a run from its folder",
    "compress": "make a smaller model that predicts about the same",
    "stack": "weight chains by how well they predict held-out rows",
    "export": "write a saved model as ONNX or SavedModel",
    "completion": "let the shell complete commands and options",
    "slha": "predict cross sections of SLHA spectra: make and evaluate folders of networks",
}
_MAX_LINES, _MAX_CHARACTERS = 3, 1000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments after the program's name; by default those of the process.

    Returns:
        The exit code.
    """
    open_standard_streams()
    with signals_held() as hold, plain_standard_output(), warnings.catch_warnings():
        # Warnings of tfbnn are UserWarnings. They are always shown, whatever PYTHONWARNINGS is.
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _warning_printer()
        try:
            with hold.lifted():
                code = run_command(sys.argv[1:] if argv is None else argv)
        except KeyboardInterrupt:
            say("Stopped.")
            code = STOPPED
    if argv is None:
        # Libraries take seconds to unload, and longer if a call was abandoned. A second signal during this
        # time would change the exit code.
        ignore_signals()
        if code == STOPPED:
            exit_at_once(code)
    return code


def run_command(argv: Sequence[str]) -> int:
    """Run one command like `main`, without its handling of signals, warnings and streams."""
    try:
        args = parse(parsers(argv)[0], argv)
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
        # The reader, such as `head`, has closed the pipe. Python would report an error at exit, when it
        # flushes the broken pipe.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code
    except (TypeError, ValueError, ImportError, OSError, ChainError) as error:
        if args.traceback:
            raise
        say(_shorten(f"tfbnn {args.command}: error: {_text(error)}"))
        return FAILED if isinstance(error, ChainError) else BAD_INPUT


def parsers(argv: Sequence[str] | None = None) -> tuple[Parser, dict[str, Parser]]:
    """Return the parser of the program, and those of its commands.

    Args:
        argv: Arguments. Only the command that they name is imported and gets its options. None: all.
    """
    parser = Parser(prog="tfbnn", **texts_of(__doc__))
    parser.add_argument("--version", action="version", version=f"tfbnn {__version__}")
    parser.add_argument(
        "--traceback", action="store_true", help="show where an error came from, for bug reports"
    )
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True
    )
    named = next(filter(_COMMANDS.__contains__, argv or ()), None)
    for name, text in _COMMANDS.items():
        if argv is None or name == named:
            module_name = "slha.command" if name == "slha" else name
            module = importlib.import_module(f"tfbnn.cli.{module_name}")
            from tfbnn.cli.arguments import add_options  # keeps --help fast

            command = commands.add_parser(name, help=text, **texts_of(module.__doc__))
            add_options(command, module)
            command.set_defaults(run=vars(module).get("run"))  # slha has several
        else:
            commands.add_parser(name, help=text)
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
    """Return a `warnings.showwarning` that prints each text once, in one line and without source code."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            say(f"Warning: {text}")

    return show
