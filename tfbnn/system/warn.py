"""Warnings that point at the line of the caller, however deep in the package they come about."""

import sys
import warnings

# Packages whose lines say nothing to a user: searches call estimators, and decorators call functions.
_PASSED_OVER = {"tfbnn", "sklearn", "joblib", "contextlib", "concurrent", "threading"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """`warnings.warn` at the innermost frame outside this package and those that call it for a user.

    As `skip_file_prefixes` of Python 3.12; where there is none, in a thread, at the line that warns.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_OVER:
        if frame.f_back is None:
            level = 2
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
