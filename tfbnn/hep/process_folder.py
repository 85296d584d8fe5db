"""Cross-section processes and the folder that holds them: one model file each, and an index.

    FOLDER/processes.json                             what the models mean, with the hash of each
    FOLDER/1000022_1000023-1f0c9a63b7d2e485.h5, ...   the models, under names of no other write

A new index takes the place of the old one in one step, and each names files of its own, so that
models and what they mean never come from two writes. The first folders had no hashes, and files
without the second part of the name.
"""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from tfbnn.exceptions import ModelFileError
from tfbnn.fit.model import load
from tfbnn.hep.process import Pids, Process, check_together, pid_pair
from tfbnn.storage.format.sealing import check_seal
from tfbnn.system.atomic import replacing
from tfbnn.system.paths import StrPath

_INDEX, _FORMAT, _VERSION = "processes.json", "tfbnn cross sections", 1
_FILE_NAME = re.compile(r"-?[0-9]+_-?[0-9]+-[0-9a-f]{16}\.h5")
_Index = dict[str, Any]


def write_processes(folder: StrPath, processes: Iterable[Process]) -> None:
    """Writes a folder for `CrossSectionPredictor`; processes that are there already are replaced.

    They are replaced as one: whoever reads the folder, after a crash or a full disk too, finds all
    of the old processes or all of the new ones. To add to a folder, pass the values of its
    `CrossSectionPredictor(folder).processes` too.

    Args:
        folder: Path; made where there is none.
        processes: Processes, no two with the same particles.

    Raises:
        TypeError, ValueError: For processes that contradict each other.
        FileExistsError: When `folder` is a file.
        OSError: When something cannot be written; what was there is intact.
    """
    processes, folder = list(processes), os.fspath(folder)
    if not processes or not all(isinstance(process, Process) for process in processes):
        raise TypeError(f"processes must be at least one Process, received {processes!r:.200}.")
    check_together(processes)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise FileExistsError(f"{folder!r} is not a folder. Choose another path for the processes.")
    os.makedirs(folder, exist_ok=True)
    files = [os.path.join(folder, _new_file_name(process.pids)) for process in processes]
    old_files = _files_of(folder)
    try:
        entries = [_write(process, path) for process, path in zip(processes, files)]
        index = {"format": _FORMAT, "format_version": _VERSION, "processes": entries}
        with replacing(os.path.join(folder, _INDEX)) as temporary:
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump(index, file, indent=1)
    finally:
        # However this ended, and at whatever point, the index that is there now is what counts.
        _remove({*old_files, *files} - {*_files_of(folder)})


def read_processes(folder: StrPath) -> dict[Pids, Process]:
    """Reads the folder that `write_processes` wrote: dict of sorted PDG codes -> Process.

    Raises:
        FileNotFoundError: When there is no such folder, index or model file.
        ModelFileError: When one of them is not what it says.
    """
    folder, index = os.fspath(folder), _read_index(folder)
    while True:
        try:
            with _index_errors(folder):
                processes = [_process(index, entry, folder) for entry in index["processes"]]
                check_together(processes)
            return {process.pids: process for process in processes}
        except FileNotFoundError:
            # Somebody may have replaced all of them since the index was read.
            latest = _read_index(folder)
            if latest == index:
                raise
            index = latest


def _read_index(folder: StrPath) -> _Index:
    """The index of a folder, of a version that this release knows."""
    path = os.path.join(folder, _INDEX)
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"{os.fspath(folder)!r} has no {_INDEX}. Pass a folder that tfbnn.hep.write_processes "
            "wrote."
        )
    with _index_errors(folder):
        with open(path, encoding="utf-8") as file:
            index: _Index = json.load(file)
        if index["format"] != _FORMAT or index["format_version"] not in range(_VERSION + 1):
            raise ValueError(f"this release reads {_FORMAT!r} version 0 to {_VERSION}")
        return index


@contextlib.contextmanager
def _index_errors(folder: StrPath) -> Iterator[None]:
    """Turns what a damaged index provokes into a ModelFileError that names it."""
    try:
        yield
    except ModelFileError:
        raise
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{os.path.join(folder, _INDEX)!r} is not a readable index of processes "
            f"({type(error).__name__}: {error!s:.200}). Write it again with "
            "tfbnn.hep.write_processes."
        ) from error


def _write(process: Process, path: str) -> dict[str, Any]:
    """The entry of a process in the index, once its model is written."""
    process.model.save(path)
    return {
        "pids": process.pids,
        "file": os.path.basename(path),
        "sha256": _hash(path),
        "unit": process.unit,
        "energy_gev": process.energy,
        "inputs": [{"name": name, "slha": place} for name, place in process.inputs.items()],
        "include_noise": process.include_noise,
        "description": process.description,
    }


def _process(index: _Index, entry: dict[str, Any], folder: str) -> Process:
    path = _path_of(index, entry, folder)
    if index["format_version"] and _hash(path) != entry["sha256"]:
        raise ModelFileError(
            f"{path!r} is not the model that {_INDEX} was written with: another took its place. "
            "Write the processes again with tfbnn.hep.write_processes."
        )
    return Process(
        pids=pid_pair(entry["pids"]),
        model=load(path),
        unit=entry["unit"],
        energy=entry["energy_gev"],
        inputs={item["name"]: item["slha"] for item in entry["inputs"]},
        include_noise=entry["include_noise"],
        description=entry["description"],
    )


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        try:
            return check_seal(file).hex()
        except ModelFileError as error:
            raise ModelFileError(f"{path!r}: {error}") from error


def _new_file_name(pids: Pids) -> str:
    return f"{pids[0]}_{pids[1]}-{secrets.token_hex(8)}.h5"


def _path_of(index: _Index, entry: dict[str, Any], folder: str) -> str:
    """Path of a model: in the folder itself, whatever the index says."""
    first, second = pid_pair(entry["pids"])
    name = entry["file"] if index["format_version"] else f"{first}_{second}.h5"
    if index["format_version"] and not _FILE_NAME.fullmatch(name):
        raise ValueError(f"file must be a name that write_processes gives, found {name!r:.80}")
    return os.path.join(folder, name)


def _files_of(folder: str) -> list[str]:
    """Paths of the models that the index of a folder names, none where there is no sound one."""
    try:
        with _index_errors(folder):
            index = _read_index(folder)
            return [_path_of(index, entry, folder) for entry in index["processes"]]
    except (FileNotFoundError, ModelFileError):
        return []


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):  # what stays takes space and does no harm
            os.unlink(path)
