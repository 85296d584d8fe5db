"""Descriptions of commands in lines that the terminal has room for."""

import argparse
import textwrap
from itertools import groupby


class HelpFormatter(argparse.HelpFormatter):
    """Fills descriptions as argparse does, but leaves empty and indented lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        for stays, found in groupby(text.splitlines(), lambda line: line[:1] in ("", " ")):
            block = list(found)
            lines += block if stays else textwrap.wrap(" ".join(block), width)
        return textwrap.indent("\n".join(lines), indent)
