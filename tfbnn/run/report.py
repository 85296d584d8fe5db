"""The Run that `fit_posterior` returns, as numbers and as a report."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from tfbnn.diagnostics.diagnosis import Diagnosis, lower, rhat_text, rows_texts, upper
from tfbnn.diagnostics.problem import PYTHON, Interface, step_lines
from tfbnn.diagnostics.verdict import (
    MEANINGS,
    NO_CHAINS,
    NOT_SAMPLED,
    NOT_YET,
    Chains,
    Predictions,
    answer_lines,
)
from tfbnn.diagnostics.wording import LABEL_WIDTH, label_lines, labelled, percent, span, text_width
from tfbnn.exceptions import NotFittedError
from tfbnn.posterior.basins.basins import Basins
from tfbnn.posterior.calibration.calibration import Calibration
from tfbnn.run.events import Columns
from tfbnn.run.evidence import Ladder, LogEvidence
from tfbnn.spec.choices import Choice, choices_to_json
from tfbnn.spec.habits import ExplainsAttributes
from tfbnn.system.arrays import Array
from tfbnn.system.words import folded, plain

_NOTEBOOK_WIDTH = 100
# Fields that are not in the JSON, or not under their names.
_NOT_IN_JSON = {"accept_reason", "ladder", "folder", "until", "find_basins", "history"}


@dataclass(frozen=True, eq=False)
class Run(ExplainsAttributes):
    """The record of one run.

    Attributes:
        kernel: The kernel's settings as text.
        num_chains, num_results, num_burnin_steps, num_steps_between_results: Actual numbers. num_results
            is smaller than requested when a callback or the user stopped the run.
        accept_target: Target acceptance rate of warm-up, or None if nothing was tuned.
        accept_reason: Reason for that target.
        acceptance_rate: Mean acceptance over the sampling phase [C].
        step_size: Step size of the sampling phase [C].
        num_divergent: Divergent transitions in the sampling phase [C].
        num_gradients: Dict phase -> gradients per chain [C].
        start_log_prob: Log density where each chain started [C].
        seconds: Dict of wall-clock seconds: startup, compile, pretraining, warmup, sampling.
        pretraining: One line on how the starts were found.
        geometry: One line on the preconditioner and the reason for it.
        notes: Further lines of the report.
        choices: Settings that were "auto" in model and fit, with their values and reasons.
        diagnosis: Diagnosis of the draws, or None when too few were kept.
        calibration: `Calibration` of the error bars by the rows of the fit, or None without one.
        ended: Reason why the run ended, such as "ESS 412 and R-hat 1.006 after 800 draws per chain". None
            if the run had a fixed number of draws, or was stopped.
        until: Stopping rule as text. None: a fixed number of draws.
        ladder: `tfbnn.run.evidence.Ladder` of a PowerPosterior, else None.
        folder: The run folder, or None if the draws were kept in memory.
        find_basins: Function of the fitted model that `basins` calls.
        history: Events recorded by this process, about one per second: dict phase -> dict name -> list
            with one entry per event. The phases are "pretraining", "newton", "warmup" and "sampling".
            Each has "transition" and the "seconds" spent in it. "pretraining" also has "epoch" and
            "validation_log_likelihood" (mean per held-out row, NaN without). "newton" has "log_prob".
            The phases of the chains have "num_kept", "acceptance_rate", "step_size", "num_divergent" and
            "num_gradients". "looks" has "num_results", "rhat" and "ess" of the function for every check
            of `until`. Out of thousands of events every second one is kept, or every fourth.
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
    calibration: Calibration | None = None
    ladder: Ladder | None = None
    folder: str | None = None
    choices: tuple[Choice, ...] = ()
    ended: str | None = None
    until: str | None = None
    find_basins: Callable[[], Basins] | None = None
    history: dict[str, Columns] = field(default_factory=dict)

    def __repr__(self) -> str:
        kernel, seconds = self.kernel.partition("(")[0], sum(self.seconds.values())
        verdict = self.verdict if self.diagnosis is None else self.diagnosis.headline
        lines = [
            f"Run: {verdict}",
            f"{self.num_chains} chains x {self.num_results} draws by {kernel} in {seconds:.1f} s",
        ]
        if self.ended is not None:
            lines.append(self.ended)
        return "\n".join([*lines, "print(run.report()) says more"])

    def _repr_html_(self) -> str:
        """Return the text of `repr`, and the report as a part to unfold, for a notebook."""
        return folded(repr(self), self.report(width=_NOTEBOOK_WIDTH))

    def basins(self) -> Basins:
        """Return the Basins: which chains represent the same functions, and the posterior mass of each.

        See `BayesianMLP.basins`, with the rows of the fit. The result is computed once, and then included in
        the report, in the model and in its file.

        Raises:
            NotFittedError: When the run has kept no draws.
            ValueError: For fewer than eight draws per chain, and when the model was fitted again since.
        """
        return self._basins

    @cached_property
    def _basins(self) -> Basins:
        if self.find_basins is None:
            raise NotFittedError("run.basins() needs draws, and this run has kept none.")
        return self.find_basins()

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

    @property
    def verdict(self) -> str:
        """Verdict on the use of the run, from `chains` and `predictions`.

        "usable for error bars": the chains agree, and error bars hold where they were checked.
        "calibrated predictions": the chains do not agree, but error bars hold on rows like those
        seen. The posterior of single functions or weights must not be used, and nothing is guaranteed
        outside the training inputs. "usable for means": error bars do not hold, or they were not checked
        and the chains do not agree; the means of the chains differ by less than a third of an error bar.
        "not yet": all other cases, and a model that cannot follow its rows. "not sampled": no draws.
        """
        if self.diagnosis is None:
            return NOT_YET if self.num_results else NOT_SAMPLED
        return self.diagnosis.verdict

    @property
    def chains(self) -> Chains:
        """Verdict on whether the chains agree and are long enough: `ok`, `text`.

        `ok` requires R-hat of at most 1.01 at 95 % and 1.03 at all of the reference inputs, an effective
        sample size of 400, and at most 1 % divergent transitions.
        """
        if self.diagnosis is None:
            return Chains(False, "Too few draws were kept") if self.num_results else NO_CHAINS
        return self.diagnosis.chains

    @property
    def predictions(self) -> Predictions:
        """Verdict on whether error bars hold on rows that did not calibrate them: `ok`, `text`.

        `ok` is None if this was not checked. Validation rows are used if there are any. Otherwise it is the
        rows of the fit, each left out. Rows that calibrate are split in two halves, and each half is checked
        with the calibration of the other. See `tfbnn.diagnostics.verdict.Predictions` for the rule.
        """
        if self.diagnosis is None:
            return Predictions(why="networks without draws have no error bars")
        return self.diagnosis.predictions

    def report(
        self, details: bool = False, *, interface: Interface | None = None, width: int | None = None
    ) -> str:
        """Return the report as text: the verdict, problems, next steps, and how the run went.

        Args:
            details: Whether to include the meaning of the problems, the starts of the chains, and all
                numbers. Default False.
            interface: Interface whose wording is used for advice, by default Python's.
            width: Line width in columns. Default: the width of the terminal, or 100 without one.
        """
        width = width or text_width()
        interface = interface or replace(PYTHON, folder=self.folder)
        interface = self._of_this_run(interface)
        if self.diagnosis is None:
            told = [("Verdict", self.verdict), *answer_lines(self.chains, self.predictions)]
            told.append(("", MEANINGS[self.verdict]))
            lines = label_lines(told, width)
            if interface.is_out_of_time:
                lines.append(step_lines("Next".ljust(LABEL_WIDTH), interface.more_time(), width))
        else:
            lines = self.diagnosis.lines(interface, width, details)
        lines += label_lines((*self._run_lines(details), *self._outcome_lines(details)), width)
        if not details:
            lines += label_lines([("Details", interface.details)], width)
        elif self.diagnosis is not None:
            lines += ["", *self.diagnosis.numbers(width)]
        return "\n".join(lines)

    def _of_this_run(self, interface: Interface) -> Interface:
        sampled = self.seconds["warmup"] + self.seconds["sampling"]
        return interface.of_run(self.until, self.ended, sampled)

    def _run_lines(self, details: bool) -> Iterator[tuple[str, str]]:
        """Yield labels and lines on how the run went."""
        yield "Kernel", self.kernel
        yield (
            "Draws",
            f"{self.num_chains} chains x {self.num_results} kept, {self.num_burnin_steps} warm-up "
            f"steps, {self.num_steps_between_results} skipped between two kept draws",
        )
        if self.ended is not None:
            yield "Ended", self.ended
        if details:
            yield (
                "Start",
                f"where the chains began: {self.pretraining}; log density there "
                f"{span(self.start_log_prob)}",
            )
            yield "Geometry", self.geometry
        yield "Time", seconds_text(self.seconds)
        if details:
            yield "Gradients", self._gradients()
        yield "Acceptance", self._acceptance(details)
        if details:
            yield "Step size", span(self.step_size)
        yield from self._ladder_lines()
        yield from labelled("Chosen", map(str, self.choices))
        if "_basins" in vars(self):
            yield from labelled("Basins", self._basins.lines())
        yield from (("Note", note) for note in self.notes)

    def _outcome_lines(self, details: bool) -> Iterator[tuple[str, str]]:
        """Yield labels and lines on the outcome. With details, the diagnosis has those on the draws."""
        if self.calibration is not None:
            lines = self.calibration.lines() if details else [self.calibration.in_short]
            yield from labelled("Calibrated", lines)
        divergent, diagnosis = int(self.num_divergent.sum()), self.diagnosis
        if diagnosis is not None:
            divergent = diagnosis.num_divergent  # those of the draws that all chains have
        if diagnosis is None or details:
            yield "Divergences", f"{divergent} in the sampling phase"
            return
        share = percent(divergent / max(diagnosis.num_transitions, 1))
        yield "Divergences", f"{divergent} ({share}) in the sampling phase"
        yield "Function", rhat_text(upper(diagnosis.rhat_function))
        bulk, tail = map(lower, (diagnosis.ess_function, diagnosis.tail_ess_function))
        yield "", f"ESS min bulk {bulk['min']:.0f}, tail {tail['min']:.0f}"
        rows = None if diagnosis.fit is None else diagnosis.fit.rows
        if rows is not None:
            yield from labelled("Rows", rows_texts(rows))

    def to_dict(self, interface: Interface = PYTHON) -> dict[str, Any]:
        """Return plain numbers, lists and strings for JSON, with advice in the wording of the interface."""
        ladder, calibration, diagnosis = self.ladder, self.calibration, self.diagnosis
        told = [one.name for one in fields(self) if one.name not in _NOT_IN_JSON]
        return {
            "verdict": self.verdict,
            "chains": self.chains._asdict(),
            "predictions": self.predictions.to_json(),
            **{name: plain(getattr(self, name)) for name in told},
            "choices": choices_to_json(self.choices),
            "log_evidence": None if ladder is None else ladder.log_evidence.to_dict(),
            "swap_acceptance": None if ladder is None else ladder.swap_acceptance.tolist(),
            "calibration": None if calibration is None else calibration.to_json(),
            "diagnosis": None
            if diagnosis is None
            else diagnosis.to_dict(self._of_this_run(interface)),
        }

    def _ladder_lines(self) -> Iterator[tuple[str, str]]:
        if self.ladder is None:
            return
        rates = " ".join(f"{rate:.2f}" for rate in self.ladder.swap_acceptance)
        yield "Swaps", f"accepted {rates}, from the prior to the posterior"
        yield "Evidence", f"log p(D) {self.ladder.log_evidence}"

    def _gradients(self) -> str:
        counts = ", ".join(f"{name} {int(n.sum())}" for name, n in self.num_gradients.items())
        if not any(n.sum() for n in self.num_gradients.values()):
            return counts
        return f"{counts}; {self.milliseconds_per_gradient:.3f} ms each"

    def _acceptance(self, details: bool) -> str:
        if not self.num_results:
            return "not known, as nothing was sampled"
        low, high = np.min(self.acceptance_rate), np.max(self.acceptance_rate)
        if np.isnan(low):
            return "not known of this kernel"
        rates = " to ".join(dict.fromkeys((percent(low), percent(high))))
        text = f"{rates} of the proposals were accepted"
        if self.accept_target is None:
            return f"{text}; the step size was given"
        text += f"; steps were tuned for {percent(self.accept_target)} ({self.accept_reason})"
        if details:
            text += (
                ". A higher rate means shorter steps than needed, which only costs time; a much lower "
                "one, that parts of the posterior need shorter steps"
            )
        return text


def seconds_text(seconds: dict[str, float]) -> str:
    """Return the sum of some seconds and their parts as text."""
    parts = ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())
    return f"{sum(seconds.values()):.1f} s: {parts}"
