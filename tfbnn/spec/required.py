"""Functions that every class of a family must have, where the class itself cannot hold them.

A prior or a likelihood is one class of settings, and what TensorFlow computes of it is registered
for that class, with `functools.singledispatch`, next to that of the others. A class without such a
function is refused by name; none is ever taken for another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import singledispatch, wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

T = TypeVar("T")

# Base class of a family -> the functions required of it, as far as their modules are imported.
REQUIRED: dict[type, list[_SingleDispatchCallable[Any]]] = defaultdict(list)


def required_of(family: type) -> Callable[[Callable[..., T]], _SingleDispatchCallable[T]]:
    """Declare a function that has to be registered for every class of `family`.

    The decorated function gives name, arguments and docstring, and has no body: one of those that
    `register` adds is called instead, by the class of the first argument.
    """

    def declare(function: Callable[..., T]) -> _SingleDispatchCallable[T]:
        @singledispatch
        @wraps(function)
        def refuse(settings: object, *_: object, **__: object) -> T:
            name, missing = type(settings).__name__, function.__name__
            raise TypeError(
                f"{missing} is not registered for {name}. Write it next to the others in "
                f"{function.__module__} under @{missing}.register({name}); "
                "docs/developers/new_likelihood.md shows how."
            )

        REQUIRED[family].append(refuse)
        return refuse

    return declare
