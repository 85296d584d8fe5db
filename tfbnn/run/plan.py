"""The plan of a run: warm-up windows, mixing, sampling, and the length of compiled blocks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tfbnn.engine.basis.adaptation import adaptation_windows
from tfbnn.run.config import GroupLayout, RunConfig
from tfbnn.run.counters import Counters
from tfbnn.spec.density_spec import Sampled

ADAPTING_SHARE = 0.8
# Transitions of the first stages of warm-up where nothing else parts it.
_FIRST_STAGE = 8
# Transitions after which dual averaging has found a step size that can be frozen.
_SETTLING = 10
# Size of the draws of a block, and the most transitions of one.
_BLOCK_BYTES, LONGEST_BLOCK = 64e6, 4096


class Planned(Protocol):
    """Settings of a kernel as a plan sees them."""

    @property
    def adapts(self) -> bool: ...
    @property
    def preconditions(self) -> bool: ...
    @property
    def temperatures(self) -> tuple[float, ...]: ...
    def work(self, spec: Sampled) -> float: ...
    def gains_from_xla(self, spec: Sampled, num_rows: int) -> bool: ...


@dataclass(frozen=True)
class Stage:
    """Transitions under constant rules.

    Attributes:
        phase: "warmup" or "sampling".
        length: Number of transitions.
        adapt_step: Whether the step size adapts.
        renew: Whether moments are collected and the preconditioner is renewed at the end.
    """

    phase: str
    length: int
    adapt_step: bool = False
    renew: bool = False


@dataclass(frozen=True)
class Plan:
    """The chains that advance together, and their transitions.

    Attributes:
        groups: Lists of chains, a chain group each.
        block_length: Transitions per block, at most.
        stages: The stages of a chain.
        num_results: Draws to be kept per chain, at most.
        stride: Transitions per kept draw.
        is_open: Whether the run may end with fewer draws.
    """

    groups: list[list[int]]
    block_length: int
    stages: list[Stage]
    num_results: int
    stride: int
    is_open: bool = False

    @property
    def layout(self) -> GroupLayout:
        """The part that does not follow from the settings of the run alone."""
        return GroupLayout(self.groups, self.block_length)

    def cut_to(self, num_results: int) -> "Plan":
        """Return the same with so many draws per chain, no more than it has: its beginning."""
        length = num_results * self.stride
        stages = [
            stage if stage.phase == "warmup" else replace(stage, length=length)
            for stage in self.stages
        ]
        return replace(self, stages=stages, num_results=num_results)

    def with_warmup_cut(self, length: int) -> "Plan":
        """Return the same with a warm-up that is over after so many transitions, and renews nothing then."""
        stages, begin = [], 0
        for stage in self.stages:
            part = min(stage.length, length - begin) if stage.phase == "warmup" else stage.length
            is_cut = part < stage.length or begin + part == length
            begin += stage.length
            if part > 0:
                stages.append(replace(stage, length=part, renew=stage.renew and not is_cut))
        return replace(self, stages=stages)

    def warmup_cut_after(self, transition: int) -> int:
        """Return where warm-up may be cut once a chain has made so many transitions of it.

        Dual averaging forgets its first steps, which are too long, in some ten updates. It gets no
        more transitions for that than there were, as these may have taken all the time there is.
        """
        index, done = self.position(transition)
        settles = self.stages[index].adapt_step and done < _SETTLING
        more = min(_SETTLING - done, transition) if settles else 0
        return min(transition + max(more, 1), self.num_transitions("warmup"))

    def is_warming_up(self, group: Counters) -> bool:
        """Return whether a chain group has transitions of its warm-up left, which may have been cut."""
        return group.transitions["warmup"] < self._warmup_of(group)

    def end_of(self, group: Counters) -> int:
        """Transitions of a chain group in all."""
        return self._warmup_of(group) + self.num_transitions("sampling")

    def _warmup_of(self, group: Counters) -> int:
        return self.num_transitions("warmup") if group.warmup_cut is None else group.warmup_cut

    def num_transitions(self, phase: str) -> int:
        """Transitions of a chain in a phase."""
        return sum(stage.length for stage in self.stages if stage.phase == phase)

    def num_kept(self, transition: int) -> int:
        """Draws that are kept after so many transitions of a chain."""
        return max(transition - self.num_transitions("warmup"), 0) // self.stride

    def position(self, transition: int) -> tuple[int, int]:
        """(Index of the stage of the next transition, transitions of that stage that are over)."""
        for index, stage in enumerate(self.stages):
            if transition < stage.length:
                return index, transition
            transition -= stage.length
        return len(self.stages), transition

    def stage(self, transition: int) -> Stage | None:
        """Return the stage of the next transition after so many, None at the end."""
        index, _ = self.position(transition)
        return self.stages[index] if index < len(self.stages) else None

    def chains(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the chains of the chain groups of these numbers."""
        return tuple(chain for number in numbers for chain in self.groups[number])


def make_plan(
    settings: Planned, config: RunConfig, groups: list[list[int]], length: int | None = None
) -> Plan:
    """Return the plan of a run.

    Args:
        settings: Its kernel, with a definite preconditioner.
        config: RunConfig.
        groups: Lists of chains, a chain group each.
        length: Transitions per block, at most; by default as many as `block_length` says.
    """
    sampling = config.sampling
    if length is None:
        length = block_length(config.spec, settings, len(groups[0]), sampling.num_transitions)
    stages = make_stages(settings, sampling.num_burnin_steps, sampling.num_results, sampling.stride)
    is_open = sampling.until is not None
    return Plan(groups, length, stages, sampling.num_results, sampling.stride, is_open)


def make_stages(
    settings: Planned, num_burnin_steps: int, num_results: int, stride: int
) -> list[Stage]:
    """Return the stages of one chain: the first 80 % of warm-up adapt, the rest mix with all frozen."""
    num_adapting = round(ADAPTING_SHARE * num_burnin_steps)
    if not (settings.adapts or settings.preconditions):
        num_adapting = 0
    windows = adaptation_windows(num_adapting) if settings.preconditions else []
    if not any(renew for _, renew in windows):
        windows = [(length, False) for length in _doubling(num_adapting)]
    stages = [Stage("warmup", length, settings.adapts, renew) for length, renew in windows]
    rest = num_burnin_steps - num_adapting
    stages += [Stage("warmup", length) for length in (_doubling(rest) if not windows else [rest])]
    stages.append(Stage("sampling", num_results * stride))
    return [stage for stage in stages if stage.length]


def _doubling(length: int) -> list[int]:
    """Parts of so many transitions, each as long as all before it.

    Where a part ends the log density is measured anew that others are taken relative to: in the middle
    of a climb, and in half of warm-up at the latest.
    """
    ends = [0]
    while ends[-1] < length:
        ends.append(min(length, max(_FIRST_STAGE, 2 * ends[-1])))
    return [end - begin for begin, end in zip(ends, ends[1:])]


def block_length(spec: Sampled, settings: Planned, num_chains: int, total: int) -> int:
    """For how many transitions a block has keys, and room for draws: a power of two.

    How many it makes is decided while the run goes on, by how long they take
    (`tfbnn.engine.sampling.work`). This is the most, which is part of the shapes that are compiled,
    and so is the number of draws kept of them (this over the stride). So runs share a program
    whatever their rows; what decides is the memory of the draws, and a power of two of transitions
    in all, beyond which there would be nothing but memory to clear in every call.

    Args:
        spec: What is sampled.
        settings: Kernel settings.
        num_chains: Chains that advance together in the program, each with all its rungs.
        total: Transitions of the whole run, which no block needs to exceed.
    """
    parameters = spec.num_parameters * num_chains * len(settings.temperatures)
    memory = _BLOCK_BYTES / (8.0 * parameters)
    return power_of_two(min(LONGEST_BLOCK, memory, total))


def power_of_two(number: float) -> int:
    """Return the largest power of two that is no more than a number, at least one."""
    return 1 << (max(int(number), 1).bit_length() - 1)
