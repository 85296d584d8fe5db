"""The result of `tfbnn.sample`: draws, statistics of the run, and agreement of the chains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tfbnn.diagnostics.agreement import Agreement
from tfbnn.diagnostics.statistics import bulk_ess, mcse_mean, rhat, tail_ess
from tfbnn.diagnostics.wording import counted, label_lines, percent, span, text_width
from tfbnn.exceptions import NotFittedError
from tfbnn.run.events import Columns
from tfbnn.run.evidence import LogEvidence
from tfbnn.run.result import Result
from tfbnn.run.until import Until
from tfbnn.system.arrays import Array
from tfbnn.system.words import folded

# Names of the draws themselves and their dimensions.
_RESERVED = {"theta", "param", "chain", "draw"}

Quantities = dict[str, Array]
OfDraws = Callable[[Array], Any]


def quantities_of(draws: Array, function: OfDraws | None) -> Quantities:
    """Compute the quantities to check from the draws [C, S, P]: dict name -> [C, S, ...].

    Raises:
        TypeError, ValueError: If the function returns something else.
    """
    if function is None:
        return {"theta": draws}
    found = function(draws)
    parts = dict(found) if isinstance(found, dict) else {"quantity": found}
    arrays = {str(name): np.asarray(part) for name, part in parts.items()}
    reserved = sorted(_RESERVED & set(arrays))
    if reserved:
        raise ValueError(
            f"quantities must not have the names {sorted(_RESERVED)}, received {reserved}."
        )
    for name, array in arrays.items():
        if array.shape[:2] != draws.shape[:2] or array.dtype.kind not in "fiub":
            raise ValueError(
                f"quantities must make arrays of numbers {list(draws.shape[:2])} + [...] of draws "
                f"{list(draws.shape)}, or a dict of them, received {array.dtype} "
                f"{list(array.shape)} for {name!r}."
            )
    return {name: array.astype(np.float64, copy=False) for name, array in arrays.items()}


def agreement_of(
    quantities: Quantities, log_prob: Array, superchains: Array | None = None
) -> Agreement:
    """Measure the agreement of the chains on quantities and log density [C, S]."""
    _, values = columns(quantities)
    return Agreement.measure(values[..., None], log_prob, superchains)


def columns(quantities: Quantities) -> tuple[Sequence[str], Array]:
    """Return (names, values [C, S, Q]) of all entries of all quantities."""
    names: list[str] = []
    for name, array in quantities.items():
        if array.ndim == 2:
            names.append(name)
        else:
            indices = np.ndindex(*array.shape[2:])
            names.extend(f"{name}[{', '.join(map(str, index))}]" for index in indices)
    flat = [array.reshape(*array.shape[:2], -1) for array in quantities.values()]
    return names, np.concatenate(flat, axis=2)


_NOTEBOOK_WIDTH = 100


@dataclass(frozen=True, eq=False, kw_only=True)
class Samples(Result):
    """Draws of a log density, with all attributes of a `Result`.

    There are C chains, S draws per chain and P coordinates.

    Attributes:
        draws: Draws [C, S, P].
        sample_stats: Dict name -> [C, S]: lp (the log density), acceptance_rate, step_size, n_steps,
            diverging, energy.
        quantities: Dict name -> [C, S, ...] of the checked quantities: {"theta": draws}, or the
            result of the function `quantities`.
        kernel: The kernel's settings as text.
        geometry: The preconditioner and the reason for it, one line.
        bias: Warning of a kernel whose draws do not follow this density exactly, or None.
        num_burnin_steps, num_steps_between_results, seed: As requested.
        seconds: Dict of wall-clock seconds: startup, compile, pretraining (always
            0), warmup, sampling.
        ended: Reason why the run ended, or None if it had a fixed number of draws.
        notes: Lines on other events of the run.
        log_evidence: `tfbnn.run.evidence.LogEvidence` of a PowerPosterior, else None.
        history: History of the run, as in `Run`.
        until: Requirements on the draws, a `tfbnn.Until`; by default that with default values.
    """

    quantities: dict[str, Array]
    kernel: str
    geometry: str
    bias: str | None
    num_burnin_steps: int
    num_steps_between_results: int
    seed: int
    seconds: dict[str, float]  # type: ignore[assignment]  # as users of a `Run` have them
    log_evidence: LogEvidence | None
    history: dict[str, Columns]
    until: Until = Until()

    @property
    def num_chains(self) -> int:
        return int(self.draws.shape[0])

    @property
    def num_results(self) -> int:
        """Number of draws per chain."""
        return int(self.draws.shape[1])

    @property
    def rhat(self) -> dict[str, Array]:
        """Rank-normalised split R-hat of every quantity: dict name -> [...], near 1 if chains agree."""
        return {name: rhat(values, self.superchains) for name, values in self.quantities.items()}

    @property
    def ess(self) -> dict[str, Array]:
        """Smaller of bulk and tail effective sample size of every quantity: dict name -> [...]."""
        return {
            name: np.fmin(bulk_ess(values), tail_ess(values))
            for name, values in self.quantities.items()
        }

    @cached_property
    def summary(self) -> dict[str, Array]:
        """Columns name, mean, sd, mcse, rhat, bulk_ess, tail_ess of all entries of all quantities [Q].

        Raises:
            NotFittedError: If there are no draws.
        """
        if self.agreement is None:
            raise NotFittedError("There are no draws to summarise: the run was stopped before.")
        names, values = columns(self.quantities)
        return {
            "name": np.array(names),
            "mean": values.mean(axis=(0, 1)),
            "sd": values.std(axis=(0, 1), ddof=1),
            "mcse": mcse_mean(values),
            "rhat": self.agreement.rhat[:, 0],
            "bulk_ess": self.agreement.bulk_ess[:, 0],
            "tail_ess": self.agreement.tail_ess[:, 0],
        }

    @cached_property
    def agreement(self) -> Agreement | None:
        """Agreement of the chains on the quantities and the log density; None without draws."""
        if not self.quantities:
            return None
        return agreement_of(self.quantities, self.sample_stats["lp"], self.superchains)

    @property
    def is_enough(self) -> bool:
        """True if the chains agree well enough for `until`."""
        asked = self.until
        return self.agreement is not None and self.agreement.is_enough(asked.ess, asked.rhat)

    @property
    def verdict(self) -> str:
        """Verdict on the agreement of the chains, one line."""
        if self.agreement is None:
            return "no draws were kept"
        asked = self.until
        text = self.agreement.text(asked.rhat)
        if self.is_enough:
            return f"the chains agree: {text}"
        return f"not yet: {text}; asked are an R-hat of {asked.rhat:g} and an ESS of {asked.ess:g}"

    def report(self, *, width: int | None = None) -> str:
        """Return a text with the verdict, the settings of the run, and a table of the quantities.

        Args:
            width: Width of the text in columns; None (default) for that of the terminal.
        """
        width = text_width() if width is None else width
        facts = ((f"{label}:", text) for label, text in _facts(self))
        return "\n".join([*label_lines(facts, width), *_table(self)])

    def to_arviz(self) -> Any:
        """Convert the draws to ArviZ data: posterior (theta and the quantities by name), sample_stats.

        Returns:
            `arviz.InferenceData`.

        Raises:
            ImportError: If ArviZ, the extra `arviz`, is not installed.
        """
        from tfbnn.posterior.arviz_data import SAMPLE, arviz_object, variable

        posterior = {"theta": variable((*SAMPLE, "param"), self.draws, "positions")}
        for name, values in self.quantities.items():
            dims = (f"{name}_dim_{axis}" for axis in range(values.ndim - len(SAMPLE)))
            posterior.setdefault(name, variable((*SAMPLE, *dims), values))
        statistics = {name: variable(SAMPLE, v) for name, v in self.sample_stats.items()}
        attributes = {
            "kernel": self.kernel,
            "seed": self.seed,
            "num_burnin_steps": self.num_burnin_steps,
            "num_steps_between_results": self.num_steps_between_results,
            "warmup": "its draws are not kept",
            "ended": self.ended,
            "bias": self.bias,
        }
        said = {name: value for name, value in attributes.items() if value is not None}
        return arviz_object({"posterior": (posterior, said), "sample_stats": (statistics, {})}, {})

    def __repr__(self) -> str:
        size = (
            f"{self.num_chains} chains x {self.num_results} draws x {self.draws.shape[-1]} numbers"
        )
        kernel = self.kernel.partition("(")[0]
        lines = [f"Samples: {self.verdict}", f"{size} by {kernel}"]
        return "\n".join([*lines, "print(samples.report()) says more"])

    def _repr_html_(self) -> str:
        """Return the HTML for notebooks: the lines of `repr`, with the report to unfold."""
        return folded(repr(self), self.report(width=_NOTEBOOK_WIDTH))


# With more quantities, the table shows those with the largest R-hat.
_MOST_LINES = 20
_COLUMNS = ("mean", "sd", "mcse", "rhat", "bulk_ess", "tail_ess")


def _facts(samples: Samples) -> Iterator[tuple[str, str]]:
    yield "verdict", samples.verdict
    if samples.bias is not None:
        yield "BIASED", samples.bias
    if samples.ended is not None:
        yield "ended", samples.ended
    skipped = samples.num_steps_between_results
    yield (
        "draws",
        f"{counted(samples.num_chains, 'chain')} x {samples.num_results} of "
        f"{samples.draws.shape[-1]} numbers ({samples.draws.dtype}) after {samples.num_burnin_steps} "
        f"transitions of warm-up{f', {skipped} skipped after each' if skipped else ''}; seed "
        f"{samples.seed}",
    )
    yield "kernel", samples.kernel
    yield "coordinates", samples.geometry
    divergent = int(samples.num_divergent.sum())
    total = int(samples.num_sampled.sum())
    yield (
        "transitions",
        f"acceptance {span(samples.acceptance_rate, '.3g')}, "
        f"step size {span(samples.step_size, '.3g')}, "
        f"{divergent} divergent ({percent(divergent / max(total, 1))}), "
        f"{int(samples.num_gradients['sampling'].sum())} gradients",
    )
    if samples.log_evidence is not None:
        yield "evidence", f"its logarithm is {samples.log_evidence}"
    for note in samples.notes:
        yield "note", note
    spent = ", ".join(f"{name} {s:.1f}" for name, s in samples.seconds.items() if s >= 0.05)
    yield "seconds", spent or "under 0.05"


def _table(samples: Samples) -> Iterator[str]:
    if not samples.quantities:
        return
    summary = samples.summary
    names = summary["name"]
    # Quantities with undefined R-hat come first, because they need attention first.
    worst = np.argsort(-np.nan_to_num(summary["rhat"], nan=np.inf), kind="stable")
    chosen = np.sort(worst[:_MOST_LINES])
    if len(names) > _MOST_LINES:
        yield f"The {_MOST_LINES} of {len(names)} quantities with the largest R-hat:"
    label = max(len(str(names[index])) for index in chosen)
    yield "  ".join([" " * label, *(f"{name:>9}" for name in _COLUMNS)])
    for index in chosen:
        numbers = [summary[name][index] for name in _COLUMNS]
        cells = [f"{number:9.4g}" for number in numbers[:4]]
        cells += [f"{number:9.0f}" for number in numbers[4:]]
        yield "  ".join([f"{names[index]:<{label}}", *cells])
