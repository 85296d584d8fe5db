"""Descriptions of processes in TOML, which `tfbnn slha make` makes a folder of.

energy = 13000                      # GeV; what stands here holds for every process
doi = "10.1000/182"

[[process]]
pids = [1000022, 1000023]
table = "chi10chi20.csv"            # rows to fit a network to, or: model = "chi10chi20.h5"
target = "nlo_xsec_fb"              # the unit, fb or pb, is known by its name
fit = "--layers 20,20"              # options of 'tfbnn fit'; files in them lie beside this one, too
inputs = {m_chi10_GeV = "MASS 1000022", N11 = "NMIX 1 1", N12 = "NMIX 1 2"}
xsection = {qcd_order = 1, pdf_id = 90400}
errors = {scale = 0.05, pdf = [0.03, 0.02]}
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tfbnn.data.validation import check_choice, check_flag
from tfbnn.hep.calculation import Calculation
from tfbnn.hep.other_errors import check_errors
from tfbnn.hep.process import (
    FB,
    Pids,
    check_energy,
    check_inputs,
    check_text,
    check_together,
    pid_pair,
)
from tfbnn.hep.slha import Place, place_of_text
from tfbnn.system.paths import StrPath
from tfbnn.system.words import did_you_mean

_TEXTS = ("description", "citation", "doi")
_KEYS = (
    *("pids", "table", "target", "model", "fit", "unit", "energy", "inputs", "include_noise"),
    *_TEXTS,
    *("xsection", "errors"),
)
_PROCESSES = "process"


@dataclass(frozen=True)
class ProcessPlan:
    """What a description says of one process.

    Attributes:
        pids: Sorted PDG codes.
        table: Path of the rows to fit a network to, or None.
        target: Column of the table; with a model None.
        model: Path of a fitted model, or None.
        fit: Options of 'tfbnn fit', as they are written.
        settings: Arguments of `tfbnn.hep.Process` but pids and model.
        folder: Where the description lies, which paths in `fit` are relative to.
    """

    pids: Pids
    table: str | None
    target: str | None
    model: str | None
    fit: str
    settings: dict[str, Any]
    folder: str

    @property
    def inputs(self) -> dict[str, Place]:
        """Dict input name -> SLHA place."""
        inputs: dict[str, Place] = self.settings["inputs"]
        return inputs


def read_description(path: StrPath) -> list[ProcessPlan]:
    """Reads a description; paths in it are relative to where it lies.

    Raises:
        FileNotFoundError: When there is no such file.
        TypeError, ValueError: For text that is no TOML, unknown keys, and settings that no process
            can have, with the number of the process.
    """
    import tomllib  # 5 ms that other commands need not wait for

    path = os.fspath(path)
    with open(path, "rb") as file:
        try:
            content = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is no TOML: {error}. See tfbnn slha make --help.") from error
    processes = content.pop(_PROCESSES, None)
    if not isinstance(processes, list) or not processes:
        raise ValueError(f"{path} describes no process. Begin each with a line [[{_PROCESSES}]].")
    with _naming(path):
        _check_keys(content, (*_KEYS, _PROCESSES))
    plans = []
    for number, entry in enumerate(processes, 1):
        where = f"{path}, process {number}"
        if not isinstance(entry, dict):
            raise TypeError(f"{where}: expected a table [[{_PROCESSES}]], received {entry!r:.200}.")
        with _naming(where):
            _check_keys(entry, _KEYS)
            plans.append(_plan(_with_defaults(entry, content), os.path.dirname(path)))
    with _naming(path):
        check_together(plans)
    return plans


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    """Puts the place before what errors say."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from error


def _check_keys(entry: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in entry:
        if key not in known:
            raise ValueError(
                f"unknown key {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}."
            )


def _with_defaults(entry: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """A process with what the description says of all; a model needs no table."""
    unused = ("table", "fit") if "model" in entry else ("model",) if "table" in entry else ()
    return {key: value for key, value in defaults.items() if key not in unused} | entry


def _plan(entry: Mapping[str, Any], folder: str) -> ProcessPlan:
    for key in ("pids", "energy", "inputs"):
        if key not in entry:
            raise ValueError(f"{key} is missing. Known keys: {', '.join(_KEYS)}.")
    table, model = _path(entry, "table", folder), _path(entry, "model", folder)
    if (table is None) == (model is None):
        raise ValueError("expected either table, with rows to fit, or model, a fitted one.")
    target, fit = (_text(entry, key) for key in ("target", "fit"))
    if model is None and not target:
        raise ValueError("target is missing, the column of the table with the cross section.")
    if model is not None and fit:
        raise ValueError("fit goes with table; the model is fitted already. Leave one out.")
    settings: dict[str, Any] = {
        "unit": _unit(entry, target),
        "energy": check_energy(entry["energy"]),
        "inputs": _inputs(entry["inputs"]),
        "include_noise": check_flag("include_noise", entry.get("include_noise", True)),
        "errors": check_errors(entry.get("errors", {})),
        "calculation": _calculation(entry.get("xsection")),
        **{name: check_text(name, entry.get(name, "")) for name in _TEXTS},
    }
    pids = pid_pair(entry["pids"])
    return ProcessPlan(pids, table, target or None, model, fit, settings, folder)


def _path(entry: Mapping[str, Any], key: str, folder: str) -> str | None:
    return os.path.join(folder, _text(entry, key)) if key in entry else None


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise TypeError(f"{key} must be text, received {value!r:.200}.")
    return value


def _unit(entry: Mapping[str, Any], target: str) -> str:
    """The unit, which the name of the target may say, and must not contradict."""
    ending = target.lower().rpartition("_")[2]
    of_name = ending if ending in FB else None
    unit = entry.get("unit", of_name)
    if unit is None:
        raise ValueError("unit is missing: 'fb' or 'pb'.")
    if of_name not in (None, check_choice("unit", unit, FB)):
        raise ValueError(f"unit is {unit!r}, but the target is called {target}. Correct one.")
    return str(unit)


def _inputs(value: Any) -> dict[str, Place]:
    if not isinstance(value, dict) or not value:
        raise TypeError(
            "inputs must be a table of names and SLHA places, such as {m_chi10_GeV = 'MASS "
            f"1000022', N11 = 'NMIX 1 1'}}, received {value!r:.200}."
        )
    places = {
        name: place_of_text(place) if isinstance(place, str) else place
        for name, place in value.items()
    }
    return check_inputs(places)


def _calculation(value: Any) -> Calculation | None:
    if value is None:
        return None
    known = tuple(Calculation.__dataclass_fields__)
    if not isinstance(value, dict) or "qcd_order" not in value or not set(value) <= set(known):
        raise ValueError(
            "xsection must be a table with qcd_order (0 Born, 1 NLO, 2 NLO + NLL) and, if need be, "
            f"{', '.join(known[1:])}, received {value!r:.200}."
        )
    return Calculation(**value)
