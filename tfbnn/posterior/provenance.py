"""What an ensemble says of its origin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any

from tfbnn.posterior.compression.record import Compression
from tfbnn.posterior.record_kinds import (
    COUNT,
    FLAG,
    NUMBER,
    OBJECT,
    POSITIVE,
    TEXT,
    TEXTS,
    Kind,
    check_entries,
    check_entry,
    integer,
)
from tfbnn.spec.choices import Choice, choices_to_json

# How `not_sampled` begins after a run that ended before its first draw.
PRETRAINED, GIVEN_STARTS = "pretrained networks", "where the chains started"


@dataclass(frozen=True)
class WeightsOrigin:
    """How stacking came to the weights of the chains.

    Attributes:
        method: "stacking on validation rows" or "stacking by PSIS-LOO".
        num_rows: Held-out rows.
        log_score_uniform, log_score_stacked: Mean per row of the log density of these rows under
            equal weights and under those found, in transformed space.
    """

    method: str
    num_rows: int
    log_score_uniform: float
    log_score_stacked: float

    @classmethod
    def from_json(cls, entries: Any) -> WeightsOrigin:
        """Of what a file says.

        Raises:
            TypeError: For entries that are no such record.
        """
        kinds = {"method": TEXT, "num_rows": POSITIVE}
        kinds |= {"log_score_uniform": NUMBER, "log_score_stacked": NUMBER}
        check_entries("chain_weights", entries, kinds)
        return cls(**entries)


def _choices_from_json(entries: Any) -> tuple[Choice, ...]:
    check_entry("choices", entries, OBJECT)
    check_entries("choices", entries, dict.fromkeys(entries, {"chosen": TEXT, "why": TEXT}))
    return tuple(Choice(what, **entry) for what, entry in entries.items())


_RECORDS: dict[str, Callable[[Any], Any]] = {
    "choices": _choices_from_json,
    "chain_weights": WeightsOrigin.from_json,
    "compression": Compression.from_json,
}
# Of the other entries; each may be null as well.
_KINDS: dict[str, Kind] = {
    "seed": integer("0 or more", 0, math.inf),
    "kernel": TEXT,
    "bias": TEXT,
    "not_sampled": TEXT,
    "max_tree_depth": integer("0 to 1000", 0, 1000),  # trees of two to the power of it
    "adapts_step_size": FLAG,
    "pretraining": TEXT,
    "initial_state": TEXT,
    "num_burnin_steps": COUNT,
    "num_steps_between_results": COUNT,
    "jit_compile": FLAG,
    "num_training_rows": COUNT,
    "data_sha256": TEXT,
    "versions": OBJECT,
    "target_names": TEXTS,
    "noise_columns": TEXTS,
    "num_results_requested": COUNT,
    "until": TEXT,
    "ended": TEXT,
    "num_divergent": COUNT,
    "log_evidence": OBJECT,
    "created_at": TEXT,
}


@dataclass(frozen=True)
class Provenance:
    """Where the draws of an ensemble come from; made with `stating` or out of a file's JSON.

    Whatever is unknown or does not apply is None. A file tells the two apart, as an entry that is
    not there and as null, and may have entries of other releases: `stated` and `others` keep both,
    so that a file that is read and written again says what it said.

    Attributes:
        seed, num_burnin_steps, num_steps_between_results, jit_compile: As given to the fit.
        kernel: Resolved settings of the kernel as text.
        bias: Why these draws are not exactly of the posterior, or None.
        not_sampled: What the networks are where no chain drew them, "pretrained networks: the run
            was stopped before its first draw" say; None for draws.
        max_tree_depth: Largest depth of the trees of NUTS.
        adapts_step_size: Whether warm-up tuned the step size.
        pretraining: Settings as text.
        initial_state: Where the chains began, in words, of a fit that was told; else None.
        choices: What was "auto" in model and fit, what it came to, and why.
        num_training_rows: N.
        data_sha256: Hash of the training rows.
        versions: Of the libraries that decide the draws.
        target_names, noise_columns: Names of the columns in the user's table.
        num_results_requested: Draws per chain asked for, None for draws that were chosen since; the
            most of them with `until`.
        until: When the run was to end, as text: "ess=400,rhat=1.01"; None where their number said.
        ended: Why it ended: "ESS 412 and R-hat 1.006 after 800 draws per chain" say.
        num_divergent: Divergent transitions in the sampling phase, of all chains.
        log_evidence: `tfbnn.run.evidence.LogEvidence` as JSON.
        chain_weights: How the chains' weights came about where they are stacked.
        compression: How the draws were chosen out of those of the run.
        created_at: When the model file was written.
        others: Entries that this release does not know.
        stated: Names of all entries, in the order of the file.
    """

    seed: int | None = None
    kernel: str | None = None
    bias: str | None = None
    not_sampled: str | None = None
    max_tree_depth: int | None = None
    adapts_step_size: bool | None = None
    pretraining: str | None = None
    initial_state: str | None = None
    choices: tuple[Choice, ...] | None = None
    num_burnin_steps: int | None = None
    num_steps_between_results: int | None = None
    jit_compile: bool | None = None
    num_training_rows: int | None = None
    data_sha256: str | None = None
    versions: dict[str, str] | None = None
    target_names: list[str] | None = None
    noise_columns: list[str] | None = None
    num_results_requested: int | None = None
    until: str | None = None
    ended: str | None = None
    num_divergent: int | None = None
    log_evidence: dict[str, Any] | None = None
    chain_weights: WeightsOrigin | None = None
    compression: Compression | None = None
    created_at: str | None = None
    others: dict[str, Any] = field(default_factory=dict)
    stated: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Provenance:
        """Of what `to_json` gave.

        Raises:
            TypeError: For entries that are something else, by name.
            ValueError: For a record that contradicts itself.
        """
        said = {name: entry for name, entry in entries.items() if entry is not None}
        for name in _KINDS.keys() & said.keys():
            check_entry(name, said[name], _KINDS[name])
        records = {name: read(said[name]) for name, read in _RECORDS.items() if name in said}
        return cls().stating(**entries | records)

    def to_json(self) -> dict[str, Any]:
        """JSON-able, as model files and run folders hold it."""
        held = vars(self) | self.others
        return {name: _plain(held[name]) for name in self.stated}

    def stating(self, /, **entries: Any) -> Provenance:
        """The same with these entries, of which files say null where they are None."""
        known = {name: value for name, value in entries.items() if name in _ENTRIES}
        others = {name: value for name, value in entries.items() if name not in _ENTRIES}
        stated = tuple(dict.fromkeys((*self.stated, *entries)))
        return replace(self, **known, others=self.others | others, stated=stated)

    @property
    def column_names(self) -> dict[str, list[str]]:
        """What is said of target_names and noise_columns, for `stating`."""
        names = {"target_names": self.target_names, "noise_columns": self.noise_columns}
        return {name: columns for name, columns in names.items() if columns is not None}

    @property
    def transitions_per_draw(self) -> int:
        """Transitions from one draw that was kept to the next."""
        return (self.num_steps_between_results or 0) + 1

    @property
    def is_unfinished(self) -> bool:
        """Whether the networks are what a run left that ended before its first draw."""
        return (self.not_sampled or "").startswith((PRETRAINED, GIVEN_STARTS))


_ENTRIES = {entry.name for entry in fields(Provenance)} - {"others", "stated"}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):  # choices
        return choices_to_json(value)
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
