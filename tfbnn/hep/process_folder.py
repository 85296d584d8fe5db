"""Folders of cross-section processes: one file per model, and an index that describes them.

    FOLDER/processes.json                             index of the processes, with a hash per model
    FOLDER/1000022_1000023-1f0c9a63b7d2e485.h5, ...   models, with names unique to each write

A new index replaces the old one atomically, and each index names its own files. So an index never
describes models of another write.
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
# Version 2 has no expressions, targets or ranges.
_FORMAT, _VERSION, _READABLE = "tfbnn cross sections", 3, (2, 3)
_FILE_NAME = re.compile(r"-?[0-9]+_-?[0-9]+-[0-9a-f]{16}\.h5")
# Settings with the same name and value in an entry and in a Process.
_SAME = ("unit", "include_noise", "description", "citation", "doi")
Entry = dict[str, Any]


def read_index(folder: StrPath) -> Entry:
    """Read the index of a folder, of a version that this release supports.

    Raises:
        FileNotFoundError: When there is no index.
        ModelFileError: When it is damaged, or of another format or version.
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
    """Convert errors caused by a damaged index into a ModelFileError that names the index."""
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
    """Return the index entry of a process, given the files of its models."""
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
    """Return the smallest and largest value of each feature among the rows of the fit."""
    ensemble = model.posterior
    ends = ensemble.training_inputs.low, ensemble.training_inputs.high
    return np.sort(ensemble.x_pipeline.inverse(np.stack(ends)), axis=0).T.tolist()


def settings_of(entry: Entry) -> dict[str, Any]:
    """Return the arguments of Process that an entry holds; errors keep the form of the entry."""
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
    """Yield the parts of an entry that name a file: the entry itself, and errors with a model."""
    yield entry
    for sides in entry["errors"].values():
        yield from (side for side in sides if isinstance(side, dict))


def file_of(entry: Mapping[str, Any]) -> str:
    """Return the name of a model's file; refuse names that could lead out of the folder."""
    name: str = entry["file"]
    if not _FILE_NAME.fullmatch(name):
        raise ValueError(f"file must be a name that write_processes gives, found {name!r:.80}")
    return name


# Possible treatments of processes that are already in the folder.
EXISTING = ("replace", "refuse", "add", "update")
_LOCK = ".lock"


def write_processes(
    folder: StrPath,
    processes: Iterable[Process],
    *,
    existing: str = "replace",
    untrusted: bool = False,
) -> None:
    """Write a folder of processes for `CrossSectionPredictor`.

    All processes are replaced in one step: a reader finds all of the old processes or all of the
    new ones, also after a crash or a full disk.

    Args:
        folder: Path; the folder is created if it does not exist.
        processes: Processes, no two with the same particles.
        existing: Treatment of processes that the folder already holds. "replace" (default): remove
            all of them, also those of other particles. "refuse": write nothing if there are any.
            "add": keep them, and refuse new processes of the same particles. "update": keep them,
            but replace those of the same particles.
        untrusted: As in `tfbnn.load`, for the models of the processes that are kept.

    Raises:
        TypeError, ValueError: For processes that contradict each other.
        FileExistsError: When `folder` is a file, or holds processes that `existing` protects.
        OSError: When something cannot be written, and on a file system without locks, which "add"
            and "update" need. The existing processes stay intact.
    """
    processes, folder = list(processes), os.fspath(folder)
    if not processes or not all(isinstance(process, Process) for process in processes):
        raise TypeError(f"processes must be at least one Process, received {processes!r:.200}.")
    new = {process.pids: process for process in processes}
    _check_folder(folder, new, existing)
    check_together(processes)
    os.makedirs(folder, exist_ok=True)
    keeps = existing in ("add", "update")
    with _alone(folder, needed=keeps):
        _check_folder(folder, new, existing)
        keeps = keeps and _has_index(folder)
        there = read_processes(folder, untrusted=untrusted) if keeps else {}
        together = [*(there | new).values()]
        check_together(together)
        _replace(folder, together)


@contextlib.contextmanager
def _alone(folder: str, needed: bool) -> Iterator[None]:
    """Lock a folder while its processes are written: concurrent writes could lose some.

    If the lock is not needed, go on without it where files cannot be locked.
    """
    path = os.path.join(folder, _LOCK)
    try:
        handle = open_plainly(path, os.O_RDWR | os.O_CREAT)
    except PermissionError:
        if not os.path.lexists(path):
            raise
        # The lock of another user in a shared folder.
        handle = open_plainly(path, os.O_RDONLY)
    with open(handle, "rb"):
        try:
            lock(handle, wait=True)
        except OSError as error:
            if needed:
                raise OSError(
                    error.errno,
                    f"processes cannot be added where files cannot be locked ({error}): write all of them "
                    "at once, by existing='replace', or choose a folder on another file system",
                    path,
                ) from error
        yield


def _replace(folder: str, processes: Sequence[Process]) -> None:
    """Replace the processes of a folder by these."""
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
        # The new index is valid from the moment that it is renamed.
        with replacing(os.path.join(folder, NAME)) as temporary:
            Path(temporary).write_text(json.dumps(index, indent=1), "utf-8")
    finally:
        # Also after a failure, keep exactly the files that the current index names.
        _remove({*old_files, *files} - {*_files_of(folder)})


def _new_path(folder: str, process: Process) -> str:
    first, second = process.pids
    return os.path.join(folder, f"{first}_{second}-{secrets.token_hex(8)}.h5")


def _check_folder(folder: str, pids: Collection[Pids], existing: str) -> None:
    """Refuse a folder that cannot hold processes, or holds processes that `existing` protects.

    Args:
        folder: Path.
        pids: Particles of the processes to be written.
        existing: As in `write_processes`.

    Raises:
        TypeError, ValueError: For an unknown value of `existing`.
        ModelFileError: For "refuse" and "add", when the index of the folder cannot be read.
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
            "folder, or existing (--existing): 'add' keeps them, 'update' replaces those of the same "
            "particles, 'replace' removes all."
        )


def read_processes(
    folder: StrPath, pids: Collection[Pids] | None = None, *, untrusted: bool = False
) -> dict[Pids, Process]:
    """Read a folder written by `write_processes`; return a dict of sorted PDG codes -> Process.

    Args:
        folder: Path.
        pids: Sorted PDG codes of the processes to read; None (default): all.
        untrusted: As in `tfbnn.load`.

    Raises:
        FileNotFoundError: When there is no such folder, index or model file.
        ValueError: When the folder does not hold a requested process.
        ModelFileError: When a file in the folder is damaged or does not match the index.
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
            # Another process may have replaced all files since the index was read.
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
    """Return the paths of the models in the index of a folder; none without a valid index."""
    with contextlib.suppress(FileNotFoundError, ModelFileError), index_errors(folder):
        entries = read_index(folder)["processes"]
        names = dict.fromkeys(file_of(part) for entry in entries for part in _parts_of(entry))
        return [os.path.join(folder, name) for name in names]
    return []


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):  # a remaining file takes space but does no harm
            os.unlink(path)
