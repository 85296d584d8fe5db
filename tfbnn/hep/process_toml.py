"""Descriptions of processes in TOML, as read by `tfbnn slha table` and `tfbnn slha make`.

energy = 13000                      # GeV; settings above the first table hold for every process
unit = "fb"
doi = "10.1000/182"

[results]                           # cross sections, for slha table
file = "prospino.dat"
columns = ["pid1", "pid2", "LO", "NLO", "pdf"]

[[process]]
pids = [1000022, 1000023]
model = "chi10chi20.h5"             # a fitted model, for slha make
target = "NLO"                      # target of the fit: a column of the results, or an expression
rows = {pid1 = 1000022, pid2 = 1000023}
inputs = {N11 = "NMIX 1 1", N12 = "NMIX 1 2", log_m = "log10(abs(MASS:1000022))", bino = "N11**2"}
xsection = {qcd_order = 1, pdf_id = 90400}
errors = {scale = 0.05, pdf = {relative = "pdf / NLO", model = "chi10chi20_pdf.h5"}}
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfbnn.exceptions import DataWarning
from tfbnn.fit.loading import load
from tfbnn.hep.expressions import Expression
from tfbnn.hep.inputs import check_inputs
from tfbnn.hep.process import Calculation, Process, check_together, pid_pair
from tfbnn.hep.results import Results, read_results
from tfbnn.hep.tabulation import Tabulation
from tfbnn.system.atomic import StrPath
from tfbnn.system.words import did_you_mean, warn

_NEEDED = ("pids", "model", "unit", "energy", "inputs")
_KEYS = [*filter("calculation".__ne__, Process.__dataclass_fields__), "xsection", "rows"]


def read_description(path: StrPath, *, untrusted: bool = False) -> list[Process]:
    """Read a description and the models that it names; their paths are relative to its folder.

    Args:
        path: Path of the description.
        untrusted: As in `tfbnn.load`.

    Raises:
        FileNotFoundError: When the description or a model does not exist.
        TypeError, ValueError: For text that is not TOML, unknown keys, and invalid settings of a
            process. The message has the number of the process.
    """
    path = os.fspath(path)
    _, entries = _read(path)
    processes = []
    for where, entry in entries:
        with _naming(where):
            processes.append(_process(entry, os.path.dirname(path), untrusted))
    with _naming(path):
        check_together(processes)
    return processes


def read_tabulations(path: StrPath) -> tuple[Results, list[Tabulation]]:
    """Read the results that a description names, and the table columns of each of its processes.

    Raises:
        FileNotFoundError: When the description or the file of results does not exist.
        TypeError, ValueError: As in `read_description`.
    """
    path = os.fspath(path)
    given, entries = _read(path)
    with _naming(path):
        if not isinstance(given, dict):
            raise ValueError(
                "[results] is missing, which says where cross sections are. See tfbnn slha table --help."
            )
        results = read_results(given, os.path.dirname(path))
    tabulations = []
    for where, entry in entries:
        with _naming(where):
            _check_keys(entry, ("pids", "inputs", "target"))
            inputs, targets = check_inputs(entry["inputs"]), dict(_targets(entry))
            pids, rows = pid_pair(entry["pids"]), entry.get("rows", {})
            tabulations.append(Tabulation(pids, inputs, targets, rows, results.columns))
    with _naming(path):
        check_together(tabulations)
    return results, tabulations


def _targets(entry: Mapping[str, Any]) -> Iterator[tuple[str, Expression]]:
    """Yield (name, expression) of each target column of a fit, the cross section first."""
    target = Expression(entry["target"])
    yield (target.text if target.names == (target.text,) else "target"), target
    errors = entry.get("errors", {})
    if not isinstance(errors, dict):
        raise TypeError(f"errors must be a table of names and errors, received {errors!r:.100}.")
    for name, error in errors.items():
        if isinstance(error, dict) and "relative" in error:
            sides = error["relative"]
            if not isinstance(sides, list):
                yield f"{name}_error", Expression(sides)
            elif len(sides) == 2:
                yield f"{name}_error_down", Expression(sides[0])
                yield f"{name}_error_up", Expression(sides[1])
            else:
                raise ValueError(
                    f"relative of {name} must be one expression or two, down and up, received {sides!r:.100}."
                )


def _read(path: str) -> tuple[Any, list[tuple[str, dict[str, Any]]]]:
    """Read a description; return its results and, for each process, (name in messages, entries)."""
    import tomllib  # the import takes 5 ms, which other commands do not need

    try:
        content = tomllib.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML: {error}. See tfbnn slha make --help.") from error
    results, entries = content.pop("results", None), content.pop("process", None)
    if not (isinstance(entries, list) and entries and all(isinstance(e, dict) for e in entries)):
        raise ValueError(f"{path} describes no process. Begin each with a line [[process]].")
    found = []
    for number, entry in enumerate(entries, 1):
        both = content | entry
        if all(isinstance(part.get("errors"), dict) for part in (content, entry)):
            both["errors"] = content["errors"] | entry["errors"]
        found.append((f"{path}, process {number}", both))
    return results, found


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    """Prefix the messages of errors with a position, such as the path of a file."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from error


def _check_keys(entry: Mapping[str, Any], needed: Sequence[str]) -> None:
    for key in entry:
        if key not in _KEYS:
            raise ValueError(
                f"unknown key {key!r}.{did_you_mean(key, _KEYS)} Known: {', '.join(_KEYS)}."
            )
    for key in needed:
        if key not in entry:
            raise ValueError(f"{key} is missing. Known keys: {', '.join(_KEYS)}.")


def _process(entry: Mapping[str, Any], folder: str, untrusted: bool) -> Process:
    _check_keys(entry, _NEEDED)
    settings = {name: value for name, value in entry.items() if name not in ("model", "rows")}
    calculation = settings.pop("xsection", None)
    if calculation is not None:
        if not isinstance(calculation, dict):
            raise TypeError(
                f"xsection must be a table with qcd_order, received {calculation!r:.100}."
            )
        calculation = Calculation(**calculation)

    def loaded(name: Any) -> Any:
        if not isinstance(name, str):
            raise TypeError(f"model must be a path, received {name!r:.100}.")
        return load(os.path.join(folder, name), untrusted=untrusted)

    if isinstance(errors := settings.pop("errors", {}), dict):
        errors = {name: _error(error, loaded) for name, error in errors.items()}
    model = loaded(entry["model"])
    process = Process(model=model, calculation=calculation, errors=errors, **settings)
    names, target = model.posterior.provenance.target_names or [], process.target
    if isinstance(target, Expression) and target.text not in names and {*names} & {*target.names}:
        warn(
            f"The model was fitted to a column {names[0]!r}, and target is {target.text!r}. Leave target out if "
            "this column is the cross section itself.",
            DataWarning,
        )
    return process


def _error(error: Any, loaded: Any) -> Any:
    """Return an error in the form that `Process` takes: load the models that a table names."""
    if not isinstance(error, dict):
        return error
    if "model" not in error or not error.keys() <= {"model", "relative"}:
        raise ValueError(
            "An error must be a number, two, or a table with model, one path or two, and relative, received "
            f"{error!r:.100}."
        )
    names = error["model"]
    return [loaded(name) for name in names] if isinstance(names, list) else loaded(names)
