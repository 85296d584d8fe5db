"""Options that several commands have, and the model that one of them names."""

import argparse
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tfbnn.fit.model import BayesianMLP, load

Group: TypeAlias = argparse._ActionsContainer

DATA = "text with a header such as CSV, NPZ, HDF5 or Parquet; '-': text from standard input"


@dataclass(frozen=True)
class Option:
    """An option that is passed on only where it is given.

    Attributes:
        name: Of the argument that it stands for.
        text: What it is.
        metavar: What its value is called.
        kind: Makes the value of the text that is given.
        action: Of argparse, for an option without a value.
    """

    name: str
    text: str
    metavar: str | None = None
    kind: Callable[[str], Any] = str
    action: Any = None

    def add(self, group: Group) -> None:
        """Adds it to a parser or group."""
        value: dict[str, Any] = {"metavar": self.metavar, "type": self.kind}
        value = {"action": self.action} if self.action else value
        text = self.text.replace("%", "%%")
        group.add_argument(flag(self.name), default=argparse.SUPPRESS, help=text, **value)


def add_all(group: Group, options: Iterable[Option]) -> None:
    """Adds options in their order."""
    for option in options:
        option.add(group)


def given(args: argparse.Namespace, options: Iterable[Option | str]) -> dict[str, Any]:
    """Dict of those of the options, or names of options, that were given."""
    names = [option if isinstance(option, str) else option.name for option in options]
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def flag(name: str) -> str:
    """The option of a setting."""
    return "--" + name.replace("_", "-")


def add_model_argument(parser: Group) -> None:
    """Adds MODEL.h5 and --trusted."""
    parser.add_argument(
        "model",
        metavar="MODEL.h5",
        help="file that 'tfbnn fit' or save() wrote; or the folder of a run, for the draws that it "
        "has committed so far",
    )
    parser.add_argument(
        "--trusted",
        action="store_true",
        help="the model file is your own: read it in this process, whatever its size, 0.2 s "
        "faster; default: a separate, restricted process parses it; run folders are always your "
        "own",
    )


def add_uncalibrated_option(parser: Group) -> None:
    """Adds --uncalibrated."""
    parser.add_argument(
        "--uncalibrated",
        action="store_true",
        help="error bars of the posterior, although the model is calibrated",
    )


def load_model(args: argparse.Namespace) -> BayesianMLP:
    """The model that the arguments name."""
    if args.trusted or os.path.isdir(args.model):
        return load(args.model, max_bytes=2**63)
    return load(args.model, untrusted=True)


def add_role_options(parser: Group) -> None:
    """Adds --target and --noise-column, as `evaluate` and `plot` have them."""
    parser.add_argument(
        "--target",
        action="append",
        metavar="COL",
        help="target column, once per target in order; default: the name used in the fit",
    )
    parser.add_argument(
        "--noise-column",
        action="append",
        metavar="COL",
        help="column with the known standard deviation of each row; default: as in the fit",
    )


def add_results_options(group: Group) -> None:
    """Adds -o, --json and --strict, as `fit` and `resume` have them."""
    group.add_argument(
        "-o", dest="model_file", metavar="MODEL.h5", help="where to save the fitted model"
    )
    group.add_argument("--json", action="store_true", help="print the report as JSON")
    add_strict_option(group)


def add_strict_option(group: Group) -> None:
    """Adds --strict."""
    group.add_argument(
        "--strict",
        action="store_true",
        help="exit with 3 unless the verdict is: usable for error bars",
    )


def comma_list(text: str) -> list[str]:
    """The entries of "a,b,c"; none for "none" or ""."""
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    return [] if entries == ["none"] else entries


def auto_or_int(text: str) -> str | int:
    """A whole number, or "auto"."""
    return text if text == "auto" else number(text, int, "auto or a whole number")


def number(text: str, kind: Callable[[str], Any], wanted: str) -> Any:
    """The text as an int or a float; `wanted` says in the refusal what was expected."""
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected {wanted}, received {text!r}") from None
