"""The log evidence of a basin: how much of the posterior, before it is normalised, lies in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tfbnn.posterior.basins.bridge import bridge, effective_size
from tfbnn.posterior.basins.proposal import Frame, Normal
from tfbnn.system.arrays import Array

# Draws of a chain that are looked at, half of them for the proposal; and the fewest of which anything
# can be said.
MOST_DRAWS, FEWEST_DRAWS = 800, 8
# Of the normal distributions whose Jensen bound is tried, and draws to try one by.
_SCALES, _TRIES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.17, 0.12, 0.08), 32


class Target(Protocol):
    """The density of one model given its rows."""

    def log_prob(self, theta: Array) -> Array:
        """Log densities [M] at theta [M, P], float64."""

    def factor(self, theta: Array) -> Array:
        """Lower Cholesky factor [P, P] of the Gauss-Newton matrix at one network [P]."""

    def aligned(self, theta: Array, reference: Array) -> tuple[Array, Array]:
        """Networks [M, P] in the copies nearest to a reference [P], and which had to move [M]."""


class Evidence(NamedTuple):
    """A log evidence.

    Attributes:
        value: Natural logarithm, of one of the H! 2^H copies of a basin.
        stderr: Its standard error; where `is_bridged` is false, half of the distance of two bounds
            with `value` in the middle, infinite where there is no lower one.
        is_bridged: Whether it is by bridge sampling.
    """

    value: float
    stderr: float
    is_bridged: bool


class _Part(NamedTuple):
    """What one half of a chain says, by a proposal from the other.

    Attributes:
        value, stderr, is_reliable: Of bridge sampling.
        upper: A bound of the log evidence, its error added.
    """

    value: float
    stderr: float
    is_reliable: bool
    upper: float


def log_evidence(target: Target, chains: Sequence[Array]) -> Evidence:
    """The Evidence of the basin in which chains are.

    Every chain is brought into one copy of its networks, and says by itself what the mass of that
    copy is: so the masses of all copies are equal, and what chains of one basin disagree about is
    part of the error. A normal distribution with the mean of half of a chain's draws, and their
    covariance shrunk to the inverse of the Gauss-Newton matrix at the best of its draws and their
    mean, is held against the other half by bridge sampling, and then the other way about.

    Where they hardly overlap two bounds remain, both by Jensen's inequality, with p the posterior in
    the basin, Z its mass, and q a normalised density: E_q[log p Z - log q] <= log Z <=
    E_p[log p Z - log q]. Below, q is the best of some normal distributions around that centre.

    Args:
        target: Target.
        chains: Draws [S, P] of each, at least 8.
    """
    parts: list[_Part] = []
    lower: list[float] = []
    for number, draws in enumerate(chains):
        chosen = np.linspace(0, len(draws) - 1, min(len(draws), MOST_DRAWS)).round().astype(int)
        found, least = _of_chain(target, draws[chosen].astype(float), number)
        parts += found
        lower.append(least)
    reliable = [part for part in parts if part.is_reliable]
    if reliable:
        values, errors = np.array([part[:2] for part in reliable]).T
        count = len(values)
        between = values.var(ddof=1) / count if count > 1 else 0.0
        error = float(np.sqrt(np.square(errors).mean() / count + between))
        return Evidence(float(values.mean()), error, True)
    highest = float(np.mean([part.upper for part in parts]))
    half = 0.5 * (highest - max(lower))
    if not np.isfinite(half):
        return Evidence(highest, np.inf, False)
    return Evidence(highest - half, abs(half), False)


def _of_chain(target: Target, draws: Array, number: int) -> tuple[list[_Part], float]:
    """(_Part of each half of the draws [S, P] of a chain, lower bound of its log evidence)."""
    log_prob = target.log_prob(draws)
    best = draws[np.argmax(log_prob)]
    draws, _ = target.aligned(draws, best)
    # In many dimensions every draw is far below the mode, and the mean near it unless the basin bends.
    centre = max(best, draws.mean(axis=0), key=lambda theta: target.log_prob(theta[None])[0])
    frame, generator = Frame(centre, target.factor(centre)), np.random.default_rng([number, 17])

    def ratio(normal: Normal, count: int) -> Array:
        """Log target less log proposal at draws of the proposal, minus infinity in other copies."""
        sample = normal.sample(generator, count)
        in_copy = ~target.aligned(sample, best)[1]
        found = np.full(count, -np.inf)
        if in_copy.any():
            found[in_copy] = (target.log_prob(sample) - normal.log_density(sample))[in_copy]
        return found

    half = len(draws) // 2
    parts = []
    for one, other in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
        proposal = frame.fitted(draws[one], effective_size(log_prob[one]))
        at_draws = log_prob[other] - proposal.log_density(draws[other])
        found = bridge(at_draws, ratio(proposal, len(at_draws)))
        error = float(at_draws.std() / np.sqrt(effective_size(at_draws)))
        parts.append(_Part(found.value, found.stderr, found.is_reliable, at_draws.mean() + error))
    if any(part.is_reliable for part in parts):
        return parts, -np.inf  # nobody asks
    return parts, _lower_bound(frame, ratio, half)


def _lower_bound(frame: Frame, ratio: Callable[[Normal, int], Array], count: int) -> float:
    """The best of the bounds by normal distributions around the centre, its error taken off."""
    normals = [frame.shrunk(scale) for scale in _SCALES]
    best = max(normals, key=lambda normal: _jensen(ratio(normal, _TRIES))[0])
    bound, error = _jensen(ratio(best, count))
    return bound - error


def _jensen(ratio: Array) -> tuple[float, float]:
    """(Lower bound of a log mass, its error) by log target less log proposal [M].

    The proposal is cut to where the target is: its own mass there is the share of such draws.
    """
    inside = ratio[ratio > -np.inf]
    if not len(inside):
        return -np.inf, np.inf
    share = np.log(len(inside) / len(ratio))
    return float(inside.mean() + share), float(inside.std() / np.sqrt(len(inside)))
