"""The options of `tfbnn fit` for kernels, and the settings that they stand for.

Every field of a kernel's settings is an option. Its type and the first sentence of what the class's
docstring says of it make the option and its help.
"""

import argparse
import dataclasses
import inspect
import re
from types import NoneType
from typing import Any, get_args, get_type_hints

from tfbnn.cli.options import flag, given
from tfbnn.engine.kernels import available, resolve_kernel
from tfbnn.engine.kernels.base import KERNELS, Kernel
from tfbnn.engine.kernels.composed import ComposedKernel
from tfbnn.engine.kernels.tuned import TunedKernel

_METAVARS = {int: "N", float: "X", str: "NAME", Kernel: "NAME"}
# What the docstrings say of settings whose default is None, in a sentence of its own.
_NONE = "None (default): "


def add_kernel_options(group: argparse._ArgumentGroup) -> None:
    """Adds --kernel and the settings of all kernels."""
    names = ", ".join(available())
    group.add_argument("--kernel", default="nuts", metavar="NAME", help=f"{names}; default nuts")
    for name, owners in _settings().items():
        (kind,) = {_kind(owner, name) for owner in owners}
        options: dict[str, Any] = {"type": str if kind is Kernel else kind}
        if kind is bool:
            off = all(getattr(owner, name) is False for owner in owners)
            options = {"action": "store_true" if off else argparse.BooleanOptionalAction}
        else:
            options["metavar"] = _METAVARS[kind]
        text = _help(name, owners) + ("; its options are taken as well" if kind is Kernel else "")
        group.add_argument(flag(name), default=argparse.SUPPRESS, help=text, **options)


def kernel_argument(args: argparse.Namespace) -> dict[str, Kernel]:
    """{"kernel": settings}."""
    settings, asked = resolve_kernel(args.kernel), given(args, _settings())
    known = _field_names(settings)
    if isinstance(settings, ComposedKernel):
        inner = resolve_kernel(asked.get("inner", settings.inner))
        known_inside = _field_names(inner)
        inside = {name: asked.pop(name) for name in list(asked) if name in known_inside - known}
        asked["inner"] = dataclasses.replace(inner, **inside)
        known |= known_inside
    for name in asked:
        if name not in known:
            raise ValueError(
                f"{flag(name)} is no setting of the kernel {args.kernel}, which has "
                f"{', '.join(map(flag, filter(known.__contains__, _settings())))}. Leave it out."
            )
    return {"kernel": dataclasses.replace(settings, **asked)}


def _field_names(kernel: Kernel | type[Kernel]) -> set[str]:
    return {field.name for field in dataclasses.fields(kernel)}


def _settings() -> dict[str, dict[type[Kernel], list[str]]]:
    """For each setting the classes that declare it, each with the kernels that have it."""
    found: dict[str, dict[type[Kernel], list[str]]] = {}
    for kernel_name, kernel in sorted(KERNELS.items()):
        for field in dataclasses.fields(kernel):
            owner = next(c for c in kernel.__mro__ if field.name in inspect.get_annotations(c))
            found.setdefault(field.name, {}).setdefault(owner, []).append(kernel_name)
    return found


def _kind(owner: type[Kernel], name: str) -> type:
    """The type of a setting, of which its annotation may say "or None"."""
    annotation = get_type_hints(owner)[name]
    kinds = [kind for kind in get_args(annotation) or (annotation,) if kind is not NoneType]
    if len(kinds) != 1 or kinds[0] not in (bool, *_METAVARS):
        raise TypeError(
            f"{owner.__name__}.{name} must be annotated as bool, int, float, str or Kernel, or one "
            f"of them or None, received {annotation}: options are made of it."
        )
    kind: type = kinds[0]
    return kind


def _help(name: str, owners: dict[type[Kernel], list[str]]) -> str:
    texts: dict[str, list[str]] = {}
    for owner, kernels in owners.items():
        texts.setdefault(_short(_description(owner, name)), []).extend(kernels)
    # What TunedKernel declares, all have, or the kernel inside has it.
    parts = [
        text if TunedKernel in owners else f"{', '.join(kernels)}: {text}"
        for text, kernels in texts.items()
    ]
    return "; ".join(parts).replace("%", "%%")


def _description(owner: type[Kernel], name: str) -> str:
    """What the docstring of a class says of an attribute, in one line; python -OO has none."""
    entry = rf"^    {name}: (.*(?:\n        .*)*)"
    found = re.search(entry, inspect.cleandoc(owner.__doc__ or ""), re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def _short(description: str) -> str:
    """The first sentence, and what the default None means."""
    first, *others = description.removesuffix(".").split(". ")
    meaning = [text.removeprefix(_NONE) for text in others if text.startswith(_NONE)]
    text = "; default: ".join([first, *meaning]).replace("`", "").replace('"', "")
    return text[:1].lower() + text[1:]
