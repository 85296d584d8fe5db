"""The coarsening curve: what the power of the likelihood does to agreement of chains and to scores.

Every rung of a ladder of power posteriors samples a coarsened posterior. With less of the likelihood
chains agree sooner, and predictions follow the rows less closely; the curve says where both are
good enough, from one run.

References:
    Miller and Dunson 2019, J. Am. Stat. Assoc. 114, 1113, arXiv:1506.06101, for the power posterior
    of a model that is right up to a misfit, and the curve of fit against power that chooses one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tfbnn.diagnostics import statistics
from tfbnn.diagnostics.wording import percent
from tfbnn.posterior.checks import checked_rows
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.metrics import evaluate, evaluate_classes
from tfbnn.posterior.prediction import function_of_chains
from tfbnn.system.arrays import Array

# A rung mixes where so many of the reference outputs have an R-hat below the limit.
RHAT_LIMIT = 1.05
SHARE = 0.95
# Of the scores those that the table has, with their headings.
_SHOWN = {
    "rmse": "RMSE",
    "accuracy": "accuracy",
    "log_predictive_density": "log predictive density",
}


@dataclass(frozen=True, eq=False)
class Coarsening:
    """The coarsening curve over m powers of the likelihood.

    Attributes:
        powers: [m], rising, all above 0; the last is that of the fit.
        rhat: R-hat of the function at the reference inputs [m, R, K], rank-normalised and split.
        scores: Dict of what `BayesianMLP.evaluate` says of the rows, [m], or [m, K] of several
            targets: rmse, log_predictive_density and more, with the likelihood's own noise and not
            calibrated.
        num_rows: Rows they are of.
    """

    powers: Array
    rhat: Array
    scores: dict[str, Array]
    num_rows: int

    @property
    def share_mixed(self) -> Array:
        """Share of the reference outputs with an R-hat below 1.05 [m]."""
        return share_mixed(self.rhat)

    @property
    def rhat_q95(self) -> Array:
        """The 95 % quantile of R-hat over the reference outputs [m], infinite where one is unknown."""
        flat = np.nan_to_num(self.rhat.reshape(len(self.rhat), -1), nan=np.inf)
        found: Array = np.quantile(flat, 0.95, axis=1, method="inverted_cdf")
        return found

    @property
    def largest_power(self) -> float | None:
        """The largest power up to which R-hat is below 1.05 at 95 % of the reference outputs, if any."""
        return _largest(self.powers, self.rhat)

    def summary(self) -> str:
        """Returns the curve as a table, and a line on the largest power that mixes."""
        shown = {name: text for name, text in _SHOWN.items() if name in self.scores}
        header = f"{'power':>10}{'R-hat q95':>11}{'below 1.05':>12}"
        lines = [header + "".join(f"{text:>{len(text) + 2}}" for text in shown.values())]
        for rung, power in enumerate(self.powers):
            line = f"{power:>10.3g}{self.rhat_q95[rung]:>11.3f}"
            line += f"{percent(self.share_mixed[rung]):>12}"
            for name, text in shown.items():
                # Of several targets their mean, as one line has room for one number.
                line += f"{np.mean(self.scores[name][rung]):>{len(text) + 2}.4g}"
            lines.append(line)
        return "\n".join([*lines, largest_power_text(self.largest_power)])


@dataclass(frozen=True, eq=False)
class Rungs:
    """The draws of all rungs of a ladder.

    Attributes:
        temperatures: Powers of the likelihood [m], rising from 0 to that of the fit.
        draws: [C, S, m, P].
        ensemble: The Ensemble of the last rung.
    """

    temperatures: tuple[float, ...]
    draws: Array
    ensemble: Ensemble

    @property
    def powers(self) -> Array:
        """Those above 0, where rows count [m]."""
        return np.array(self.temperatures[1:])

    def ensembles(self) -> Iterator[Ensemble]:
        """Yields the Ensemble of every power, chains with equal weights."""
        for rung, power in enumerate(self.temperatures[1:], start=1):
            spec = replace(self.ensemble.spec, likelihood_power=power)
            yield replace(self.ensemble.with_draws(self.draws[:, :, rung]), spec=spec)

    @cached_property
    def rhat(self) -> Array:
        """R-hat of the function at the reference inputs, at every power [m, R, K]."""
        found = [statistics.rhat(function_of_chains(rung)) for rung in self.ensembles()]
        return np.stack(found)

    @property
    def largest_power(self) -> float | None:
        """As that of `Coarsening`."""
        return _largest(self.powers, self.rhat)

    @property
    def text(self) -> str:
        """A line for the report."""
        return largest_power_text(self.largest_power)

    def coarsening(self, x: Any, y: Any, noise_scale: Any) -> Coarsening:
        """The Coarsening, scored by rows."""
        rows, transformed = checked_rows(self.ensemble, x, y, noise_scale, "run.coarsening")
        found = []
        for ensemble in self.ensembles():
            if ensemble.spec.has_classes:
                found.append(evaluate_classes(ensemble, transformed))
            else:
                found.append(evaluate(ensemble, rows.y, transformed))
        names = [name for name, value in found[0].items() if not isinstance(value, dict)]
        scores = {name: np.array([entry[name] for entry in found]) for name in names}
        return Coarsening(self.powers, self.rhat, scores, len(rows.x))


def share_mixed(rhat: Array) -> Array:
    """Share of reference outputs with an R-hat [m, R, K] below 1.05; what is unknown is not."""
    share: Array = np.mean(rhat < RHAT_LIMIT, axis=(1, 2))
    return share


def _largest(powers: Array, rhat: Array) -> float | None:
    mixes = share_mixed(rhat) >= SHARE
    count = len(mixes) if mixes.all() else int(np.argmin(mixes))
    return float(powers[count - 1]) if count else None


def largest_power_text(power: float | None) -> str:
    """The largest power that mixes in words, None where none does."""
    where = f"R-hat below {RHAT_LIMIT} at {percent(SHARE)} of the reference inputs"
    if power is None:
        return f"{where} at none of the powers of the likelihood"
    return f"{where} up to likelihood_power={power:.3g}"
