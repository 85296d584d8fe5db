"""The index of a folder of processes: what its models mean, as JSON.

Version 0 had no hashes, and names of files without their second part. Version 1 had neither how
the cross sections were computed, nor errors of other origin, citation and doi.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from tfbnn.exceptions import ModelFileError
from tfbnn.hep.calculation import Calculation
from tfbnn.hep.process import Process, pid_pair
from tfbnn.system.atomic import replacing
from tfbnn.system.paths import StrPath

NAME = "processes.json"
_FORMAT, _VERSION = "tfbnn cross sections", 2
_FILE_NAME = re.compile(r"-?[0-9]+_-?[0-9]+-[0-9a-f]{16}\.h5")
Entry = dict[str, Any]
Index = dict[str, Any]


def write_index(folder: str, entries: list[Entry]) -> None:
    """Writes the index, which from then on is the one that counts."""
    index = {"format": _FORMAT, "format_version": _VERSION, "processes": entries}
    with replacing(os.path.join(folder, NAME)) as temporary:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(index, file, indent=1)


def read_index(folder: StrPath) -> Index:
    """The index of a folder, of a version that this release knows.

    Raises:
        FileNotFoundError: When there is none.
        ModelFileError: When it is not what it says.
    """
    path = os.path.join(folder, NAME)
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"{os.fspath(folder)!r} has no {NAME}. Pass a folder that tfbnn.hep.write_processes or "
            "'tfbnn slha make' wrote."
        )
    with index_errors(folder):
        with open(path, encoding="utf-8") as file:
            index: Index = json.load(file)
        if index["format"] != _FORMAT or index["format_version"] not in range(_VERSION + 1):
            raise ValueError(f"this release reads {_FORMAT!r} version 0 to {_VERSION}")
        return index


@contextlib.contextmanager
def index_errors(folder: StrPath) -> Iterator[None]:
    """Turns what a damaged index provokes into a ModelFileError that names it."""
    try:
        yield
    except ModelFileError:
        raise
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{os.path.join(folder, NAME)!r} is not a readable index of processes "
            f"({type(error).__name__}: {error!s:.200}). Write it again with "
            "tfbnn.hep.write_processes."
        ) from error


def entry_of(process: Process, path: str, digest: str) -> Entry:
    """The entry of a process whose model is in a file."""
    calculation = process.calculation
    return {
        "pids": process.pids,
        "file": os.path.basename(path),
        "sha256": digest,
        "unit": process.unit,
        "energy_gev": process.energy,
        "inputs": [{"name": name, "slha": place} for name, place in process.inputs.items()],
        "include_noise": process.include_noise,
        "description": process.description,
        "xsection": None if calculation is None else asdict(calculation),
        "errors": dict(process.errors),
        "citation": process.citation,
        "doi": process.doi,
    }


def settings_of(index: Index, entry: Entry) -> dict[str, Any]:
    """What an entry says of its process: the arguments of Process but the model."""
    more: dict[str, Any] = {"errors": {}, "citation": "", "doi": "", "calculation": None}
    if index["format_version"] > 1:
        found = entry["xsection"]
        more = {name: entry[name] for name in ("errors", "citation", "doi")}
        more["calculation"] = None if found is None else Calculation(**found)
    return {
        "pids": pid_pair(entry["pids"]),
        "unit": entry["unit"],
        "energy": entry["energy_gev"],
        "inputs": {item["name"]: item["slha"] for item in entry["inputs"]},
        "include_noise": entry["include_noise"],
        "description": entry["description"],
        **more,
    }


def file_of(index: Index, entry: Mapping[str, Any]) -> str:
    """Name of the model's file, which lies in the folder itself, whatever the index says."""
    first, second = pid_pair(entry["pids"])
    if not index["format_version"]:
        return f"{first}_{second}.h5"
    name: str = entry["file"]
    if not _FILE_NAME.fullmatch(name):
        raise ValueError(f"file must be a name that write_processes gives, found {name!r:.80}")
    return name
