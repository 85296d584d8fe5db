"""The plan of a run: windows of warm-up, mixing, sampling, and the length of compiled blocks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tfbnn.engine.basis.adaptation import adaptation_windows
from tfbnn.run.config import GroupLayout, RunConfig
from tfbnn.run.counters import Counters
from tfbnn.spec.density_spec import Sampled

ADAPTING_SHARE = 0.8
# Transitions of the first stages of warm-up, if no adaptation windows divide it.
_FIRST_STAGE = 8
# Transitions after which dual averaging has found a step size that can be frozen.
_SETTLING = 10
# Largest size in bytes of the draws of a block, and its largest number of transitions.
_BLOCK_BYTES, LONGEST_BLOCK = 64e6, 4096


class Planned(Protocol):
    """Kernel settings, as a plan uses them."""

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
    """Consecutive transitions with the same adaptation rules.

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
    """The chain groups of a run, and the transitions of their chains.

    Attributes:
        groups: Chain groups, each a list of chains that advance together.
        block_length: Most transitions per block.
        stages: The stages of a chain.
        num_results: Most draws to keep per chain.
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
        """The part of the plan that does not follow from the settings of the run alone."""
        return GroupLayout(self.groups, self.block_length)

    def cut_to(self, num_results: int) -> "Plan":
        """Return the beginning of this plan, with at most as many draws per chain as it has."""
        length = num_results * self.stride
        stages = [
            stage if stage.phase == "warmup" else replace(stage, length=length)
            for stage in self.stages
        ]
        return replace(self, stages=stages, num_results=num_results)

    def with_warmup_cut(self, length: int) -> "Plan":
        """Return this plan with warm-up cut to `length` transitions and no renewal at the cut."""
        stages, begin = [], 0
        for stage in self.stages:
            part = min(stage.length, length - begin) if stage.phase == "warmup" else stage.length
            is_cut = part < stage.length or begin + part == length
            begin += stage.length
            if part > 0:
                stages.append(replace(stage, length=part, renew=stage.renew and not is_cut))
        return replace(self, stages=stages)

    def warmup_cut_after(self, transition: int) -> int:
        """Return the transition at which warm-up may end, for a chain that has made `transition` of them.

        Dual averaging forgets its first steps, which are too long, in some ten updates. They get at most as
        many transitions as were made already, because those may have taken all the available time.
        """
        index, done = self.position(transition)
        settles = self.stages[index].adapt_step and done < _SETTLING
        more = min(_SETTLING - done, transition) if settles else 0
        return min(transition + max(more, 1), self.num_transitions("warmup"))

    def is_warming_up(self, group: Counters) -> bool:
        """Return whether a chain group has warm-up transitions left, in view of a possible cut."""
        return group.transitions["warmup"] < self._warmup_of(group)

    def end_of(self, group: Counters) -> int:
        """Return the total number of transitions of a chain group."""
        return self._warmup_of(group) + self.num_transitions("sampling")

    def _warmup_of(self, group: Counters) -> int:
        return self.num_transitions("warmup") if group.warmup_cut is None else group.warmup_cut

    def num_transitions(self, phase: str) -> int:
        """Return the number of transitions of a chain in a phase."""
        return sum(stage.length for stage in self.stages if stage.phase == phase)

    def num_kept(self, transition: int) -> int:
        """Return the number of draws that a chain has kept after `transition` transitions."""
        return max(transition - self.num_transitions("warmup"), 0) // self.stride

    def position(self, transition: int) -> tuple[int, int]:
        """Return (index of the stage of the next transition, finished transitions of that stage)."""
        for index, stage in enumerate(self.stages):
            if transition < stage.length:
                return index, transition
            transition -= stage.length
        return len(self.stages), transition

    def stage(self, transition: int) -> Stage | None:
        """Return the stage of the next transition after `transition` transitions; None at the end."""
        index, _ = self.position(transition)
        return self.stages[index] if index < len(self.stages) else None

    def chains(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the chains of the chain groups with these numbers."""
        return tuple(chain for number in numbers for chain in self.groups[number])


def make_plan(
    settings: Planned, config: RunConfig, groups: list[list[int]], length: int | None = None
) -> Plan:
    """Return the plan of a run.

    Args:
        settings: Its kernel, with a definite preconditioner.
        config: RunConfig.
        groups: Chain groups, each a list of chains.
        length: Most transitions per block; by default the result of `block_length`.
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
    """Return the stages of a chain: the first 80 % of warm-up adapt, the rest mix with all frozen."""
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
    """Split `length` transitions into parts, each as long as all parts before it.

    At the end of a part the reference value of the log density is measured anew. This happens during the
    climb, and at the latest at half of warm-up.
    """
    ends = [0]
    while ends[-1] < length:
        ends.append(min(length, max(_FIRST_STAGE, 2 * ends[-1])))
    return [end - begin for begin, end in zip(ends, ends[1:])]


def block_length(spec: Sampled, settings: Planned, num_chains: int, total: int) -> int:
    """Return the most transitions of a block, a power of two.

    A block has random keys and room for the draws of this number of transitions. The actual number is
    decided during the run, by their duration (`tfbnn.engine.sampling.work`). The maximum is part of the
    compiled shapes, and so is the number of draws kept (the maximum over the stride). It is limited by
    the memory of the draws and by the total number of transitions; a larger maximum would only add
    memory to clear in every call. It does not depend on the rows, so runs with different rows share a
    program.

    Args:
        spec: Spec that is sampled.
        settings: Kernel settings.
        num_chains: Chains that advance together in the program, each with all its rungs.
        total: Transitions of the whole run, which no block needs to exceed.
    """
    parameters = spec.num_parameters * num_chains * len(settings.temperatures)
    memory = _BLOCK_BYTES / (8.0 * parameters)
    return power_of_two(min(LONGEST_BLOCK, memory, total))


def power_of_two(number: float) -> int:
    """Return the largest power of two that is not larger than a number, at least one."""
    return 1 << (max(int(number), 1).bit_length() - 1)
