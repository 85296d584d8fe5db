"""What `fit_posterior` returns: how the run went, in numbers and as a report."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.run.evidence import Ladder, LogEvidence
from tfbnn.system.arrays import Array


@dataclass(frozen=True, eq=False)
class Run:
    """The record of one run.

    Attributes:
        kernel: The kernel's settings as text.
        num_chains, num_results, num_burnin_steps, num_steps_between_results: As run; num_results
            is smaller than asked for when a callback or the user stopped the run.
        accept_target: Acceptance rate that warm-up aimed at, or None where nothing was tuned.
        accept_reason: Why that target.
        acceptance_rate: Mean acceptance over the sampling phase [C].
        step_size: Step size of the sampling phase [C].
        num_divergent: Divergent transitions in the sampling phase [C].
        num_gradients: Dict phase -> gradients per chain [C].
        start_log_prob: Log density where each chain started [C].
        seconds: Dict of wall-clock seconds: startup, compile, pretraining, warmup, sampling.
        pretraining: One line on how the starts were found.
        geometry: One line on the preconditioner and why that one.
        notes: Further lines the report should carry.
        diagnosis: Diagnosis of the draws, or None when too few were kept.
        ladder: `tfbnn.run.evidence.Ladder` of a PowerPosterior, else None.
    """

    kernel: str
    num_chains: int
    num_results: int
    num_burnin_steps: int
    num_steps_between_results: int
    accept_target: float | None
    accept_reason: str
    acceptance_rate: Array
    step_size: Array
    num_divergent: Array
    num_gradients: dict[str, Array]
    start_log_prob: Array
    seconds: dict[str, float]
    pretraining: str
    geometry: str
    notes: tuple[str, ...]
    diagnosis: Diagnosis | None
    ladder: Ladder | None = None

    @property
    def log_evidence(self) -> LogEvidence | None:
        """`tfbnn.run.evidence.LogEvidence` of a PowerPosterior, else None.

        Its `thermodynamic` and `stepping_stone` have a `value` and a `stderr`.
        """
        return None if self.ladder is None else self.ladder.log_evidence

    @property
    def milliseconds_per_gradient(self) -> float:
        """Wall-clock milliseconds per gradient of warm-up and sampling, all chains together."""
        gradients = sum(counts.sum() for counts in self.num_gradients.values())
        seconds = self.seconds["warmup"] + self.seconds["sampling"]
        return 1e3 * seconds / gradients if gradients else np.nan

    def report(self) -> str:
        """Returns the report as text: what ran, how long, how well, and what to do next."""
        lines = [
            f"Kernel       {self.kernel}",
            f"Draws        {self.num_chains} chains x {self.num_results} kept, "
            f"{self.num_burnin_steps} warm-up steps, "
            f"{self.num_steps_between_results} skipped between two kept draws",
            _wrapped(
                "Start        ",
                f"{self.pretraining}; log density {_range(self.start_log_prob)}",
            ),
            _wrapped("Geometry     ", self.geometry),
            f"Time         {self._times()}",
            f"Gradients    {self._gradients()}",
            f"Acceptance   {_range(self.acceptance_rate)}{self._target()}",
            f"Step size    {_range(self.step_size)}",
            f"Divergences  {int(self.num_divergent.sum())} in the sampling phase",
            *self._ladder_lines(),
            *(_wrapped("Note         ", note) for note in self.notes),
        ]
        if self.diagnosis is None:
            lines.append("Diagnosis    too few draws were kept")
        else:
            lines += ["", self.diagnosis.summary()]
            lines += [_wrapped("! ", warning) for warning in self.diagnosis.warnings]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and strings, for JSON."""
        swaps = None if self.ladder is None else self.ladder.swap_acceptance.tolist()
        return {
            "kernel": self.kernel,
            "num_chains": self.num_chains,
            "num_results": self.num_results,
            "num_burnin_steps": self.num_burnin_steps,
            "num_steps_between_results": self.num_steps_between_results,
            "acceptance_rate": self.acceptance_rate.tolist(),
            "accept_target": self.accept_target,
            "step_size": self.step_size.tolist(),
            "num_divergent": self.num_divergent.tolist(),
            "num_gradients": {phase: n.tolist() for phase, n in self.num_gradients.items()},
            "start_log_prob": self.start_log_prob.tolist(),
            "pretraining": self.pretraining,
            "geometry": self.geometry,
            "notes": list(self.notes),
            "log_evidence": None if self.ladder is None else self.ladder.log_evidence.to_dict(),
            "swap_acceptance": swaps,
            "seconds": self.seconds,
            "diagnosis": None if self.diagnosis is None else self.diagnosis.to_dict(),
        }

    def _ladder_lines(self) -> Iterator[str]:
        if self.ladder is None:
            return
        swaps, evidence = self.ladder.swap_acceptance, self.ladder.log_evidence
        rates = " ".join(f"{rate:.2f}" for rate in swaps)
        yield _wrapped("Swaps        ", f"accepted {rates}, from the prior to the posterior")
        yield _wrapped(
            "Evidence     ",
            f"log p(D) {evidence.stepping_stone} by stepping stones, "
            f"{evidence.thermodynamic} by thermodynamic integration",
        )

    def _times(self) -> str:
        total = sum(self.seconds.values())
        parts = ", ".join(f"{name} {value:.1f}" for name, value in self.seconds.items())
        return f"{total:.1f} s: {parts}"

    def _gradients(self) -> str:
        counts = ", ".join(f"{name} {int(n.sum())}" for name, n in self.num_gradients.items())
        if not any(n.sum() for n in self.num_gradients.values()):
            return counts
        return f"{counts}; {self.milliseconds_per_gradient:.3f} ms each"

    def _target(self) -> str:
        if self.accept_target is None:
            return ""
        return f", target {self.accept_target:g} ({self.accept_reason})"


def _wrapped(label: str, text: str) -> str:
    return textwrap.fill(label + text, width=100, subsequent_indent=" " * len(label))


def _range(values: Array) -> str:
    low, high = np.min(values), np.max(values)
    if np.isnan(low):  # a kernel that the user built need not say
        return "unknown"
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
