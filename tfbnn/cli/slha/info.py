"""Show the processes of a folder, and the inputs they need.

For each process this lists the energy, the inputs with their SLHA places or expressions and their ranges in
the fit, the order, the errors that can be added, and what to cite. No model is read.
"""

import argparse
from collections.abc import Iterator
from typing import Annotated, Any

from tfbnn.cli.arguments import JsonOptions, argument
from tfbnn.cli.console import DONE, print_json
from tfbnn.hep.expressions import Expression
from tfbnn.hep.inputs import Input, check_inputs, input_text, unit_of
from tfbnn.hep.process import Calculation
from tfbnn.hep.process_folder import index_errors, read_index, settings_of


class Options(JsonOptions):
    """Options of the command.

    Attributes:
        folder: Folder of processes.
    """

    folder: Annotated[str, argument("FOLDER")]


def run(args: argparse.Namespace) -> int:
    """Print the processes."""
    with index_errors(args.folder):
        entries = read_index(args.folder)["processes"]
        processes = [settings_of(entry) | {"ranges": entry.get("ranges", {})} for entry in entries]
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
    """Yield the lines on a process."""
    first, second = process["pids"]
    yield f"{first} {second} at {process['energy']:g} GeV, fitted in {process['unit']}"
    yield from _inputs(process)
    if process["target"] is not None:
        yield _line("Target", process["target"])
    noise = "with the noise of the targets" if process["include_noise"] else "of the function alone"
    yield _line("Errors", noise)
    for name, (down, up) in process["errors"].items():
        text = "of a network" if isinstance(down, dict) else f"-{100 * down:g} % +{100 * up:g} %"
        yield _line("", f"{name}: {text}, added where asked for")
    if process["calculation"] is not None:
        columns = process["calculation"].columns.items()
        yield _line("XSECTION", ", ".join(f"{name} {value:g}" for name, value in columns))
    for name in ("description", "citation", "doi"):
        if process[name]:
            yield _line(name.capitalize() if name != "doi" else "DOI", process[name])


def _inputs(process: dict[str, Any]) -> Iterator[str]:
    """Yield a line for the inputs at SLHA places, and one for each expression."""
    ranges, inputs = process["ranges"], check_inputs(process["inputs"])

    def text(name: str, one: Input) -> str:
        low, high = ranges.get(name, (None, None))
        return "" if low is None else f", {low:.4g} to {high:.4g} {unit_of(one)}".rstrip()

    at_places, lines = [], []
    for name, one in inputs.items():
        if isinstance(one, Expression):
            lines.append(f"{name} = {one.text}{text(name, one)}")
        else:
            at_places.append(f"{name} ({input_text(one)}{text(name, one)})")
    if at_places:
        lines.insert(0, ", ".join(at_places))
    for number, line in enumerate(lines):
        yield _line("" if number else "Inputs", line)


def _line(label: str, text: str) -> str:
    return f"  {label:<13}{text}"
