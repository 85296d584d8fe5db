"""What an ensemble says of its origin."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any

from tfbnn.posterior.compression.record import Compression


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


_RECORDS = {"chain_weights": WeightsOrigin, "compression": Compression}


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
        max_tree_depth: Largest depth of the trees of NUTS.
        adapts_step_size: Whether warm-up tuned the step size.
        pretraining: Settings as text.
        num_training_rows: N.
        data_sha256: Hash of the training rows.
        versions: Of the libraries that decide the draws.
        target_names, noise_columns: Names of the columns in the user's table.
        num_results_requested: Draws per chain asked for, None for draws that were chosen since.
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
    max_tree_depth: int | None = None
    adapts_step_size: bool | None = None
    pretraining: str | None = None
    num_burnin_steps: int | None = None
    num_steps_between_results: int | None = None
    jit_compile: bool | None = None
    num_training_rows: int | None = None
    data_sha256: str | None = None
    versions: dict[str, str] | None = None
    target_names: list[str] | None = None
    noise_columns: list[str] | None = None
    num_results_requested: int | None = None
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
            TypeError: For records of weights or of a compression that are none.
        """
        records = {
            name: kind(**entries[name])
            for name, kind in _RECORDS.items()
            if entries.get(name) is not None
        }
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


_ENTRIES = {entry.name for entry in fields(Provenance)} - {"others", "stated"}


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
