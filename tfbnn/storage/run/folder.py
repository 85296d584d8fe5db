"""Run folders: a description of the run, and one folder per chain group with its draws and state.

The chains of a group advance in one program. The folder of a group is called lane-000, lane-001 and
so on. Each chain group has one writer at a time. Readers may read at any time, and see committed
data only.

    FOLDER/run.h5                            the description, with arrays
    FOLDER/lane-000/segment-000000.h5, ...   draws, in files that never change
    FOLDER/lane-000/checkpoint-a.h5, -b.h5   the last two commits
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tfbnn.exceptions import RunFolderError, RunLockedError
from tfbnn.storage.format import schema
from tfbnn.storage.run.checkpoint import Checkpoint, newest_usable
from tfbnn.storage.run.group_files import GroupDraws, GroupWriter, read_group
from tfbnn.storage.run.lease import held_lease, is_held
from tfbnn.storage.run.record import read_record, write_record
from tfbnn.storage.run.segments import GroupFolder
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath, is_temporary, make_folder

_RUN, _LEASE = "run.h5", "lease"
_Json = dict[str, Any]
_Arrays = Mapping[str, Array]
# Folder in which earlier releases stored the search for starts.
PREPARATION = "preparation"
# Prefix of the names of files that ask other processes to stop.
STOP = "stop-"


class RunFolder:
    """Run on disk, created by `reserved` or `open`.

    Attributes:
        path: Absolute path of the folder, with links resolved.
        run_id: Unique text that identifies the run.
        num_groups: Number of chain groups.
        description: JSON object that describes the run.
        arrays: Arrays of the description, dict name -> array.
    """

    def __init__(
        self, path: str, run_id: str, num_groups: int, description: _Json, arrays: _Arrays
    ):
        self.path, self.run_id, self.num_groups = path, run_id, num_groups
        self.description, self.arrays = description, arrays

    @classmethod
    @contextlib.contextmanager
    def reserved(cls, path: StrPath) -> Iterator[Callable[[_Json, _Arrays, int], "RunFolder"]]:
        """Reserve a folder for a new run, and yield a function that creates the run.

        The function takes these arguments, creates the run folder and returns it:
            description: JSON object, nested at most 10 levels deep.
            arrays: Dict name -> array of float32, float64, int32, int64, uint8 or bool.
            num_groups: Number of chain groups, at least 1.

        Args:
            path: The folder, which must be new or empty; its parent folder must exist.

        Raises:
            RunFolderError: When the folder already holds a run or other files.
            RunLockedError: When another process is creating a run there.
            TypeError, ValueError: By the function, for arguments that cannot be written.
            OSError: When the folder cannot be written.
        """
        path = os.path.realpath(path)
        make_folder(path)
        _refuse_content(path)
        with held_lease(os.path.join(path, _LEASE)):
            _refuse_content(path)

            def make(description: _Json, arrays: _Arrays, num_groups: int) -> RunFolder:
                run_id = secrets.token_hex(16)
                _write(path, run_id, num_groups, description, arrays)
                # The arrays are not read again, because they may be files that are mapped.
                return cls(path, run_id, num_groups, _as_read(description), arrays)

            yield make

    @classmethod
    def open(cls, path: StrPath) -> "RunFolder":
        """Open a run folder, without changing anything in it.

        Raises:
            FileNotFoundError: When there is no such folder.
            RunFolderError: When it is not a run folder, or its description is damaged.
        """
        path = os.path.realpath(path)
        if not os.path.exists(path):
            raise FileNotFoundError(f"There is no run folder {path!r}.")
        try:
            content, arrays = read_record(os.path.join(path, _RUN), schema.RUN)
        except (FileNotFoundError, NotADirectoryError):
            raise RunFolderError(
                f"{path!r} is not a run folder: expected {_RUN} in it. Pass the folder of a run, or for "
                "a new run a path where nothing is yet."
            ) from None
        kinds = {"run": str, "num_lanes": int, "description": dict}
        if {name: type(value) for name, value in content.items()} != kinds:
            raise RunFolderError(f"{path!r}: {_RUN} has entries that are unknown or missing.")
        if not 1 <= content["num_lanes"] <= schema.MAX_GROUPS:
            raise RunFolderError(f"{path!r} names {content['num_lanes']} groups of chains.")
        return cls(path, content["run"], content["num_lanes"], content["description"], arrays)

    @classmethod
    def find(cls, path: StrPath) -> "RunFolder | None":
        """Return the run at `path`, or None for a new or empty folder, where a run can be created.

        Files left by a process that was killed while it created a run are ignored.

        Raises:
            RunFolderError: When the folder holds other files, or the description is damaged.
        """
        if not os.path.lexists(path) or (os.path.isdir(path) and not _content(path)):
            return None
        return cls.open(path)

    @staticmethod
    def around(path: StrPath) -> str | None:
        """Return the run folder that a path is or lies in, or None; the path need not exist."""
        resolved = Path(os.path.realpath(path))
        # The files of chain groups are the deepest level of a run folder.
        folders = [resolved, *resolved.parents][:3]
        return next((str(folder) for folder in folders if (folder / _RUN).is_file()), None)

    @staticmethod
    def in_use(path: StrPath) -> bool:
        """Return whether a process holds a lease in this folder, on the run or on a chain group."""
        patterns = (_LEASE, f"lane-*/{_LEASE}")
        return any(is_held(lease) for pattern in patterns for lease in Path(path).glob(pattern))

    @staticmethod
    def remove(path: StrPath) -> None:
        """Remove the run in a folder with all its draws, and then the folder.

        If no run has begun, the files of the attempt are removed.

        Raises:
            RunLockedError: When a process is writing in the folder.
            OSError: When something cannot be removed, or the folder holds other files.
        """
        if RunFolder.in_use(path):
            raise RunLockedError(f"{os.fspath(path)!r} is not removed: a process is at work there.")
        root = Path(path)
        # The order matters after an interruption: a remaining search would look like a run that has
        # not begun, and a run with missing parts like a damaged one.
        if (root / PREPARATION).is_dir():
            shutil.rmtree(root / PREPARATION)
        (root / _RUN).unlink(missing_ok=True)
        for folder in root.glob("lane-*"):
            shutil.rmtree(folder)
        for file in root.iterdir():
            if file.name == _LEASE or file.name.startswith(STOP) or is_temporary(file.name):
                file.unlink()
        root.rmdir()

    def replace_description(self, description: _Json) -> None:
        """Replace the description of the run, for example to extend it; arrays and draws stay.

        If this fails, the old description stays.

        Raises:
            RunLockedError: When another process is replacing it or writing a chain group.
            TypeError, ValueError: For a description that cannot be written.
            OSError: When the file cannot be written.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(held_lease(os.path.join(self.path, _LEASE)))
            for group in range(self.num_groups):
                folder = self._group(group).folder
                if os.path.isdir(folder):  # else no process has written it yet
                    stack.enter_context(held_lease(os.path.join(folder, _LEASE)))
            _write(self.path, self.run_id, self.num_groups, description, self.arrays)
        self.description = _as_read(description)

    @contextlib.contextmanager
    def writer(self, group: int) -> Iterator[GroupWriter]:
        """Remove uncommitted files of a chain group, and yield its `GroupWriter`.

        Draws that were appended but not committed are lost at the end.

        Raises:
            RunLockedError: When another process is writing this group.
            RunFolderError: When the committed files are damaged. If only the last commit is
                damaged, the one before it is used, with a RunFolderWarning.
            OSError: When the folder cannot be written.
        """
        group_folder = self._group(group)
        make_folder(group_folder.folder)
        with held_lease(os.path.join(group_folder.folder, _LEASE)) as lease:
            yield GroupWriter(group_folder, lease)

    def checkpoint(self, group: int) -> Checkpoint | None:
        """Read the last commit of a chain group without its draws; None before the first commit."""
        return newest_usable(self._group(group), lambda checkpoint: checkpoint)

    def read(self, group: int) -> GroupDraws:
        """Read the `GroupDraws` that a chain group has committed so far.

        Raises:
            RunFolderError: When they are damaged. If only the last commit is damaged, the one
                before it is read, with a RunFolderWarning.
        """
        return read_group(self._group(group))

    def _group(self, group: int) -> GroupFolder:
        if group not in range(self.num_groups):
            raise ValueError(f"group must be one of 0 .. {self.num_groups - 1}, found {group!r}.")
        folder = os.path.join(self.path, f"lane-{int(group):03d}")
        return GroupFolder(folder, self.run_id, int(group))


def _content(path: StrPath) -> list[str]:
    names = set(os.listdir(path)) - {_LEASE, PREPARATION}
    return [name for name in names if not (is_temporary(name) or name.startswith(STOP))]


def _refuse_content(path: str) -> None:
    names = _content(path)
    if _RUN in names:
        raise RunFolderError(f"{path!r} holds a run already. Resume it, or choose another folder.")
    if names:
        raise RunFolderError(
            f"{path!r} must be empty or new, found {sorted(names)!r:.200}. Choose another folder."
        )


def _as_read(description: _Json) -> _Json:
    """Return a description as a reader of the file finds it."""
    found: _Json = schema.parse_json(schema.to_json(description), schema.MAX_RUN_DEPTH)
    return found


def _write(path: str, run_id: str, num_groups: int, description: _Json, arrays: _Arrays) -> None:
    if num_groups not in range(1, schema.MAX_GROUPS + 1):
        raise ValueError(f"num_groups must be 1 .. {schema.MAX_GROUPS}, found {num_groups!r}.")
    content = {"run": run_id, "num_lanes": int(num_groups), "description": description}
    write_record(os.path.join(path, _RUN), schema.RUN, content, arrays)
