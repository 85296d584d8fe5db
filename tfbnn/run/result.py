"""The draws and the numbers of a run, and the error of its chains."""

import os
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tfbnn.exceptions import ChainError
from tfbnn.posterior.ensemble import Readouts, pop_readouts
from tfbnn.run.counters import PHASES, Counters, Seconds
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath

# Dict tuple of chains of a chain group -> its error.
Failures = dict[tuple[int, ...], BaseException]


@dataclass(frozen=True)
class Ending:
    """Outcome of advancing the chain groups of a run.

    Attributes:
        interrupted: Whether a KeyboardInterrupt ended it.
        failures: Dict tuple of chains -> the exception that ended them.
        notes: Lines on tasks of a cluster that were tried again.
        ended: Reason why a stopping rule ended the run, before its last draw or at it. None without a
            stopping rule, or if the run was stopped.
    """

    interrupted: bool = False
    failures: Failures = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    ended: str | None = None


class Kept(NamedTuple):
    """Draws of chain groups of a run, cut to those that all of their chains have.

    Attributes:
        draws: [C, S, P].
        statistics: Dict name -> [C, S, ...].
        counters: Counters of each group.
    """

    draws: Array
    statistics: dict[str, Array]
    counters: list[Counters]

    def superchains(self, of_all: Array | None) -> Array | None:
        """Return the superchains of these chains, from those of all chains as in `Starts`."""
        chains = [chain for group in self.counters for chain in group.chains]
        return None if of_all is None else of_all[chains]


@dataclass(frozen=True, kw_only=True)
class Result(Ending):
    """The draws and the numbers of a run, all NumPy, and how it ended.

    Attributes:
        draws: [C, S, P]. S is smaller than requested when the run was stopped, C is smaller when chains
            failed.
        sample_stats: Dict name -> [C, S].
        acceptance_rate: Mean acceptance per chain over the sampling phase [C].
        num_divergent: Divergent transitions per chain in the sampling phase [C].
        num_sampled: Transitions per chain in it [C]; chains are cut to the draws that all have.
        num_gradients: Dict phase -> gradients per chain [C].
        step_size: Step size per chain [C].
        start_log_prob: Log density at the starts of all chains.
        warmup_cut: The fewest warm-up transitions if a time limit has cut warm-up short, else None.
        seconds: Seconds of compilation, warm-up, sampling and the start of workers.
        rung_log_likelihood: Log likelihood at every rung [C, S, m]; None with a single rung.
        readouts: Readouts if the readout was collapsed, else None.
        superchains: As in `Starts`, for the chains that have draws.
    """

    draws: Array
    sample_stats: dict[str, Array]
    acceptance_rate: Array
    num_divergent: Array
    num_sampled: Array
    num_gradients: dict[str, Array]
    step_size: Array
    start_log_prob: Array
    seconds: Seconds
    warmup_cut: int | None = None
    rung_log_likelihood: Array | None = None
    readouts: Readouts | None = None
    superchains: Array | None = None


def nothing_sampled(start_log_prob: Array, interrupted: bool) -> Result:
    """Return the Result of a run whose chains [C] have not begun."""
    chains = range(len(start_log_prob))
    kept = Kept(np.empty((len(chains), 0, 0)), {}, [Counters.nothing(chains)])
    return gather_result(kept, start_log_prob, Seconds(), Ending(interrupted))


def gather_result(
    kept: Kept,
    start_log_prob: Array,
    seconds: Seconds,
    ending: Ending = Ending(),
    superchains: Array | None = None,
) -> Result:
    """Return the Result of chain groups with their kept draws; `superchains` are those of all chains."""
    groups, statistics = kept.counters, dict(kept.statistics)
    statistics.pop("rung_draws", None)  # folders of release 0.2 may hold it
    num_sampled = np.array(
        [group.transitions["sampling"] for group in groups for _ in group.chains]
    )
    return Result(
        draws=kept.draws,
        rung_log_likelihood=statistics.pop("rung_log_likelihood", None),
        readouts=pop_readouts(statistics),
        sample_stats=statistics,
        acceptance_rate=np.concatenate([group.acceptance_sum["sampling"] for group in groups])
        / np.maximum(num_sampled, 1),
        num_divergent=np.concatenate([group.num_divergent for group in groups]),
        num_sampled=num_sampled,
        num_gradients={
            phase: np.concatenate([group.num_gradients[phase] for group in groups])
            for phase in PHASES
        },
        step_size=np.concatenate([group.step_size for group in groups]),
        start_log_prob=start_log_prob,
        superchains=kept.superchains(superchains),
        warmup_cut=min((group.warmup_cut for group in groups if group.warmup_cut), default=None),
        seconds=seconds,
        **vars(ending),
    )


def chain_error(
    failures: Failures,
    output: StrPath | None,
    kept: str = "model.posterior",
    command: str | None = "tfbnn resume",
) -> ChainError:
    """Make a ChainError that names the chains of failures, dict tuple of chains -> exception.

    Args:
        failures: At least one.
        output: The run folder, or None.
        kept: Text on where the draws of the other chains are.
        command: Command that resumes a run folder, or None.
    """
    causes: dict[str, list[int]] = {}
    for chains, error in failures.items():
        causes.setdefault(f"{type(error).__name__}: {error}".rstrip("."), []).extend(chains)
    texts = [f"chain {', '.join(map(str, chains))}: {cause}" for cause, chains in causes.items()]
    rest = f"The draws of the others are in {kept}."
    if output is not None and os.path.isdir(output):
        rest += " Go on with resume=True" + (f", or: {command} {output}" if command else ".")
    raised = ChainError(f"{len(failures)} of the runs of chains failed, {'; '.join(texts)}. {rest}")
    raised.__cause__ = next(iter(failures.values()))
    return raised
