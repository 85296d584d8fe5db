"""Options of the commands, made from classes with annotations for values and docstrings for help.

An option for a field of a dataclass, such as `FitOptions`, is passed on only if it is given, so that
the defaults are those of the Python interface.
"""

import argparse
import csv
import inspect
import os
import re
from argparse import SUPPRESS
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, is_dataclass
from types import ModuleType, NoneType
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from tfbnn.cli.parsing import flag
from tfbnn.fit.loading import load
from tfbnn.fit.model import SampledNetwork
from tfbnn.spec.choices import AUTO
from tfbnn.spec.habits import hint
from tfbnn.system.atomic import StrPath

Group: TypeAlias = argparse._ActionsContainer


@dataclass(frozen=True)
class Words:
    """A `type` for argparse that converts known words, which shells can complete.

    Attributes:
        known: The words.
        make: Function that makes the value from a word or another text. None (default): the value is the
            word, and no other text is allowed.
    """

    known: tuple[str, ...]
    make: Callable[[str], Any] | None = None

    def __call__(self, text: str) -> Any:
        """Return the value of a text. Raise argparse.ArgumentTypeError for an invalid one."""
        if self.make is not None:
            try:
                return self.make(text)
            except (TypeError, ValueError) as error:
                raise argparse.ArgumentTypeError(str(error)) from None
        if text not in self.known:
            raise argparse.ArgumentTypeError(
                f"expected one of {', '.join(self.known)}, received {text!r}."
                f"{hint(text, self.known)}"
            )
        return text


# Values.


def comma_list(text: str) -> list[str]:
    """Return the entries of "a,b,c", which may be quoted as in CSV; an empty list for "none" or ""."""
    (cells,) = csv.reader([re.sub(r"[\r\n]", " ", text)], skipinitialspace=True)
    entries = [entry.strip() for entry in cells if entry.strip()]
    return [] if entries == ["none"] else entries


def number(text: str, kind: Callable[[str], Any], wanted: str) -> Any:
    """Return the text as an int or a float; `wanted` is the expectation named in an error."""
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected {wanted}, received {text!r}") from None


def _auto_or_int(text: str) -> str | int:
    return text if text == AUTO else number(text, int, "auto or a whole number")


# Settings of argparse for the types of an annotation besides None; `fit_options` adds more.
ARGUMENTS: dict[tuple[Any, ...], dict[str, Any]] = {
    (int,): {"metavar": "N", "type": int},
    (float,): {"metavar": "X", "type": float},
    (str,): {"metavar": "NAME"},
    (int, str): {"metavar": "N|auto", "type": Words((AUTO,), _auto_or_int)},
    get_args(StrPath): {"metavar": "PATH"},
}
# Beginning of the sentence in which docstrings explain the default None of a setting.
_NONE = "None (default): "


def argument(metavar: str, **more: Any) -> dict[str, Any]:
    """Return the annotation of a positional argument."""
    return {"flags": (), "metavar": metavar, **more}


def add_options(parser: argparse.ArgumentParser, command: ModuleType) -> None:
    """Add the options of a command's module, from its class Options or its `add_options`."""
    if hasattr(command, "Options"):
        add_fields(parser, command.Options)
    else:
        command.add_options(parser)


def add_fields(group: Group, owner: type, names: Iterable[str] = (), text: str = "") -> None:
    """Add an argument or option for each field of a class.

    Args:
        group: Parser or group.
        owner: The class. A dict in an `Annotated` field is passed to argparse.
        names: The fields; by default all, those of base classes first.
        text: Docstring that describes them; by default that of the class that has the field.
    """
    for name in names or get_type_hints(owner):
        found = text or next(c for c in owner.__mro__ if name in inspect.get_annotations(c)).__doc__
        about, default = described(found, name), getattr(owner, name, ...)
        if is_dataclass(owner):
            about += "" if "default" in about else f"; default {default}"
            default = SUPPRESS
        add_option(group, name, argument_of([owner], name), about, default)


def add_option(
    group: Group, name: str, settings: dict[str, Any], text: str, default: Any = SUPPRESS
) -> None:
    """Add an argument or option. It is required if the default is `...`."""
    flags = settings.pop("flags", (flag(name),))
    settings |= {"help": text.replace("%", "%%")}
    if default is not ...:
        settings |= {"default": default} if flags else {"default": default, "nargs": "?"}
    if flags:
        group.add_argument(*flags, dest=name, required=default is ..., **settings)
    else:
        group.add_argument(name, **settings)


def argument_of(owners: Sequence[type], name: str) -> dict[str, Any]:
    """Return the settings for argparse of a field that all given classes declare in the same way."""
    annotation = get_type_hints(owners[0], include_extras=True)[name]
    if get_origin(annotation) is Annotated:
        return dict(annotation.__metadata__[0])
    (kinds,) = {_kinds(owner, name) for owner in owners}
    if bool in kinds:  # "auto" is expressed by leaving the flag out
        off = all(getattr(owner, name) is False for owner in owners)
        return {"action": "store_true" if off else argparse.BooleanOptionalAction}
    if get_origin(kinds[0]) is Literal:
        return {"metavar": "NAME", "type": Words(get_args(kinds[0]))}
    if kinds not in ARGUMENTS:
        raise TypeError(
            f"{owners[0].__name__}.{name} must be annotated as bool, int, float, str, Literal or Kernel, "
            f"or one of them or None, received {annotation}: options are made of it."
        )
    return dict(ARGUMENTS[kinds])


def described(text: str | None, name: str) -> str:
    """Return the first sentence of an entry in a docstring, and the meaning of its default None.

    The text is one line. It is empty under python -OO, which has no docstrings.
    """
    entry = rf"^    {name}: (.*(?:\n        .*)*)"
    found = re.search(entry, inspect.cleandoc(text or ""), re.MULTILINE)
    description = " ".join(found[1].split()) if found else ""
    first, *others = description.removesuffix(".").split(". ")
    meaning = [text.removeprefix(_NONE) for text in others if text.startswith(_NONE)]
    text = "; default: ".join([first, *meaning]).replace("`", "").replace('"', "")
    return text[:1].lower() + text[1:]


def given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return a dict of the options that were given, out of those with these names."""
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def _kinds(owner: type, name: str) -> tuple[Any, ...]:
    """Return the types of a setting besides None."""
    annotation = get_type_hints(owner)[name]
    members = () if get_origin(annotation) is Literal else get_args(annotation)
    return tuple(kind for kind in members or (annotation,) if kind is not NoneType)


# Options that several commands share.


class ModelOptions:
    """Model that a command works on.

    Attributes:
        model: File that 'tfbnn fit' or save() wrote; or the folder of a run, whose draws so far are used.
        trusted: Parse the file without the separate, restricted process that protects from files of
            strangers; only for your own files; saves 0.2 s and allows any size; run folders must always be
            your own.
    """

    model: Annotated[str, argument("MODEL.h5")]
    trusted: bool = False


def load_model(args: argparse.Namespace) -> SampledNetwork:
    """Load the model that the arguments of a `ModelOptions` name."""
    if args.trusted or os.path.isdir(args.model):
        return load(args.model, max_bytes=2**63)
    return load(args.model, untrusted=True)


class RoleOptions(ModelOptions):
    """Names of columns with known targets.

    Attributes:
        target: Target column, once per target in order; default: the name used in the fit.
        noise_column: Column with the known standard deviation of each row; default: as in the fit.
        offset_column: Column with the logarithm of the exposure of each row of counts; default: as in
            the fit.
    """

    target: Annotated[list[str] | None, {"action": "append", "metavar": "COL"}] = None
    noise_column: Annotated[list[str] | None, {"action": "append", "metavar": "COL"}] = None
    offset_column: Annotated[list[str] | None, {"action": "append", "metavar": "COL"}] = None


class RowOptions(RoleOptions):
    """Rows that are optional for a command.

    Attributes:
        data: Rows with known targets: text with a header such as CSV, NPZ, HDF5 or Parquet; '-': text
            from standard input.
    """

    data: Annotated[str | None, argument("DATA")] = None


class ErrorBarOptions:
    """Choice of error bars.

    Attributes:
        uncalibrated: Use the posterior's own error bars, also if the model is calibrated.
    """

    uncalibrated: bool = False


class JsonOptions:
    """Format of results.

    Attributes:
        json: Print JSON.
    """

    json: bool = False


class StrictOptions:
    """Condition under which a command fails.

    Attributes:
        strict: Exit with code 3 unless the verdict is 'usable for error bars'.
    """

    strict: bool = False


class SavingOptions(JsonOptions):
    """Output of a command that makes a model from another one.

    Attributes:
        output: Model file to write.
    """

    output: Annotated[str, {"flags": ("-o",), "metavar": "OUT.h5"}]


class ResultOptions(StrictOptions, JsonOptions):
    """Output and verdict of a run.

    Attributes:
        model_file: Model file to write at the end; it is not the run folder.
    """

    model_file: Annotated[str | None, {"flags": ("-o",), "metavar": "MODEL.h5"}] = None
