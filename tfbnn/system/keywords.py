"""Keyword arguments that a function does not have: what may have been meant, or where it belongs."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from tfbnn.system.words import did_you_mean

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def explains_keywords(
    elsewhere: Mapping[str, str],
) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """Decorator of a function whose refusal of an unknown keyword argument says what to do.

    Python says so itself from 3.13 on, of near names only.

    Args:
        elsewhere: What to do instead, a sentence for each name that users of other libraries try.

    Raises:
        TypeError: By the decorated function, as without it.
    """

    def decorate(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        known = inspect.signature(function).parameters
        shown = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def explained(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
            for name in kwargs:
                if name not in known:
                    remedy = f" {elsewhere[name]}" if name in elsewhere else ""
                    raise TypeError(
                        f"{shown}() got an unexpected keyword argument {name!r}."
                        f"{remedy or did_you_mean(name, known)}"
                    )
            return function(*args, **kwargs)

        return explained

    return decorate
