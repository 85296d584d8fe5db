"""Descriptions of processes in TOML, which `tfbnn slha make` makes a folder of.

energy = 13000                      # GeV; what stands here holds for every process
unit = "fb"
doi = "10.1000/182"

[[process]]
pids = [1000022, 1000023]
model = "chi10chi20.h5"             # a fitted model
inputs = {m_chi10_GeV = "MASS 1000022", N11 = "NMIX 1 1", N12 = "NMIX 1 2"}
xsection = {qcd_order = 1, pdf_id = 90400}
errors = {scale = 0.05, pdf = [0.03, 0.02]}
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tfbnn.fit.loading import load
from tfbnn.hep.process import Calculation, Process, check_inputs, check_together
from tfbnn.system.atomic import StrPath
from tfbnn.system.words import did_you_mean

_NEEDED = ("pids", "model", "unit", "energy", "inputs")
_KEYS = (*_NEEDED, "include_noise", "description", "citation", "doi", "xsection", "errors")
# Not in the one table of former names, as other entrances have these names still.
_FORMER = ("table", "target", "fit")


def read_description(path: StrPath, *, untrusted: bool = False) -> list[Process]:
    """Read a description and the models that it names; paths are relative to where it lies.

    Args:
        path: Path.
        untrusted: As in `tfbnn.load`.

    Raises:
        FileNotFoundError: When there is no such file, or no such model.
        TypeError, ValueError: For text that is no TOML, unknown keys, and settings that no process
            can have, with the number of the process.
    """
    import tomllib  # 5 ms that other commands need not wait for

    path = os.fspath(path)
    try:
        content = tomllib.loads(Path(path).read_bytes().decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML: {error}. See tfbnn slha make --help.") from error
    entries = content.pop("process", None)
    if not (isinstance(entries, list) and entries and isinstance(entries[0], dict)):
        raise ValueError(f"{path} describes no process. Begin each with a line [[process]].")
    processes = []
    for number, entry in enumerate(entries, 1):
        with _naming(f"{path}, process {number}"):
            processes.append(_process(content | entry, os.path.dirname(path), untrusted))
    with _naming(path):
        check_together(processes)
    return processes


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    """Put the place before what errors say."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from error


def _process(entry: Mapping[str, Any], folder: str, untrusted: bool) -> Process:
    for key in entry:
        if key in _FORMER:
            raise ValueError(
                f"{key} is no key any more: a process takes a model that is fitted. Fit it by tfbnn fit "
                'TABLE --target COL -o MODEL.h5 and write model = "MODEL.h5".'
            )
        if key not in _KEYS:
            raise ValueError(
                f"unknown key {key!r}.{did_you_mean(key, _KEYS)} Known: {', '.join(_KEYS)}."
            )
    for key in _NEEDED:
        if key not in entry:
            raise ValueError(f"{key} is missing. Known keys: {', '.join(_KEYS)}.")
    settings = dict(entry)
    model, inputs = settings.pop("model"), settings.pop("inputs")
    if not isinstance(model, str) or not isinstance(inputs, dict):
        raise TypeError(
            "model must be a path, and inputs a table of names and SLHA places, such as {m_chi10_GeV = "
            f"'MASS 1000022', N11 = 'NMIX 1 1'}}, received {model!r:.100} and {inputs!r:.100}."
        )
    places, calculation = check_inputs(inputs), settings.pop("xsection", None)
    if calculation is not None:
        if not isinstance(calculation, dict):
            raise TypeError(
                f"xsection must be a table with qcd_order, received {calculation!r:.100}."
            )
        calculation = Calculation(**calculation)
    loaded = load(os.path.join(folder, model), untrusted=untrusted)
    return Process(model=loaded, inputs=places, calculation=calculation, **settings)
