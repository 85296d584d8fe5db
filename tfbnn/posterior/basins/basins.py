"""`Basins`: groups of the chains of a model, and the posterior mass of each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbnn.diagnostics.wording import counted, label_lines, labelled, named, text_width
from tfbnn.posterior.record_kinds import COUNTS, FLAG, NUMBER, SIZE, Kind, check_entries, list_of
from tfbnn.system.arrays import Array, ReadOnlyArrays

_NUMBERS = list_of(NUMBER, "a list of finite numbers")
_KINDS: Mapping[str, Kind] = {
    "labels": COUNTS,
    "log_evidence": _NUMBERS,
    "log_evidence_stderr": list_of(
        Kind("a number, 0 or more, or null", lambda value: value is None or SIZE.holds(value)),
        "a list of numbers, 0 or more, and nulls",
    ),
    "is_bridged": list_of(FLAG, "a list of flags"),
}


@dataclass(frozen=True, eq=False)
class Basins(ReadOnlyArrays):
    """Findings of `BayesianMLP.basins`, with the basins in the order of their weights, largest first.

    A network has H! 2^H copies per hidden layer of H units (without the 2 where its activation is
    not odd) that are the same function. All basins have the same number of copies, so that copies
    are left out of all evidences and cancel in the weights.

    Attributes:
        labels: Number of the basin that each chain is in [C].
        log_evidence: Natural logarithm of the mass of one copy of each basin [B]: the integral of
            likelihood times prior, transformed targets, as in `log_prob`. 0 with B = 1, where it is
            not needed.
        log_evidence_stderr: Its standard errors [B]; infinite if only an upper bound is known
            because the draws and the normal distribution hardly overlap.
        rhat_within: R-hat of the function over the chains of each basin, for a single chain over
            its halves, at the reference inputs of the model [B, N_ref, K].
        chain_weights: Weights of the chains in averages [C].
    """

    labels: Array
    log_evidence: Array
    log_evidence_stderr: Array
    rhat_within: Array
    chain_weights: Array

    def __repr__(self) -> str:
        """Return the report, as R-hat at every reference input would fill pages."""
        return self.report()

    @classmethod
    def from_json(cls, entries: Any, rhat_within: Array, chain_weights: Array) -> Basins:
        """Read the record that `to_json` returned.

        Raises:
            TypeError: For entries that are no such record.
            ValueError: For entries that contradict each other.
        """
        check_entries("basins", entries, _KINDS)
        count, labels = len(rhat_within), np.array(entries["labels"], int)
        if len(labels) != len(chain_weights) or set(labels) != set(range(count)):
            raise ValueError(
                f"basins.labels must give {len(chain_weights)} chains {counted(count, 'basin')}."
            )
        values, errors, bridged = (
            entries[name] for name in ("log_evidence", "log_evidence_stderr", "is_bridged")
        )
        if {len(values), len(errors), len(bridged)} != {count}:
            raise ValueError(f"basins must have evidences of {counted(count, 'basin')}.")
        # If nothing is bridged, an earlier release stored half the distance of two bounds here. A
        # single basin is not weighted and has no error.
        errors = [
            np.inf if e is None or e and not known else e for e, known in zip(errors, bridged)
        ]
        evidence = np.array(values, float), np.array(errors, float)
        return cls(labels, *evidence, rhat_within, chain_weights)

    def to_json(self) -> dict[str, Any]:
        """Return the entries that JSON can hold, all but `rhat_within` and `chain_weights`."""
        errors = self.log_evidence_stderr.tolist()
        return {
            "labels": self.labels.tolist(),
            "log_evidence": self.log_evidence.tolist(),
            "log_evidence_stderr": [e if np.isfinite(e) else None for e in errors],
            "is_bridged": [0 < e < np.inf for e in errors],
        }

    @property
    def log_weights(self) -> Array:
        """Natural logarithms of the posterior masses [B], as if there were no other basins."""
        return _log_weights(self.log_evidence)

    @property
    def log_weight_stderr(self) -> Array:
        """Standard errors of `log_weights` [B], infinite if an evidence has an infinite error.

        Each evidence is moved by its error, up and down, and the larger changes of the weights are
        added in quadrature. With errors of many units a linear rule would give no error at all.
        """
        if not np.isfinite(self.log_evidence_stderr).all():
            return np.full(len(self.log_evidence), np.inf)
        moves = np.diag(self.log_evidence_stderr)
        changes = [
            np.abs(_log_weights(self.log_evidence + sign * moves) - self.log_weights)
            for sign in (-1.0, 1.0)
        ]
        return np.sqrt(np.square(np.maximum(*changes)).sum(axis=0))

    @property
    def averaged_weights(self) -> Array:
        """Weights of the basins in averages over the chains [B]: the sums of their chain weights."""
        return np.bincount(self.labels, self.chain_weights, len(self.log_evidence))

    def report(self, width: int | None = None) -> str:
        """Return basins and weights as text.

        Args:
            width: Columns to break lines at, by default those of the terminal, else 100.
        """
        width = width or text_width()
        return "\n".join(label_lines(labelled("Basins", self.lines()), width))

    def lines(self) -> list[str]:
        """Return the lines of `report`."""
        count = len(self.log_evidence)
        lines = [
            f"{counted(len(self.labels), 'chain')} in {counted(count, 'basin')}, grouped by their "
            "functions; there may be basins that no chain has found"
        ]
        lines += [f"{basin + 1}: {self._basin_text(basin)}" for basin in range(count)]
        unknown = np.flatnonzero(np.isinf(self.log_evidence_stderr)) + 1
        if len(unknown):
            lines.append(
                f"the evidence of {named('basin', unknown)} is not known, as the draws hardly overlap "
                "with their normal approximation"
            )
        return lines

    def _basin_text(self, basin: int) -> str:
        from tfbnn.diagnostics.diagnosis import upper

        chains = np.flatnonzero(self.labels == basin)
        found = upper(self.rhat_within[basin])
        text = named("chain", chains)
        if len(self.log_evidence) > 1:
            weight, error = self.log_weights[basin], self.log_weight_stderr[basin]
            share = self.averaged_weights[basin]
            text += f", log weight {weight:.4g} +- {error:.2g} nats, {share:.3g} of the average"
        halves = " of its halves" if len(chains) == 1 else ""
        return (
            f"{text}, R-hat within{halves} median {found['median']:.4g}, 95 % {found['q95']:.4g}, "
            f"max {found['max']:.4g}"
        )


def _log_weights(log_evidence: Array) -> Array:
    """Return the logarithms of normalised evidences [..., B]."""
    total = np.logaddexp.reduce(log_evidence, axis=-1, keepdims=True)
    return log_evidence - total
