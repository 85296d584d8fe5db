"""Options made of settings: a field's annotation says what its value is, a docstring what it does."""

import argparse
import inspect
import re
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tfbnn.cli.options import Option, Words, auto_or_int, unknown_word
from tfbnn.engine.kernels import available, kernel_named
from tfbnn.engine.kernels.base import Kernel
from tfbnn.run.until import Until, until_of_text
from tfbnn.spec.choices import AUTO
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
    (int, str): ("N|auto", Words((AUTO,), auto_or_int)),
    get_args(StrPath): ("PATH", str),
    (Until, str): ("ess=X,rhat=X,...", Words((AUTO, "none"), _until)),
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
        return Option(name, f"{text}; its options are taken as well", "NAME", kernel_words())
    if _has_words(kinds[0]):
        return Option(name, text, "NAME", Words(get_args(kinds[0])))
    return Option(name, text, *_VALUES[kinds])


def kernel_words(*others: str) -> Words:
    """The names of kernels, and others; names of their classes will do as well."""
    known = (*others, *available())

    def make(text: str) -> str:
        if text not in others and kernel_named(text) is None:
            raise unknown_word(text, known)
        return text

    return Words(known, make)


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
    members = () if _has_words(annotation) else get_args(annotation)
    kinds = tuple(kind for kind in members or (annotation,) if kind is not NoneType)
    if kinds == (bool, str):  # "auto" is an option that is not given
        kinds = (bool,)
    if kinds not in (*_VALUES, (bool,), (Kernel,)) and not (
        len(kinds) == 1 and _has_words(kinds[0])
    ):
        raise TypeError(
            f"{owner.__name__}.{name} must be annotated as bool, int, float, str, Literal or Kernel, "
            f"or one of them or None, received {annotation}: options are made of it."
        )
    return kinds


def _has_words(annotation: Any) -> bool:
    """Whether it is a Literal, whose arguments are words, not types."""
    return get_origin(annotation) is Literal
