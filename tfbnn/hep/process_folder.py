"""Folders of cross-section processes: one model file each, and an index of what they mean.

    FOLDER/processes.json                             what the models mean, with the hash of each
    FOLDER/1000022_1000023-1f0c9a63b7d2e485.h5, ...   the models, under names of no other write

A new index takes the place of the old one in one step, and each names files of its own, so that
models and what they mean never come from two writes.
"""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tfbnn.data.validation import check_choice
from tfbnn.exceptions import ModelFileError
from tfbnn.fit.loading import load
from tfbnn.fit.model import SampledNetwork
from tfbnn.hep.expressions import Expression
from tfbnn.hep.process import Calculation, Pids, Process, check_together, known_process, pid_pair
from tfbnn.storage.format.sealing import check_seal
from tfbnn.system.atomic import StrPath, lock, open_plainly, replacing

NAME = "processes.json"
# Version 2 has no expressions, targets and ranges.
_FORMAT, _VERSION, _READABLE = "tfbnn cross sections", 3, (2, 3)
_FILE_NAME = re.compile(r"-?[0-9]+_-?[0-9]+-[0-9a-f]{16}\.h5")
# Settings that an entry has as a Process has them.
_SAME = ("unit", "include_noise", "description", "citation", "doi")
Entry = dict[str, Any]


def read_index(folder: StrPath) -> Entry:
    """Return the index of a folder, of a version that this release knows.

    Raises:
        FileNotFoundError: When there is none.
        ModelFileError: When it is not what it says.
    """
    path = Path(folder, NAME)
    if not path.is_file():
        raise FileNotFoundError(
            f"{os.fspath(folder)!r} has no {NAME}. Pass a folder that tfbnn.hep.write_processes or "
            "'tfbnn slha make' wrote."
        )
    with index_errors(folder):
        index: Entry = json.loads(path.read_text("utf-8"))
        if index["format"] != _FORMAT or index["format_version"] not in _READABLE:
            raise ValueError(f"this release reads {_FORMAT!r} versions {_READABLE}")
        return index


@contextlib.contextmanager
def index_errors(folder: StrPath) -> Iterator[None]:
    """Turn what a damaged index provokes into a ModelFileError that names it."""
    try:
        yield
    except ModelFileError:
        raise
    except (
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
        OverflowError,
    ) as error:
        raise ModelFileError(
            f"{os.path.join(folder, NAME)!r} is not a readable index of processes "
            f"({type(error).__name__}: {error!s:.200}). Write it again with "
            "tfbnn.hep.write_processes."
        ) from error


def _entry_of(process: Process, files: Mapping[SampledNetwork, str]) -> Entry:
    """Return the entry of a process whose models are in files."""
    sealed = {
        model: {"file": os.path.basename(path), "sha256": _hash(path)}
        for model, path in files.items()
    }
    calculation, target = process.calculation, process.target
    return {
        "pids": process.pids,
        **sealed[process.model],
        "energy_gev": process.energy,
        "inputs": [
            {"name": name, "expression": one.text}
            if isinstance(one, Expression)
            else {"name": name, "slha": one}
            for name, one in process.inputs.items()
        ],
        "ranges": dict(zip(process.features, _training_ranges(process.model))),
        "target": target.text if isinstance(target, Expression) else None,
        "errors": {
            name: [sealed[side] if isinstance(side, SampledNetwork) else side for side in sides]
            for name, sides in process.errors.items()
        },
        "xsection": None if calculation is None else asdict(calculation),
        **{name: getattr(process, name) for name in _SAME},
    }


def _training_ranges(model: SampledNetwork) -> list[list[float]]:
    """Return the least and the largest value of each feature among the rows of the fit."""
    ensemble = model.posterior
    ends = ensemble.training_inputs.low, ensemble.training_inputs.high
    return np.sort(ensemble.x_pipeline.inverse(np.stack(ends)), axis=0).T.tolist()


def settings_of(entry: Entry) -> dict[str, Any]:
    """Return what an entry says of its process: the arguments of Process, errors as there but the model."""
    calculation, inputs = entry["xsection"], entry["inputs"]
    by_name = {item["name"]: item.get("expression") or item["slha"] for item in inputs}
    if len(by_name) < len(inputs):
        raise ValueError("two inputs have one name")
    return {
        "pids": pid_pair(entry["pids"]),
        "energy": entry["energy_gev"],
        "inputs": by_name,
        "target": entry.get("target"),
        "errors": entry["errors"],
        "calculation": None if calculation is None else Calculation(**calculation),
        **{name: entry[name] for name in _SAME},
    }


def _parts_of(entry: Entry) -> Iterator[Mapping[str, Any]]:
    """Yield what an entry says of each of its files."""
    yield entry
    for sides in entry["errors"].values():
        yield from (side for side in sides if isinstance(side, dict))


def file_of(entry: Mapping[str, Any]) -> str:
    """Name of the model's file, which lies in the folder itself, whatever the index says."""
    name: str = entry["file"]
    if not _FILE_NAME.fullmatch(name):
        raise ValueError(f"file must be a name that write_processes gives, found {name!r:.80}")
    return name


# What may become of processes that are in the folder already.
EXISTING = ("replace", "refuse", "add", "update")
_LOCK = ".lock"


def write_processes(
    folder: StrPath, processes: Iterable[Process], *, existing: str = "replace"
) -> None:
    """Write a folder for `CrossSectionPredictor`.

    Processes are replaced as one: whoever reads the folder, after a crash or a full disk too, finds
    all of the old processes or all of the new ones.

    Args:
        folder: Path; made where there is none.
        processes: Processes, no two with the same particles.
        existing: What becomes of processes that the folder holds already. "replace" (default): all
            of them go, those of other particles too. "refuse": nothing is written where there are
            any. "add": they stay, and others of the same particles are refused. "update": they
            stay, but for those of the same particles, which are replaced.

    Raises:
        TypeError, ValueError: For processes that contradict each other.
        FileExistsError: When `folder` is a file, or holds what `existing` protects.
        OSError: When something cannot be written, and where a file system has no locks, which "add"
            and "update" need; what was there is intact.
    """
    processes, folder = list(processes), os.fspath(folder)
    if not processes or not all(isinstance(process, Process) for process in processes):
        raise TypeError(f"processes must be at least one Process, received {processes!r:.200}.")
    new = {process.pids: process for process in processes}
    _check_folder(folder, new, existing)
    check_together(processes)
    os.makedirs(folder, exist_ok=True)
    if existing not in ("add", "update"):
        _replace(folder, processes)
        return
    with _alone(folder):
        _check_folder(folder, new, existing)
        there = read_processes(folder) if _has_index(folder) else {}
        together = [*(there | new).values()]
        check_together(together)
        _replace(folder, together)


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """While active, nobody else adds to a folder: of two who read it and write it one would be lost."""
    path = os.path.join(folder, _LOCK)
    try:
        handle = open_plainly(path, os.O_RDWR | os.O_CREAT)
    except PermissionError:  # another user's, of a folder that they share
        handle = open_plainly(path, os.O_RDONLY)
    with open(handle, "rb"):
        try:
            lock(handle, wait=True)
        except OSError as error:
            raise OSError(
                error.errno,
                f"processes cannot be added where files cannot be locked ({error}): write all of them "
                "at once, by existing='replace', or choose a folder on another file system",
                path,
            ) from error
        yield


def _replace(folder: str, processes: Sequence[Process]) -> None:
    """Write a folder of these processes and no others."""
    named = [
        {model: _new_path(folder, process) for model in process.models} for process in processes
    ]
    files = {path for paths in named for path in paths.values()}
    old_files = _files_of(folder)
    try:
        for paths in named:
            for model, path in paths.items():
                model.save(path)
        entries = list(map(_entry_of, processes, named))
        index = {"format": _FORMAT, "format_version": _VERSION, "processes": entries}
        # From the moment that it has its name the new index is the one that counts.
        with replacing(os.path.join(folder, NAME)) as temporary:
            Path(temporary).write_text(json.dumps(index, indent=1), "utf-8")
    finally:
        # However this ended, and at whatever point, the index that is there now is what counts.
        _remove({*old_files, *files} - {*_files_of(folder)})


def _new_path(folder: str, process: Process) -> str:
    first, second = process.pids
    return os.path.join(folder, f"{first}_{second}-{secrets.token_hex(8)}.h5")


def _check_folder(folder: str, pids: Collection[Pids], existing: str) -> None:
    """Refuse a folder that cannot take processes, or holds what `existing` protects.

    Args:
        folder: Path.
        pids: Particles of the processes to be written.
        existing: As in `write_processes`.

    Raises:
        TypeError, ValueError: For an unknown word.
        ModelFileError: When the folder has an index that cannot be read, but for "replace".
        FileExistsError: As in `write_processes`.
    """
    check_choice("existing", existing, EXISTING)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise FileExistsError(f"{folder!r} is not a folder. Choose another path for the processes.")
    if existing not in ("refuse", "add") or not _has_index(folder):
        return
    with index_errors(folder):
        there = [pid_pair(entry["pids"]) for entry in read_index(folder)["processes"]]
    taken = [pair for pair in there if existing == "refuse" or pair in pids]
    if taken:
        raise FileExistsError(
            f"{folder!r} holds processes already: {', '.join(map(str, taken))}. Choose another "
            "folder, or pass existing='add' (keep them), 'update' (replace those of the same "
            "particles) or 'replace' (remove all)."
        )


def read_processes(
    folder: StrPath, pids: Collection[Pids] | None = None, *, untrusted: bool = False
) -> dict[Pids, Process]:
    """Read the folder that `write_processes` wrote: dict of sorted PDG codes -> Process.

    Args:
        folder: Path.
        pids: Sorted PDG codes of the processes to read; None (default): all.
        untrusted: As in `tfbnn.load`.

    Raises:
        FileNotFoundError: When there is no such folder, index or model file.
        ValueError: When a process is not there.
        ModelFileError: When something in the folder is not what it says.
    """
    folder, index = os.fspath(folder), read_index(folder)
    while True:
        try:
            with index_errors(folder):
                wanted = {pid_pair(entry["pids"]): entry for entry in index["processes"]}
            if pids is not None:
                wanted = {pair: known_process(pair, wanted) for pair in pids}
            with index_errors(folder):
                if len(wanted) < len(index["processes"]) and pids is None:
                    raise ValueError("there are two processes of the same particles")
                processes = [_read(entry, folder, untrusted) for entry in wanted.values()]
                check_together(processes)
            return {process.pids: process for process in processes}
        except FileNotFoundError:
            # Somebody may have replaced all of them since the index was read.
            latest = read_index(folder)
            if latest == index:
                raise
            index = latest


def _read(entry: Entry, folder: str, untrusted: bool) -> Process:
    models: dict[str, SampledNetwork] = {}
    for part in _parts_of(entry):
        name = file_of(part)
        path = os.path.join(folder, name)
        if name in models:
            continue
        if _hash(path) != part["sha256"]:
            raise ModelFileError(
                f"{path!r} is not the model that {NAME} was written with: another took "
                "its place. Write the processes again with tfbnn.hep.write_processes."
            )
        models[name] = load(path, untrusted=untrusted)
    settings = settings_of(entry)
    settings["errors"] = {
        error: [models[file_of(side)] if isinstance(side, dict) else side for side in sides]
        for error, sides in entry["errors"].items()
    }
    return Process(**settings, model=models[file_of(entry)])


def _hash(path: str) -> str:
    if os.path.exists(path) and not os.path.isfile(path):
        raise ModelFileError(f"{path!r} is not a file. Write the processes again.")
    with open(path, "rb") as file:
        try:
            return check_seal(file).hex()
        except ModelFileError as error:
            raise ModelFileError(f"{path!r}: {error}") from error


def _has_index(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, NAME))


def _files_of(folder: str) -> list[str]:
    """Paths of the models that the index of a folder names, none where there is no sound one."""
    with contextlib.suppress(FileNotFoundError, ModelFileError), index_errors(folder):
        entries = read_index(folder)["processes"]
        names = dict.fromkeys(file_of(part) for entry in entries for part in _parts_of(entry))
        return [os.path.join(folder, name) for name in names]
    return []


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):  # what stays takes space and does no harm
            os.unlink(path)
