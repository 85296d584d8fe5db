"""The diagnosis of one run: function space first, then the log density, then the weights.

The posterior of a network has many equivalent modes, because permuting hidden units or flipping
signs changes the weights and leaves the function as it is. Chains that agree on the function are
what predictions need; they need not agree on the weights.
"""

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tfbnn.diagnostics.fit_check import ClassesCheck, FitCheck, RowsCheck, pulled
from tfbnn.diagnostics.problem import PYTHON, About, Interface, Problem, Severity, verdict_of
from tfbnn.diagnostics.verdict import (
    MEANINGS,
    Chains,
    Predictions,
    answer_lines,
    rounded,
    verdict_on,
)
from tfbnn.diagnostics.wording import LABEL_WIDTH, counted, label_lines, labelled, percent, shown
from tfbnn.system.arrays import Array
from tfbnn.system.words import folded, plain

_RHAT_ACCEPTABLE = 1.05


@dataclasses.dataclass(frozen=True, eq=False)
class Diagnosis:
    """Convergence numbers of one run; NaN stands for an undefined one.

    C is the number of chains, N_ref that of reference inputs, K that of outputs and P that of
    parameters.

    Attributes:
        rhat_function: [N_ref, K] rank-normalised split R-hat of the function values.
        ess_function: [N_ref, K] their bulk effective sample size, over all chains.
        tail_ess_function: [N_ref, K] their tail effective sample size.
        rhat_parameters: [P] R-hat of the weights, secondary (see the module).
        ess_parameters: [P] bulk effective sample size of the weights, secondary.
        rhat_log_prob: R-hat of the log density.
        ess_log_prob: Bulk effective sample size of the log density.
        mean_gap: [N_ref, K] range of the chains' means over the standard deviation of the function
            values of all draws; for a single chain between its halves.
        ebfmi: [C] energy Bayesian fraction of missing information.
        num_divergent, num_transitions: Number of divergent transitions over all chains, and number
            of all transitions among which the draws were kept.
        fit: Agreement of the model with its data, or None if it was not checked.
        problems: Problems with their size and the next step, the most serious first.
        chain_weights: [C] weights of the chains in predictions, or None if unknown. All
            numbers above are those of the chains as they were sampled, without weights.
        weighting: One line on the weights of the chains, or None for equal weights.
    """

    rhat_function: Array
    ess_function: Array
    tail_ess_function: Array
    rhat_parameters: Array
    ess_parameters: Array
    rhat_log_prob: float
    ess_log_prob: float
    mean_gap: Array
    ebfmi: Array
    num_divergent: int
    num_transitions: int = 0
    fit: FitCheck | None = None
    problems: tuple[Problem, ...] = ()
    chain_weights: Array | None = None
    weighting: str | None = None

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.headline}>"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the repr, and the numbers on request."""
        return folded(repr(self), self.summary())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on each problem: what it is, its size, and the next step."""
        return tuple(problem.sentences(PYTHON) for problem in self.problems)

    @property
    def severity(self) -> Severity:
        """The largest severity of the problems."""
        return verdict_of(self.problems)

    @property
    def chains(self) -> Chains:
        """The verdict on the chains: whether they agree and are long enough."""
        serious = [one for one in self.problems if one.severity and one.about != About.MODEL]
        if serious:
            return Chains(False, serious[0].what.partition(":")[0])
        rhat = _number_text(upper(self.rhat_function)["q95"])
        size = np.fmin(lower(self.ess_function)["min"], lower(self.tail_ess_function)["min"])
        return Chains(True, f"They agree and are long enough (R-hat {rhat}, ESS {size:.0f})")

    @property
    def predictions(self) -> Predictions:
        """The verdict on error bars, by rows that calibrated nothing."""
        return Predictions() if self.fit is None else self.fit.predictions

    @property
    def verdict(self) -> str:
        """The verdict on the draws: one of `tfbnn.diagnostics.verdict.VERDICTS`."""
        of_model = [one for one in self.problems if one.about == About.MODEL]
        of_chains = [one for one in self.problems if one.about != About.MODEL]
        return verdict_on(verdict_of(of_chains), verdict_of(of_model), self.predictions.ok)

    @property
    def headline(self) -> str:
        """The verdict with the number of problems, or of remarks if all have severity NOTHING."""
        if not self.problems:
            return self.verdict
        noun = "problem" if self.severity else "remark"
        return f"{self.verdict} ({counted(len(self.problems), noun)})"

    def lines(self, interface: Interface, width: int, details: bool = False) -> list[str]:
        """Return the verdict with its parts, and every problem with the next step.

        Args:
            interface: Interface in whose words to write.
            width: Columns that lines are broken at.
            details: Whether to explain the problems.
        """
        told = [("Verdict", self.headline), *answer_lines(self.chains, self.predictions)]
        told.append(("", MEANINGS[self.verdict]))
        return [
            *label_lines(told, width),
            *(problem.lines(interface, width, details) for problem in self.problems),
        ]

    def summary(self) -> str:
        """Return the verdict and the numbers in a few aligned lines, without the problems."""
        return "\n".join(["verdict".ljust(LABEL_WIDTH) + self.headline, *self.numbers()])

    def numbers(self, width: int = sys.maxsize) -> list[str]:
        """Return the numbers in aligned lines, broken at `width`, by default not at all."""
        return label_lines(self.facts(), width)

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield labels and lines; a number that is added here appears in report, page and command."""
        values = self._statistics()
        function, weights = values["function"], values["weights"]
        gaps, energies = function["mean_gap"], " ".join(map(_number_text, self.ebfmi))
        if self.weighting is not None:
            yield "chains", self.weighting
        yield from labelled(
            "function",
            [
                rhat_text(function["rhat"]),
                # Outputs without an R-hat are not below.
                f"below {_RHAT_ACCEPTABLE}: {100 * np.mean(self.rhat_function < _RHAT_ACCEPTABLE):.0f} % "
                f"of {self.rhat_function.size} reference outputs",
                f"chains' means differ by {gaps['median']:.2g} standard deviations (median), 95 % "
                f"quantile {gaps['q95']:.2g}, max {gaps['max']:.2g}",
                ess_text("bulk ESS", function["bulk_ess"]),
                ess_text("tail ESS", function["tail_ess"]),
            ],
        )
        rhat = _number_text(self.rhat_log_prob)
        yield "log density", f"R-hat {rhat}, ESS {self.ess_log_prob:.0f}"
        energies = "not defined here" if np.isnan(self.ebfmi).all() else energies
        yield "", f"E-BFMI {energies}, {self.num_divergent} divergent transitions"
        yield "weights", f"{rhat_text(weights['rhat'])} (secondary: permuted or"
        yield "", "sign-flipped weights give the same function)"
        yield "", ess_text("bulk ESS", weights["bulk_ess"])
        rows = None if self.fit is None else self.fit.rows
        unknown = ["not compared with the training rows"]
        yield from labelled("rows", unknown if rows is None else rows_texts(rows))

    def to_dict(self, interface: Interface = PYTHON) -> dict[str, Any]:
        """Return the summarised numbers as plain Python values that JSON can hold.

        Warnings are in the words of the interface. None stands for an undefined (NaN) number, and
        the string "inf" for an infinite R-hat of chains that stand still at different points.
        """
        return plain(self._statistics()) | {
            "verdict": self.verdict,
            "chains": self.chains._asdict(),
            "predictions": self.predictions.to_json(),
            "warnings": [problem.sentences(interface) for problem in self.problems],
        }

    def _statistics(self) -> dict[str, Any]:
        rows = None if self.fit is None else self.fit.rows
        rhats = defined(self.rhat_function)
        share = np.mean(rhats < _RHAT_ACCEPTABLE) if rhats.size else np.nan
        return {
            "function": {
                "num_outputs": self.rhat_function.size,
                "num_undefined": self.rhat_function.size - rhats.size,
                "rhat": upper(self.rhat_function),
                "share_rhat_below_1.05": share,
                "bulk_ess": lower(self.ess_function),
                "tail_ess": lower(self.tail_ess_function),
                "mean_gap": upper(self.mean_gap),
            },
            "log_density": {
                "rhat": self.rhat_log_prob,
                "bulk_ess": self.ess_log_prob,
                "ebfmi": list(self.ebfmi),
                "num_divergent": self.num_divergent,
                "num_transitions": self.num_transitions,
            },
            "weights": {
                "rhat": upper(self.rhat_parameters),
                "bulk_ess": lower(self.ess_parameters),
            },
            "training_rows": None if rows is None else rounded(dataclasses.asdict(rows)),
            "chain_weights": None if self.chain_weights is None else list(self.chain_weights),
            "weighting": self.weighting,
        }


def defined(values: Array) -> Array:
    """Return the entries that are not NaN, in one dimension."""
    return values[~np.isnan(values)]


def upper(values: Array) -> dict[str, float]:
    """Compute median, 95 % quantile and maximum, for numbers that are bad if large."""
    found = defined(values)
    if not found.size:
        return {"median": np.nan, "q95": np.nan, "max": np.nan}
    # "higher" takes an element as it is; interpolating between infinite ones gives NaN.
    median, q95 = np.quantile(found, [0.5, 0.95], method="higher")
    return {"median": median, "q95": q95, "max": found.max()}


def lower(values: Array) -> dict[str, float]:
    """Compute minimum and median, for numbers that are bad if small."""
    found = defined(values)
    if not found.size:
        return {"min": np.nan, "median": np.nan}
    return {"min": found.min(), "median": np.median(found)}


def _number_text(value: float) -> str:
    """Format a number with three decimals, or a large one with three digits."""
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.3g}"


def rhat_text(values: Mapping[str, float]) -> str:
    """Return a line for the dict that `upper` returns."""
    median, q95, largest = (_number_text(values[key]) for key in ("median", "q95", "max"))
    return f"R-hat median {median}, 95 % quantile {q95}, max {largest}"


def ess_text(name: str, values: Mapping[str, float]) -> str:
    """Return a line for the dict that `lower` returns."""
    return f"{name} min {values['min']:.0f}, median {values['median']:.0f}"


def rows_texts(rows: RowsCheck) -> Iterator[str]:
    """Yield the agreement of the model with its training rows, a line per target."""
    of_rows = counted(rows.num_rows, "training row")
    if isinstance(rows, ClassesCheck):
        yield (
            f"{percent(rows.accuracy)} of {of_rows} classified right, {percent(rows.majority)} by "
            f"the most frequent label; calibration error {rows.calibration_error:.2g}"
        )
        return
    for target in rows.targets:
        name = f"{shown(target.name)}: " if len(rows.targets) > 1 else ""
        if np.isnan(target.coverage).all():  # no row could be left out
            yield f"{name}R2 {target.r2:.3g}{pulled(target)} of {of_rows}"
            continue
        inner, outer = map(percent, target.coverage)
        yield (
            f"{name}R2 {target.r2:.3g}, pull width {target.pull_width:.3g}; 68 % and 95 % intervals "
            f"hold {inner} and {outer} of {of_rows}"
        )
