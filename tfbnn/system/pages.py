"""How a page of ours (`tfbnn report`) is known again, so that no other file is replaced by one."""

from __future__ import annotations

import os

from tfbnn.system.atomic import check_writable, write_file
from tfbnn.system.paths import StrPath

# What a page begins with.
MARK = "<!DOCTYPE html>\n<!-- tfbnn report -->"


def is_page(path: StrPath) -> bool:
    """Whether a file is a page of ours."""
    with open(path, "rb") as file:
        return file.read(len(MARK)) == MARK.encode()


def check_place(path: StrPath) -> None:
    """Refuses a place where a page would replace something else, or could not be written.

    Raises:
        FileExistsError: Where there is something else.
        OSError: When it could not be written.
    """
    path = os.fspath(path)
    if os.path.lexists(path) and not (os.path.isfile(path) and is_page(path)):
        raise FileExistsError(
            f"{path} exists and is no report of tfbnn; a report does not replace it. Remove it, or "
            "choose another name."
        )
    check_writable(path)


def write_page(path: StrPath, text: str) -> None:
    """Writes a page to a place that was checked, replacing an older one only when complete."""
    # Halves of characters, which have no UTF-8, were made plain with the control characters.
    write_file(path, text.encode("utf-8", errors="backslashreplace"))
