"""Records of the origin of an ensemble."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import Annotated, Any, TypedDict

from tfbnn.posterior.record_kinds import (
    OBJECT,
    TEXT,
    Count,
    Counts,
    Number,
    Positive,
    Size,
    check_entries,
    check_entry,
    integer,
    kinds_of,
)
from tfbnn.spec.choices import Choice, choices_to_json

# Beginnings of `not_sampled` after a run that ended before its first draw.
PRETRAINED, GIVEN_STARTS = "pretrained networks", "where the chains started"


class Sizes(TypedDict):
    """Average and largest absolute value of relative changes, over inputs and outputs."""

    average: Size
    largest: Size


class Change(TypedDict):
    """Differences between the predictions of two ensembles; `measure_change` defines the numbers."""

    num_rows: Positive
    mean_stddev: Number
    mean: Sizes
    stddev: Sizes
    quantiles: Sizes


@dataclass(frozen=True)
class Compression:
    """Record of a compression by `BayesianMLP.compress`, and of the change it made.

    Attributes:
        method: "kernel_thinning" or "stride"; in older files possibly "stein".
        num_draws: Number of chosen draws.
        num_distinct: Number of different draws among them.
        num_available: Number of draws to choose from, of chains with a weight.
        num_candidates: The same, or fewer if the kernel had to be limited to equally spaced draws.
        draws_per_chain: List of the numbers of draws chosen from each chain.
        num_inputs: Number of inputs at which kernel thinning compared predictions.
        change: The Change at inputs that played no role in the choice.
    """

    method: str
    num_draws: Positive
    num_distinct: Positive
    num_available: Positive
    num_candidates: Positive
    draws_per_chain: Counts
    num_inputs: Count
    change: Change

    @classmethod
    def from_json(cls, entries: Any) -> Compression:
        """Read the record from the JSON of a file.

        Raises:
            TypeError: For entries that are no such record.
            ValueError: For numbers that contradict each other.
        """
        record: Compression = _from_json("compression", cls, entries)
        for name, most in (
            ("num_distinct", record.num_draws),
            ("num_draws", record.num_available),
            ("num_candidates", record.num_available),
        ):
            if getattr(record, name) > most:
                raise ValueError(
                    f"compression.{name} must be at most {most}, found {getattr(record, name)}."
                )
        return record

    @property
    def choice(self) -> str:
        """One line on the number of chosen draws and the method."""
        text = f"{self.num_draws} of {self.num_available} draws by {self.method}"
        if self.num_distinct < self.num_draws:
            text += f", {self.num_distinct} of them different"
        if self.num_candidates < self.num_available:
            text += f", out of {self.num_candidates} equally spaced ones"
        return text

    def summary(self) -> str:
        """Return the choice and the change in a few aligned lines."""
        change = self.change
        lines = [
            ("draws", self.choice),
            ("per chain", " ".join(map(str, self.draws_per_chain))),
            ("change", f"at {change['num_rows']} inputs that played no role in the choice"),
            ("", f"of the mean stddev {100 * change['mean_stddev']:+.2f} %"),
            ("", f"of a stddev {_sizes_text(change['stddev'])}"),
            ("", f"of a mean {_sizes_text(change['mean'])} of the stddev"),
            ("", f"of the 16 and 84 % quantiles {_sizes_text(change['quantiles'])} of the stddev"),
        ]
        return "\n".join(f"{label:<13}{text}" for label, text in lines)


def _sizes_text(sizes: Sizes) -> str:
    return f"{100 * sizes['average']:.2f} % on average, at most {100 * sizes['largest']:.2f} %"


@dataclass(frozen=True)
class WeightsOrigin:
    """Origin of chain weights that stacking found.

    Attributes:
        method: "stacking on validation rows" or "stacking by PSIS-LOO".
        num_rows: Number of held-out rows.
        log_score_uniform, log_score_stacked: Mean per row of the log density of these rows under
            equal weights and under the stacking weights, in transformed space.
    """

    method: str
    num_rows: Positive
    log_score_uniform: Number
    log_score_stacked: Number


def _choices_from_json(entries: Any) -> tuple[Choice, ...]:
    check_entry("choices", entries, OBJECT)
    check_entries("choices", entries, dict.fromkeys(entries, {"chosen": TEXT, "why": TEXT}))
    return tuple(Choice(what, **entry) for what, entry in entries.items())


def _from_json(name: str, record: type, entries: Any) -> Any:
    check_entries(name, entries, kinds_of(record))
    return record(**entries)


_RECORDS: dict[str, Callable[[Any], Any]] = {
    "choices": _choices_from_json,
    "chain_weights": partial(_from_json, "chain_weights", WeightsOrigin),
    "compression": Compression.from_json,
}


@dataclass(frozen=True)
class Provenance:
    """Origin of the draws of an ensemble; built by `stating` or from the JSON of a file.

    Entries that are unknown or do not apply are None. A file distinguishes the two: the entry is
    missing, or null. It may also have entries of other releases. `stated` and `others` keep both,
    so that a file does not change if it is read and written again.

    Attributes:
        seed, num_burnin_steps, num_steps_between_results, jit_compile: As given to the fit.
        kernel: Resolved settings of the kernel as text.
        bias: Reason why these draws are not exactly of the posterior, or None.
        not_sampled: Description of networks that no chain drew, such as "pretrained networks: the
            run was stopped before its first draw"; None for draws.
        max_tree_depth: Largest depth of the trees of NUTS.
        adapts_step_size: Whether warm-up tuned the step size.
        pretraining: Settings as text.
        initial_state: Start of the chains as text if the fit was given one, else None.
        choices: Settings of model and fit that were "auto", their values and the reasons.
        num_training_rows: N.
        data_sha256: Hash of the training rows.
        versions: Versions of the libraries that determine the draws.
        target_names, noise_columns: Names of the columns in the user's table.
        num_results_requested: Requested draws per chain, the largest number with `until`; None for
            draws that were chosen afterwards.
        until: Stopping rule as text, such as "ess=400,rhat=1.01"; None for a fixed number of draws.
        ended: Reason why the run ended, such as "ESS 412 and R-hat 1.006 after 800 draws per
            chain".
        sampling_seconds: Seconds of warm-up and sampling.
        num_divergent: Number of divergent transitions in the sampling phase, over all chains.
        superchains: A number for each chain; chains with the same number started from one network
            or population.
        log_evidence: `tfbnn.run.evidence.LogEvidence` as JSON.
        chain_weights: Origin of the chain weights if they are stacked.
        compression: Record of the choice of these draws among those of the run.
        created_at: Time at which the model file was written.
        others: Entries that this release does not know.
        stated: Names of all entries, in the order of the file.
    """

    seed: Annotated[int, integer("0 or more", 0, math.inf)] | None = None
    kernel: str | None = None
    bias: str | None = None
    not_sampled: str | None = None
    # A tree grows as two to the power of its depth.
    max_tree_depth: Annotated[int, integer("0 to 1000", 0, 1000)] | None = None
    adapts_step_size: bool | None = None
    pretraining: str | None = None
    initial_state: str | None = None
    choices: tuple[Choice, ...] | None = None
    num_burnin_steps: Count | None = None
    num_steps_between_results: Count | None = None
    jit_compile: bool | None = None
    num_training_rows: Count | None = None
    data_sha256: str | None = None
    versions: dict[str, str] | None = None
    target_names: list[str] | None = None
    noise_columns: list[str] | None = None
    num_results_requested: Count | None = None
    until: str | None = None
    ended: str | None = None
    sampling_seconds: Size | None = field(default=None, compare=False)
    num_divergent: Count | None = None
    superchains: Counts | None = None
    log_evidence: dict[str, Any] | None = None
    chain_weights: WeightsOrigin | None = None
    compression: Compression | None = None
    created_at: str | None = None
    others: dict[str, Any] = field(default_factory=dict)
    stated: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Provenance:
        """Read the dict that `to_json` returned.

        Raises:
            TypeError: For entries of another kind; the message names them.
            ValueError: For a record that contradicts itself.
        """
        said = {name: entry for name, entry in entries.items() if entry is not None}
        for name, kind in kinds_of(cls).items():
            if name in said and name in _ENTRIES - _RECORDS.keys():
                check_entry(name, said[name], kind)
        records = {name: read(said[name]) for name, read in _RECORDS.items() if name in said}
        return cls().stating(**entries | records)

    def to_json(self) -> dict[str, Any]:
        """Return the entries as a JSON-able dict, as in model files and run folders."""
        held = vars(self) | self.others
        return {name: _plain(held[name]) for name in self.stated}

    def stating(self, /, **entries: Any) -> Provenance:
        """Return the provenance with these entries added; files hold null for those that are None."""
        known = {name: value for name, value in entries.items() if name in _ENTRIES}
        others = {name: value for name, value in entries.items() if name not in _ENTRIES}
        stated = tuple(dict.fromkeys((*self.stated, *entries)))
        return replace(self, **known, others=self.others | others, stated=stated)

    @property
    def column_names(self) -> dict[str, list[str]]:
        """The entries target_names and noise_columns that are known, for `stating`."""
        names = {"target_names": self.target_names, "noise_columns": self.noise_columns}
        return {name: columns for name, columns in names.items() if columns is not None}

    @property
    def transitions_per_draw(self) -> int:
        """Number of transitions from one kept draw to the next."""
        return (self.num_steps_between_results or 0) + 1

    @property
    def is_unfinished(self) -> bool:
        """True if the networks are those of a run that ended before its first draw."""
        return (self.not_sampled or "").startswith((PRETRAINED, GIVEN_STARTS))


_ENTRIES = {entry.name for entry in fields(Provenance)} - {"others", "stated"}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):  # choices
        return choices_to_json(value)
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
