"""Automatic relevance determination: the sampled prior scales of the inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tfbnn.posterior.averages import weighted_quantiles
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

_PROBABILITIES = (0.16, 0.5, 0.84)


@dataclass(frozen=True, eq=False)
class Relevance:
    """Posterior of the scale s_i of each input's weights, in the order of the inputs.

    Attributes:
        names: Names of the inputs [D]; "column 0" and so on where the fit was given none.
        median: Posterior median of s_i [D].
        lower, upper: Its quantiles at 16 and 84 % [D].
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
        """A table with a line per input."""
        width = max(len("input"), *map(len, self.names))
        lines = [f"{'input':<{width}}  {'scale':>9}  {'16 %':>9}  {'84 %':>9}"]
        for name, *values in self.lines():
            lines.append("  ".join([f"{name:<{width}}", *(f"{value:9.3g}" for value in values)]))
        if not self.standardized:
            lines.append("Scales are per unit of each input, which are not standardised.")
        return "\n".join(lines)


def scales_of_inputs(spec: NetworkSpec) -> slice | None:
    """Return where theta has the log scales of a prior with one for each input; None without such a prior."""
    places = (scales for prior, _, scales in spec.weight_groups() if prior.per_input)
    return next(places, None)


def relevance_of(ensemble: Ensemble) -> Relevance:
    """The scales of the first layer's kernel, of draws under the weights of their chains.

    Raises:
        ValueError: Where the prior has no scale per input.
    """
    spec, place = ensemble.spec, scales_of_inputs(ensemble.spec)
    if place is None:
        prior, _, _ = next(spec.weight_groups())
        raise ValueError(
            "relevance needs a sampled prior scale for every input, received a model with "
            f"{type(prior).__name__} on the first kernel. Leave prior out, or give that kernel ARD(): "
            "prior=[{'kernel': ARD(), 'bias': Normal()}, Normal(), ..], of a Keras model prior={PATH: ARD()}."
        )
    log_scales = ensemble.draws[..., place].astype(np.float64)
    scales = np.exp(log_scales.reshape(ensemble.num_draws, -1))
    lower, median, upper = weighted_quantiles(scales, ensemble.draw_weights, _PROBABILITIES)
    standardized = "standardize" in spec.x_transform
    return Relevance(ensemble.input_names, median, lower, upper, standardized)
