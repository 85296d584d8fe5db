"""Show the processes of a folder, and what inputs they need.

These are energy, inputs with their places in SLHA, order, errors of other origin, and whom to cite. No
model is read.
"""

import argparse
from collections.abc import Iterator
from typing import Annotated, Any

from tfbnn.cli.console import DONE, print_json
from tfbnn.cli.options import JsonOptions, argument
from tfbnn.hep.process import Calculation
from tfbnn.hep.process_folder import index_errors, read_index, settings_of
from tfbnn.hep.slha import place_text


class Options(JsonOptions):
    """Options of the command.

    Attributes:
        folder: Folder of processes.
    """

    folder: Annotated[str, argument("FOLDER")]


def run(args: argparse.Namespace) -> int:
    """Print."""
    with index_errors(args.folder):
        processes = [settings_of(entry) for entry in read_index(args.folder)["processes"]]
        texts = ["\n".join(_lines(process)) for process in processes]
    if args.json:
        for process in processes:
            calculation: Calculation | None = process["calculation"]
            process["calculation"] = calculation and calculation.columns
        print_json(processes)
    else:
        print("\n\n".join(texts))
    return DONE


def _lines(process: dict[str, Any]) -> Iterator[str]:
    """Yield a line for all that is known of a process."""
    first, second = process["pids"]
    yield f"{first} {second} at {process['energy']:g} GeV, fitted in {process['unit']}"
    inputs = process["inputs"].items()
    yield _line("Inputs", ", ".join(f"{name} ({place_text(place)})" for name, place in inputs))
    noise = "with the noise of the targets" if process["include_noise"] else "of the function alone"
    yield _line("Errors", noise)
    for name, (down, up) in process["errors"].items():
        yield _line("", f"{name}: -{100 * down:g} % +{100 * up:g} %, added where asked for")
    if process["calculation"] is not None:
        columns = process["calculation"].columns.items()
        yield _line("XSECTION", ", ".join(f"{name} {value:g}" for name, value in columns))
    for name in ("description", "citation", "doi"):
        if process[name]:
            yield _line(name.capitalize() if name != "doi" else "DOI", process[name])


def _line(label: str, text: str) -> str:
    return f"  {label:<13}{text}"
