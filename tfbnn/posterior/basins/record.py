"""`Basins`: where the chains of a model are, and how much of the posterior is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tfbnn.diagnostics.diagnosis import upper
from tfbnn.diagnostics.wording import LABEL_WIDTH, counted, named, text_width, wrapped
from tfbnn.posterior.record_kinds import COUNTS, FLAG, NUMBER, Kind, check_entries, list_of
from tfbnn.system.arrays import Array, read_only

# Standard errors that a statement on the mass outside the best basin leaves room for.
_ERRORS = 2.0
# Logarithms of weights that differ less than this are alike for an average.
_ALIKE = 0.1

_NUMBERS = list_of(NUMBER, "a list of finite numbers")
_KINDS: Mapping[str, Kind] = {
    "labels": COUNTS,
    "log_evidence": _NUMBERS,
    "log_evidence_stderr": list_of(
        Kind("a number or null", lambda value: value is None or NUMBER.holds(value)),
        "a list of numbers and nulls",
    ),
    "is_bridged": list_of(FLAG, "a list of flags"),
}


@dataclass(frozen=True, eq=False)
class Basins:
    """What `BayesianMLP.basins` found. Basins are in the order of their weights, the largest first.

    A network has H! 2^H copies per hidden layer of H units (without the 2 where its activation is
    not odd) that are the same function; all basins have as many, so that copies are left out of all
    evidences, and cancel in the weights.

    Attributes:
        labels: Number of the basin that each chain is in [C].
        log_evidence: Natural logarithm of the mass of one copy of each basin [B]: the integral of
            likelihood times prior, transformed targets, as `log_prob` has them. 0 with B = 1, where
            nobody asks.
        log_evidence_stderr: Its standard errors [B]; infinite where only an upper bound is known, as
            the draws and the normal distribution beside them hardly overlap.
        rhat_within: R-hat of the function over the chains of each basin, of a single chain over its
            halves, at the reference inputs of the model [B, N_ref, K].
        chain_weights: Weights of the chains in averages [C].
    """

    labels: Array
    log_evidence: Array
    log_evidence_stderr: Array
    rhat_within: Array
    chain_weights: Array

    def __post_init__(self) -> None:
        for name, values in vars(self).items():
            object.__setattr__(self, name, read_only(values))

    def __repr__(self) -> str:
        """The report: R-hat of every reference input would fill pages."""
        return self.report()

    @classmethod
    def from_json(cls, entries: Any, rhat_within: Array, chain_weights: Array) -> Basins:
        """Of what `to_json` gave.

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
        # Of releases that had two bounds, in place of an error the half of their distance.
        errors = [e if e is not None and known else np.inf for e, known in zip(errors, bridged)]
        if min(errors) < 0:
            raise ValueError("basins.log_evidence_stderr must be 0 or more.")
        evidence = np.array(values, float), np.array(errors, float)
        return cls(labels, *evidence, rhat_within, chain_weights)

    def to_json(self) -> dict[str, Any]:
        """JSON-able, all but `rhat_within` and `chain_weights`."""
        errors, known = self.log_evidence_stderr.tolist(), np.isfinite(self.log_evidence_stderr)
        return {
            "labels": self.labels.tolist(),
            "log_evidence": self.log_evidence.tolist(),
            "log_evidence_stderr": [e if np.isfinite(e) else None for e in errors],
            "is_bridged": known.tolist(),
        }

    def under(self, chain_weights: Array) -> Basins:
        """The same under other weights of the chains [C]."""
        return replace(self, chain_weights=chain_weights)

    @property
    def log_weights(self) -> Array:
        """Natural logarithms of the posterior masses [B], as if there were no other basins."""
        return _log_weights(self.log_evidence)

    @property
    def log_weight_stderr(self) -> Array:
        """Their standard errors [B], infinite where an evidence has an infinite one.

        Each evidence is moved by its error, up and down, and the larger changes of the weights are
        added in quadrature: with errors of many units a linear rule would say that there are none.
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
        """Weights that the basins have in averages over the chains [B], their number decides."""
        return np.bincount(self.labels, self.chain_weights, len(self.log_evidence))

    @property
    def nats_outside(self) -> float:
        """X, with e^-X above the mass outside the best basin over that in it; two errors taken off.

        Of the basins that were found; infinite where there is one. Negative where the errors leave
        open which is best.
        """
        errors = np.hypot(self.log_evidence_stderr, self.log_evidence_stderr[0])
        below = self.log_evidence[0] - self.log_evidence - _ERRORS * errors
        return -float(np.logaddexp.reduce(-below[1:], initial=-np.inf))

    def report(self, width: int | None = None) -> str:
        """Returns basins, weights and what the average over the chains is, as text.

        Args:
            width: Columns to break lines at, by default those of the terminal, else 100.
        """
        width = width or text_width()
        lines = self.lines()
        labels = ["Basins", *[""] * (len(lines) - 1)]
        return "\n".join(
            wrapped(label.ljust(LABEL_WIDTH), text, width) for label, text in zip(labels, lines)
        )

    def lines(self) -> list[str]:
        """The lines of `report`."""
        count = len(self.log_evidence)
        lines = [
            f"{counted(len(self.labels), 'chain')} in {counted(count, 'basin')}, by the functions "
            "that they represent; of basins that no chain found nothing is known"
        ]
        for basin in range(count):
            lines.append(f"{basin + 1}: {self._basin_text(basin)}")
        return [*lines, *self._sentences()]

    def _basin_text(self, basin: int) -> str:
        chains = np.flatnonzero(self.labels == basin)
        found = upper(self.rhat_within[basin])
        text = named("chain", chains)
        if len(self.log_evidence) > 1:
            weight, error = self.log_weights[basin], self.log_weight_stderr[basin]
            text += f", log weight {weight:.4g} +- {error:.2g} nats"
        halves = " of its halves" if len(chains) == 1 else ""
        return (
            f"{text}, R-hat within{halves} median {found['median']:.4g}, 95 % {found['q95']:.4g}, "
            f"max {found['max']:.4g}"
        )

    def _sentences(self) -> list[str]:
        if len(self.log_evidence) == 1:
            if len(self.labels) == 1:
                return ["one chain shows one basin, whatever others there are"]
            return [
                "all chains are in one: their average is that of the posterior there, as far as R-hat "
                "within says that they mix"
            ]
        lines = []
        if self.nats_outside > 0:
            lines.append(
                "posterior mass outside the best basin found is below "
                f"e^-{self.nats_outside:.3g} of that in it, {_ERRORS:.0f} errors taken off"
            )
        else:
            lines.append("the errors leave open which basin has most of the posterior's mass")
        unknown = np.flatnonzero(np.isinf(self.log_evidence_stderr)) + 1
        if len(unknown):
            lines.append(
                f"the evidence of {named('basin', unknown)} is not known, as the draws and the normal "
                "distribution beside them hardly overlap"
            )
        averaged = self.averaged_weights
        with np.errstate(divide="ignore"):
            differ = np.abs(np.log(averaged) - self.log_weights)
        if np.all(differ <= _ALIKE + _ERRORS * self.log_weight_stderr) and self.nats_outside < 0:
            lines.append(
                "these errors leave open whether the average over the chains is the posterior's"
            )
        else:
            shares = ", ".join(f"{weight:.3g}" for weight in averaged)
            lines.append(
                f"the average over the chains is no posterior, but an ensemble of these basins with "
                f"the weights {shares}"
            )
        return lines


def _log_weights(log_evidence: Array) -> Array:
    """Of evidences [..., B]: those of their shares."""
    total = np.logaddexp.reduce(log_evidence, axis=-1, keepdims=True)
    return log_evidence - total
