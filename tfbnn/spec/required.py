"""Functions that every class of a family must have, but that the class itself cannot hold.

A prior or a likelihood is one class of settings. Its TensorFlow functions are registered for that
class, with `functools.singledispatch`, next to those of the other classes. A class without such a
function is refused by name; the function of another class is never used for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import singledispatch, wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

T = TypeVar("T")

# Base class of a family -> functions that it requires, as far as their modules are imported.
REQUIRED: dict[type, list[_SingleDispatchCallable[Any]]] = defaultdict(list)


def required_of(family: type) -> Callable[[Callable[..., T]], _SingleDispatchCallable[T]]:
    """Declare a function that has to be registered for every class of `family`.

    The decorated function gives name, arguments and docstring, and has no body. A call is
    dispatched, by the class of the first argument, to a function that `register` added.
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
