"""A run in its folder: what defines it, what it has committed, and going on from there.

Everything that decides the draws is in the folder, and the part that a caller chooses is compared
when a run goes on, so that a run is finished as it was begun or not at all.
"""

import contextlib
import tempfile
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tfbnn.exceptions import RunFolderError
from tfbnn.run.definition import RunDefinition, check_same_run
from tfbnn.run.result import PHASES, gather_result


class Starts(NamedTuple):
    """Where the chains start.

    Attributes:
        theta: [C, P].
        text: One line on how they were found.
        seconds: Dict of wall-clock seconds that this took.
    """

    theta: np.ndarray
    text: str
    seconds: dict


class Committed(NamedTuple):
    """What lanes of a run have on the disk, cut to the draws that all of their chains have.

    Attributes:
        draws: [C, S, P].
        statistics: Dict name -> [C, S, ...].
        counters: Those of each lane's checkpoint.
    """

    draws: np.ndarray
    statistics: dict
    counters: list


@dataclass
class Recording:
    """The run folder that a run writes to, made when the run begins, or there already.

    Attributes:
        path: The folder.
        definition: RunDefinition.
        commit_interval: Seconds between commits.
        folder: RunFolder, or None before `begin`.
        starts: Starts, or None before they are found.
    """

    path: str
    definition: RunDefinition
    commit_interval: float
    folder: object = None
    starts: Starts | None = None
    _make: object = None

    @contextlib.contextmanager
    def reserved(self):
        """Keeps others from beginning a run in the folder, where this one has not begun yet.

        Raises:
            RunLockedError: When another process has begun one meanwhile, or is about to.
            RunFolderError: When the folder has become unusable since it was looked at.
            OSError: When it cannot be made.
        """
        from tfbnn.storage import RunFolder

        if self.folder is not None:
            yield
        else:
            with RunFolder.reserved(self.path) as self._make:
                yield

    @property
    def plan(self):
        """Groups of chains and block length, as arguments of `make_program`; empty for a new run."""
        return {} if self.folder is None else dict(self.folder.description["plan"])

    def committed_result(self, fewest):
        """SamplingResult of what is committed, or None with fewer than `fewest` draws per chain."""
        if self.folder is None or num_committed(self.folder) < fewest:
            return None
        committed = read_lanes(self.folder)
        if committed.draws.shape[1] < fewest:
            return None  # the last commit is damaged
        return gather_result(
            *committed,
            start_log_prob=self.folder.arrays["start_log_prob"],
            seconds=self.spent_seconds(),
        )

    @property
    def begun_in_workers(self):
        """Whether worker processes advanced the chains when the run was begun; None for a new run."""
        return None if self.folder is None else bool(self.folder.description["in_workers"])

    def begin(self, groups, length, in_workers, start_log_prob):
        """Makes the folder of a new run, or takes down that a run is to have more results.

        A new run begins in `reserved`.

        Args:
            groups: Lists of chains, a lane each.
            length: Transitions per block.
            in_workers: Whether worker processes advance the chains.
            start_log_prob: Log densities at the starts [C].
        """
        if self.folder is None:
            description = self.definition.to_json() | {
                "start": {"text": self.starts.text, "seconds": self.starts.seconds},
                "plan": {"groups": groups, "length": length},
                "in_workers": in_workers,
            }
            arrays = {"theta": self.starts.theta, "start_log_prob": start_log_prob}
            arrays |= self.definition.to_arrays()
            self.folder = self._make(description, arrays, len(groups))
        elif self.definition.num_results > self.folder.description["num_results"]:
            description = self.folder.description | {"num_results": self.definition.num_results}
            self.folder.replace_description(description)

    def spent_seconds(self):
        """Dict phase -> wall-clock seconds that the run has spent so far, by its checkpoints."""
        lanes = range(self.folder.num_lanes)
        return spent_seconds([self.folder.checkpoint(lane) for lane in lanes])


@contextlib.contextmanager
def opened_recording(definition, options):
    """Yields the Recording of a fit, or None where its draws are to stay in memory.

    Without `options.output`, worker processes write to a folder that is removed at the end.

    Raises:
        RunFolderError: When the folder holds a run and this is not to go on with it, or when it was
            begun with other data or settings; and when it holds something else.
        OSError: When the folder cannot be made.
    """
    if options.output is not None:
        yield _open_recording(definition, options)
    elif options.num_workers in ("auto", 1):
        yield None
    else:
        with tempfile.TemporaryDirectory(prefix="tfbnn-", ignore_cleanup_errors=True) as folder:
            yield Recording(folder, definition, options.commit_interval)


def _open_recording(definition, options):
    from tfbnn.storage import RunFolder
    from tfbnn.system.atomic import make_folder

    folder = RunFolder.find(options.output)
    if folder is None:
        make_folder(options.output)  # shows now what would fail after pretraining
        return Recording(options.output, definition, options.commit_interval)
    if not options.resume:
        raise RunFolderError(
            f"{options.output!r} holds a run already. Pass resume=True (--resume) to go on with "
            "it, or another folder."
        )
    check_same_run(folder, definition)
    return Recording(
        options.output, definition, options.commit_interval, folder, read_starts(folder)
    )


def spent_seconds(checkpoints):
    """Dict phase -> wall-clock seconds that a run has spent, by checkpoints, None where missing."""
    spent = [checkpoint.counters["seconds"] for checkpoint in checkpoints if checkpoint]
    return {phase: max([0.0, *(seconds[phase] for seconds in spent)]) for phase in PHASES}


def read_starts(folder):
    """The Starts of the run in a RunFolder."""
    start = folder.description["start"]
    return Starts(folder.arrays["theta"], start["text"], start["seconds"])


def read_lanes(folder, indices=None):
    """Committed of some lanes of a RunFolder, of all by default."""
    indices = range(folder.num_lanes) if indices is None else indices
    groups = [folder.description["plan"]["groups"][index] for index in indices]
    num_chains, num_results = sum(map(len, groups)), num_committed(folder, indices)
    arrays, counters, first = {}, [], 0
    for index, group in zip(indices, groups):
        # One lane after the other, so that no more than one is in memory twice.
        lane = folder.read(index)
        counters.append(lane.counters)
        num_results = min(num_results, len(lane.draws))
        if num_results:
            parts = {**lane.statistics, None: lane.draws}
            arrays = arrays or {
                name: np.empty((num_chains, num_results, *part.shape[2:]), part.dtype)
                for name, part in parts.items()
            }
            for name, array in arrays.items():
                rows = np.moveaxis(parts[name][:num_results], 0, 1)
                array[first : first + len(group), :num_results] = rows
        first += len(group)
    arrays = {name: array[:, :num_results] for name, array in arrays.items()}
    draws = arrays.pop(None, np.empty((num_chains, 0, 0)))
    return Committed(draws, arrays, counters)


def num_committed(folder, indices=None):
    """Draws that every chain of some lanes has committed, of all lanes by default."""
    indices = range(folder.num_lanes) if indices is None else indices
    checkpoints = [folder.checkpoint(index) for index in indices]
    return min(0 if found is None else found.num_draws for found in checkpoints)
