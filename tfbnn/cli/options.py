"""Options that several commands have, and the model that one of them names."""

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tfbnn.fit.model import SampledNetwork, load
from tfbnn.system.words import did_you_mean

Group: TypeAlias = argparse._ActionsContainer

DATA = "text with a header such as CSV, NPZ, HDF5 or Parquet; '-': text from standard input"


@dataclass(frozen=True)
class Words:
    """A `type` of argparse that knows words: it makes a value of them, and shells complete them.

    Attributes:
        known: The words.
        make: Makes the value, of these words or of what else it may be; None (default): the value is
            the word, and there are no others.
    """

    known: tuple[str, ...]
    make: Callable[[str], Any] | None = None

    def __call__(self, text: str) -> Any:
        """The value of a text. Raises argparse.ArgumentTypeError for one that has none."""
        if self.make is not None:
            return self.make(text)
        if text not in self.known:
            raise unknown_word(text, self.known)
        return text


def unknown_word(text: str, known: Sequence[str]) -> argparse.ArgumentTypeError:
    """The error for a word that is none of those known."""
    return argparse.ArgumentTypeError(
        f"expected one of {', '.join(known)}, received {text!r}.{did_you_mean(text, known)}"
    )


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


def load_model(args: argparse.Namespace) -> SampledNetwork:
    """The model that the arguments name."""
    if args.trusted or os.path.isdir(args.model):
        return load(args.model, max_bytes=2**63)
    return load(args.model, untrusted=True)


def add_unit_option(parser: Group) -> None:
    """Adds --unit, as what draws has it."""
    parser.add_argument(
        "--unit",
        action="append",
        metavar="UNIT",
        help="unit of the target, for figures; of several targets once for each; default: what "
        "their names say, as in xsec_fb or 'm [GeV]'",
    )


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
