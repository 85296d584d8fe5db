"""How commands end that make a model of another one: saved, and said what was done."""

import argparse
from typing import Any

from tfbnn.cli.console import DONE, print_json
from tfbnn.cli.options import Group
from tfbnn.diagnostics.wording import megabytes
from tfbnn.fit.model import SampledNetwork


def add_saving_options(parser: Group) -> None:
    """Adds -o and --json."""
    parser.add_argument(
        "-o", dest="output", metavar="OUT.h5", required=True, help="model file to write"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def save_and_tell(
    model: SampledNetwork, args: argparse.Namespace, summary: str, record: dict[str, Any]
) -> int:
    """Saves the model and prints what was done.

    Args:
        model: What was made.
        args: Arguments with output and json.
        summary: Aligned lines, for people.
        record: The same as a dict.

    Returns:
        The exit code.
    """
    size = model.save(args.output)
    if args.json:
        print_json(record | {"saved": args.output, "bytes": size})
    else:
        print(f"{summary}\n{'saved':<13}{args.output}, {megabytes(size)}")
    return DONE
