"""Relevance of inputs: sampled prior scales, and the loss of predictions without an input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tfbnn.posterior.averages import log_mean_exp, weighted_quantiles
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import target_tiles
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array

_PROBABILITIES = (0.16, 0.5, 0.84)


@dataclass(frozen=True, eq=False)
class Relevance:
    """Posterior of the scale s_i of each input's weights, in the order of the inputs.

    Attributes:
        names: Names of the inputs [D]; "column 0" and so on if the fit was given none.
        median: Posterior median of s_i [D].
        lower, upper: Posterior quantiles of s_i at 16 and 84 % [D].
        standardized: Whether the network sees standardised inputs. If not, s_i is per unit of
            input i, and scales of unlike inputs cannot be compared.
    """

    names: tuple[str, ...]
    median: Array
    lower: Array
    upper: Array
    standardized: bool

    def lines(self) -> Iterator[tuple[str, float, float, float]]:
        """Yield (name, median, lower, upper) of every input."""
        yield from zip(self.names, self.median, self.lower, self.upper)

    def __repr__(self) -> str:
        """Return a table with a line per input."""
        width = max(len("input"), *map(len, self.names))
        lines = [f"{'input':<{width}}  {'scale':>9}  {'16 %':>9}  {'84 %':>9}"]
        for name, *values in self.lines():
            lines.append("  ".join([f"{name:<{width}}", *(f"{value:9.3g}" for value in values)]))
        if not self.standardized:
            lines.append("Scales are per unit of each input, which are not standardised.")
        return "\n".join(lines)


def scales_of_inputs(spec: NetworkSpec) -> slice | None:
    """Return the slice of theta with one log prior scale per input, or None without such a prior."""
    return next((scales for prior, _, scales in spec.weight_groups() if prior.per_input), None)


def relevance_of(ensemble: Ensemble) -> Relevance:
    """Compute the Relevance of the inputs from draws under the weights of their chains.

    The scales are those of the first layer's kernel.

    Raises:
        ValueError: If the prior has no scale per input.
    """
    spec, span = ensemble.spec, scales_of_inputs(ensemble.spec)
    if span is None:
        prior, _, _ = next(spec.weight_groups())
        raise ValueError(
            "relevance needs a sampled prior scale for every input, received a model with "
            f"{type(prior).__name__} on the first kernel. Leave prior out, or give that kernel ARD(): "
            "prior=[{'kernel': ARD(), 'bias': Normal()}, Normal(), ..], of a Keras model prior={PATH: ARD()}."
        )
    log_scales = ensemble.draws[..., span].astype(np.float64)
    scales = np.exp(log_scales.reshape(ensemble.num_draws, -1))
    lower, median, upper = weighted_quantiles(scales, ensemble.draw_weights, _PROBABILITIES)
    standardized = "standardize" in spec.x_transform
    return Relevance(ensemble.input_names, median, lower, upper, standardized)


@dataclass(frozen=True, eq=False)
class Importance:
    """Loss of the log predictive density of rows if the values of a column are permuted.

    Attributes:
        names: Names of the columns [D]; "column 0" and so on if the fit was given none.
        loss: Mean loss per row in nats [D], over the repeats.
        stddev: Standard deviation of the loss over the repeats [D].
        log_predictive_density: Mean per row without any permutation, on the scale the network sees.
    """

    names: tuple[str, ...]
    loss: Array
    stddev: Array
    log_predictive_density: float

    def __repr__(self) -> str:
        """Return a table, the most important column first."""
        width = max(len("column"), *map(len, self.names))
        lines = [f"{'column':<{width}}  {'loss':>9}  {'+-':>9}   nats per row"]
        for index in np.argsort(-self.loss, kind="stable"):
            values = self.loss[index], self.stddev[index]
            lines.append(f"{self.names[index]:<{width}}  {values[0]:9.3g}  {values[1]:9.2g}")
        return "\n".join(lines)


def importance_of(ensemble: Ensemble, rows: NetworkRows, num_repeats: int, seed: int) -> Importance:
    """Compute the Importance of the columns behind the inputs, by rows on the scale the network sees."""
    ensemble = ensemble.for_averages
    columns = ensemble.columns
    generator, intact = np.random.default_rng(seed), mean_log_density(ensemble, rows)
    found = np.empty((num_repeats, len(columns)))
    for repeat in range(num_repeats):
        order = generator.permutation(len(rows.x))
        for number, (_, span) in enumerate(columns):
            x = rows.x.copy()
            x[:, span] = x[order, span]
            found[repeat, number] = intact - mean_log_density(ensemble, rows._replace(x=x))
    names = tuple(column.name for column, _ in columns)
    return Importance(names, found.mean(axis=0), found.std(axis=0), intact)


def mean_log_density(ensemble: Ensemble, rows: NetworkRows) -> float:
    """Compute the mean log density of rows on the scale the network sees, under all draws."""
    found, likelihood = np.empty(len(rows.x)), ensemble.spec.likelihood
    for tile in target_tiles(ensemble, rows):
        densities = likelihood.log_density(rows.y[tile.span], tile.location, tile.fitted)
        found[tile.span] = log_mean_exp(densities, ensemble.draw_weights)
    return float(found.mean())
