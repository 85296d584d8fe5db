"""The options of `tfbnn fit` for kernels, and the settings that they stand for.

Every field of a kernel's settings is an option. Its type and the first sentence of what the class's
docstring says of it make the option and its help.
"""

import argparse
import dataclasses
import inspect

from tfbnn.cli.options import flag, given
from tfbnn.cli.settings import described, field_option, kernel_words
from tfbnn.engine.kernels import available, resolve_kernel
from tfbnn.engine.kernels.base import KERNELS, Kernel
from tfbnn.engine.kernels.composed import ComposedKernel
from tfbnn.engine.kernels.tuned import TunedKernel
from tfbnn.spec.choices import AUTO, is_auto


def add_kernel_options(group: argparse._ArgumentGroup) -> None:
    """Adds --kernel and the settings of all kernels."""
    text = f"auto (default) or {', '.join(available())}"
    group.add_argument("--kernel", default=AUTO, metavar="NAME", type=kernel_words(AUTO), help=text)
    for name, owners in _settings().items():
        field_option(owners, name, _help(name, owners)).add(group)


def kernel_argument(args: argparse.Namespace) -> dict[str, Kernel]:
    """{"kernel": settings}, or nothing where the kernel is to be chosen."""
    asked = given(args, _settings())
    if is_auto(args.kernel):
        for name in asked:
            raise ValueError(
                f"{flag(name)} is a setting of a kernel, received --kernel auto. Name the kernel, for "
                "example --kernel hmc."
            )
        return {}
    settings = resolve_kernel(args.kernel)
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


def _help(name: str, owners: dict[type[Kernel], list[str]]) -> str:
    texts: dict[str, list[str]] = {}
    for owner, kernels in owners.items():
        texts.setdefault(described(owner.__doc__, name), []).extend(kernels)
    # What TunedKernel declares, all have, or the kernel inside has it.
    parts = [
        text if TunedKernel in owners else f"{', '.join(kernels)}: {text}"
        for text, kernels in texts.items()
    ]
    return "; ".join(parts)
