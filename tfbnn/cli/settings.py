"""Options made of settings: a field's annotation says what its value is, a docstring what it does."""

import argparse
import inspect
import re
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, get_args, get_type_hints

from tfbnn.cli.options import Option, auto_or_int
from tfbnn.engine.kernels.base import Kernel
from tfbnn.run.until import Until, until_of_text
from tfbnn.system.paths import StrPath


def _until(text: str) -> Until | str | None:
    try:
        return until_of_text(text)
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


# For the types that an annotation allows besides None: what a value is called, and what makes it.
_VALUES: dict[tuple[Any, ...], tuple[str, Callable[[str], Any]]] = {
    (int,): ("N", int),
    (float,): ("X", float),
    (str,): ("NAME", str),
    (int, str): ("N|auto", auto_or_int),
    get_args(StrPath): ("PATH", str),
    (Kernel,): ("NAME", str),
    (Until, str): ("ess=X,rhat=X,...", _until),
}
# What the docstrings say of settings whose default is None, in a sentence of its own.
_NONE = "None (default): "


def field_options(owner: type, text: str | None, names: Iterable[str]) -> list[Option]:
    """Options of fields of a dataclass, with their defaults.

    Args:
        owner: The dataclass.
        text: Docstring that describes the fields.
        names: The fields.
    """
    options = []
    for name in names:
        help_text = described(text, name)
        if "default" not in help_text:
            help_text += f"; default {getattr(owner, name)}"
        options.append(field_option([owner], name, help_text))
    return options


def field_option(owners: Iterable[type], name: str, text: str) -> Option:
    """The option, with the help `text`, of a field that dataclasses declare alike."""
    (kinds,) = {_kinds(owner, name) for owner in owners}
    if kinds == (bool,):
        off = all(getattr(owner, name) is False for owner in owners)
        return Option(name, text, action="store_true" if off else argparse.BooleanOptionalAction)
    if kinds == (Kernel,):
        text += "; its options are taken as well"
    return Option(name, text, *_VALUES[kinds])


def described(text: str | None, name: str) -> str:
    """What a docstring says first of an argument or attribute, and what its default None means.

    In one line; python -OO has no docstrings.
    """
    entry = rf"^    {name}: (.*(?:\n        .*)*)"
    found = re.search(entry, inspect.cleandoc(text or ""), re.MULTILINE)
    description = " ".join(found[1].split()) if found else ""
    first, *others = description.removesuffix(".").split(". ")
    meaning = [text.removeprefix(_NONE) for text in others if text.startswith(_NONE)]
    text = "; default: ".join([first, *meaning]).replace("`", "").replace('"', "")
    return text[:1].lower() + text[1:]


def _kinds(owner: type, name: str) -> tuple[Any, ...]:
    """The types of a setting besides None."""
    annotation = get_type_hints(owner)[name]
    kinds = tuple(kind for kind in get_args(annotation) or (annotation,) if kind is not NoneType)
    if kinds == (bool, str):  # "auto" is an option that is not given
        kinds = (bool,)
    if kinds != (bool,) and kinds not in _VALUES:
        raise TypeError(
            f"{owner.__name__}.{name} must be annotated as bool, int, float, str or Kernel, or one "
            f"of them or None, received {annotation}: options are made of it."
        )
    return kinds
