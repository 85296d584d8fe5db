"""Groups of chains by the functions that they represent, and the posterior mass of a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tfbnn.diagnostics.statistics import geyer_ess
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import NetworkRows
from tfbnn.spec.symmetries import aligned
from tfbnn.system.arrays import Array, row_slices

# From this distance of their means on, in standard deviations, two equal normal distributions have
# two peaks, and next to nothing between them.
FAR = 2.0
# Most draws of a chain that are used, half of them for the proposal; and the fewest that are enough.
MOST_DRAWS, FEWEST_DRAWS = 800, 8
# With fewer draws in the overlap of both densities even the error is not reliable.
FEWEST_IN_OVERLAP = 20.0
_MOST_STEPS, _TOLERANCE = 1000, 1e-10
_NETWORKS_AT_ONCE = 64


def group_chains(function: Array) -> Array:
    """Return the group of each chain [C], numbered in the order of their first chains.

    Chains that are nearer to each other than FAR are in one group, and so are chains that others
    connect.

    Args:
        function: Function values at reference inputs [C, S, N_ref, K].
    """
    near = distances(function) < FAR
    labels = np.arange(len(near))
    for chain, neighbours in enumerate(near):
        joined = np.isin(labels, labels[neighbours | (np.arange(len(near)) == chain)])
        labels[joined] = labels[joined].min()
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def distances(function: Array) -> Array:
    """Compute the distances of the mean functions of chains, in their own standard deviations [C, C].

    A distance is the root mean square over the reference inputs. It is infinite if a value is not
    finite, and if constant functions differ.

    Args:
        function: Function values at reference inputs [C, S, N_ref, K].
    """
    found = np.empty((len(function),) * 2)
    with np.errstate(all="ignore"):
        means, variances = function.mean(axis=1, dtype=float), function.var(axis=1, dtype=float)
        for chain, (mean, variance) in enumerate(zip(means, variances)):
            gaps = np.square(mean - means)
            ratios = np.where(gaps == 0.0, 0.0, gaps / (0.5 * (variance + variances)))
            found[chain] = np.sqrt(np.mean(ratios, axis=(1, 2)))
    return np.where(np.isnan(found), np.inf, found)


class RowsTarget:
    """Density of a model given rows, in float64: with nearly no noise float32 errs by whole units."""

    def __init__(self, spec: NetworkSpec, rows: NetworkRows) -> None:
        self._spec, self._rows = replace(spec, dtype="float64"), rows

    def log_prob(self, theta: Array) -> Array:
        """Compute the log densities [M] at theta [M, P], float64."""
        from tfbnn.engine.density.value_and_gradient import log_prob_terms

        result = np.empty(len(theta))
        for part in row_slices(len(theta), _NETWORKS_AT_ONCE):
            # Always the same number of networks, or the density would be traced anew for each number.
            full = np.resize(theta[part], (_NETWORKS_AT_ONCE, theta.shape[1]))
            terms = log_prob_terms(self._spec, full, *self._rows)
            found = terms["log_prior"] + terms["log_likelihood"]
            result[part] = found[: part.stop - part.start]
        return np.where(np.isnan(result), -np.inf, result)

    def factor(self, theta: Array) -> Array:
        """Compute the lower Cholesky factor [P, P] of the Gauss-Newton matrix at one network [P]."""
        if self._spec.network.no_jacobian is not None:
            raise ValueError(
                f"basins needs derivatives: {self._spec.network.no_jacobian}. Use stack_chains."
            )
        from tfbnn.engine.density.data import make_data
        from tfbnn.engine.density.laplace import factor_at

        factor = factor_at(self._spec, theta, make_data(*self._rows, "float64"))
        if factor is None:
            raise ValueError(
                "basins needs a Gauss-Newton matrix that is finite and positive definite at a draw of "
                "every chain. Use a prior with curvature, such as Normal."
            )
        return factor

    def aligned(self, theta: Array, reference: Array) -> tuple[Array, Array]:
        """Return networks [M, P] as the copies nearest to a reference [P], and which had to move [M]."""
        return aligned(self._spec, theta, reference)


class Evidence(NamedTuple):
    """A log evidence.

    Attributes:
        value: Natural logarithm of the mass of one of the H! 2^H copies of a basin.
        stderr: Its standard error; infinite if bridge sampling fails. `value` is then an upper
            bound.
    """

    value: float
    stderr: float


def log_evidence(target: RowsTarget, chains: Sequence[Array]) -> Evidence:
    """Compute the Evidence of the basin that some chains are in.

    Every chain is brought into one copy of its networks and gives an estimate of the mass of that
    copy. The masses of all copies are equal, so that the disagreement of the chains of one basin is
    part of the error. An estimate is by bridge sampling between half of a chain's draws and a
    normal distribution with the mean of the other half; then the halves change roles. The
    covariance of the normal distribution is that of its half, shrunk to the inverse of the
    Gauss-Newton matrix. This matrix is taken at the best draw or at the mean of the draws,
    whichever has the larger density.

    If draws and normal distribution hardly overlap, a bound remains by Jensen's inequality. With p
    the posterior in the basin, Z its mass, and q a normalised density:
    log Z <= E_p[log p Z - log q].

    Args:
        target: The density of the model given its rows.
        chains: Draws [S, P] of each chain, at least 8.
    """
    parts: list[Bridge] = []
    for number, draws in enumerate(chains):
        chosen = np.linspace(0, len(draws) - 1, min(len(draws), MOST_DRAWS)).round().astype(int)
        parts += _of_chain(target, draws[chosen].astype(float), number)
    reliable = [part for part in parts if part.is_reliable]
    if not reliable:
        return Evidence(float(np.mean([part.upper for part in parts])), np.inf)
    values, errors = np.array([part[:2] for part in reliable]).T
    count = len(values)
    between = values.var(ddof=1) / count if count > 1 else 0.0
    error = float(np.sqrt(np.square(errors).mean() / count + between))
    return Evidence(float(values.mean()), error)


def _of_chain(target: RowsTarget, draws: Array, number: int) -> list[Bridge]:
    """Compute the mass from each half of the draws [S, P] of a chain, with a proposal from the other."""
    log_prob = target.log_prob(draws)
    best = draws[np.argmax(log_prob)]
    draws, _ = target.aligned(draws, best)
    # In many dimensions every draw is far below the mode. The mean is near it unless the basin bends.
    centre = max(best, draws.mean(axis=0), key=lambda theta: target.log_prob(theta[None])[0])
    factor, generator = target.factor(centre), np.random.default_rng([number, 17])
    half = len(draws) // 2
    parts = []
    for one, other in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
        proposal = FittedNormal.fitted(centre, factor, draws[one], effective_size(log_prob[one]))
        at_draws = log_prob[other] - proposal.log_density(draws[other])
        sample = proposal.sample(generator, len(at_draws))
        in_copy = ~target.aligned(sample, best)[1]
        # Minus infinity in other copies.
        at_sample = np.full(len(sample), -np.inf)
        if in_copy.any():
            at_sample[in_copy] = (target.log_prob(sample) - proposal.log_density(sample))[in_copy]
        parts.append(bridge(at_draws, at_sample))
    return parts


class FittedNormal(NamedTuple):
    """Normal distribution of theta, in coordinates z = L^T (theta - centre).

    Attributes:
        centre: [P].
        factor: Lower Cholesky factor L [P, P].
        mean, spread: Mean [P] of z, and the lower Cholesky factor of its covariance [P, P].
    """

    centre: Array
    factor: Array
    mean: Array
    spread: Array

    @classmethod
    def fitted(cls, centre: Array, factor: Array, draws: Array, size: float) -> FittedNormal:
        """Fit the distribution to draws, with a covariance that is shrunk towards 1 in z.

        The covariance is that of `size` draws and P more whose covariance is 1 in z: with far fewer
        draws than parameters no other has an inverse.

        Args:
            centre, factor: Coordinates, as in the attributes.
            draws: [M, P].
            size: Effective number of these draws.
        """
        z, count = (draws - centre) @ factor, len(centre)
        covariance = size * np.cov(z, rowvar=False, bias=True).reshape(count, count)
        covariance = (covariance + count * np.eye(count)) / (size + count)
        return cls(centre, factor, z.mean(axis=0), np.linalg.cholesky(covariance))

    def sample(self, generator: np.random.Generator, count: int) -> Array:
        """Draw theta [count, P]."""
        standard = generator.standard_normal((count, len(self.mean)))
        z = self.mean + standard @ self.spread.T
        return self.centre + np.linalg.solve(self.factor.T, z.T).T

    def log_density(self, theta: Array) -> Array:
        """Compute the log densities [M] at theta [M, P]."""
        z = (theta - self.centre) @ self.factor - self.mean
        standard = np.linalg.solve(self.spread, z.T)
        log_det = np.log(np.diag(self.spread)).sum() - np.log(np.diag(self.factor)).sum()
        constant = 0.5 * len(self.mean) * np.log(2.0 * np.pi) + log_det
        return -0.5 * np.square(standard).sum(axis=0) - constant


class Bridge(NamedTuple):
    """A log mass from bridge sampling.

    Attributes:
        value: Natural logarithm.
        stderr: Its standard error.
        overlap: Effective number of draws in the overlap of the two densities, the smaller of both.
        upper: The upper bound by Jensen's inequality.
    """

    value: float
    stderr: float
    overlap: float
    upper: float

    @property
    def is_reliable(self) -> bool:
        """True if value and standard error are reliable."""
        is_finite = np.isfinite(self.value) and np.isfinite(self.stderr)
        return bool(is_finite and self.overlap >= FEWEST_IN_OVERLAP)


def bridge(of_target: Array, of_proposal: Array) -> Bridge:
    """Compute the log mass of a target density from draws of it and of a normalised proposal.

    The optimal bridge function of Meng and Wong 1996, Statistica Sinica 6, 831, is found by
    iteration. The error is the relative mean square error of Fruehwirth-Schnatter 2004,
    Econometrics Journal 7, 143, and includes the autocorrelation of the target's draws.

    Args:
        of_target: Log target less log proposal density at draws of the target [S], in their order.
        of_proposal: The same at independent draws of the proposal [M], minus infinity where the
            target is zero.
    """
    size, upper = effective_size(of_target), float(of_target.mean())
    share = size / (size + len(of_proposal))
    # Relative to a common origin, or the differences would overflow.
    origin = float(np.median(of_target))
    target, proposal = of_target - origin, of_proposal - origin
    value = 0.0
    for _ in range(_MOST_STEPS):
        last = value
        above, below = _terms(target, proposal, value, share)
        value += _log_mean(above) - _log_mean(below)
        if not np.isfinite(value):
            return Bridge(np.nan, np.inf, 0.0, upper)
        if abs(value - last) < _TOLERANCE:
            break
    # A common factor does not matter, but the largest value must not be rounded to zero.
    above, below = (np.exp(terms - terms.max()) for terms in _terms(target, proposal, value, share))
    error = _relative_variance(above) / len(above)
    error += _relative_variance(below) / effective_size(below)
    overlap = min(_weight(above), _weight(below) * size / len(below))
    return Bridge(origin + value, float(np.sqrt(error)), overlap, upper)


def _terms(target: Array, proposal: Array, value: float, share: float) -> tuple[Array, Array]:
    """Return log(target / mixture) at the proposal's draws, log(proposal / mixture) at the target's."""
    above = proposal - value - _log_mixture(proposal - value, share)
    return above, -_log_mixture(target - value, share)


def _log_mixture(ratio: Array, share: float) -> Array:
    """Compute log(share r + 1 - share) from log r."""
    return np.logaddexp(np.log(share) + ratio, np.log1p(-share))


def _log_mean(logs: Array) -> float:
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))


def _relative_variance(values: Array) -> float:
    return float(values.var() / np.square(values.mean()))


def _weight(values: Array) -> float:
    """Return the number of equal values that have the same mean and variance of the mean."""
    return float(np.square(values.sum()) / np.square(values).sum())


def effective_size(values: Array) -> float:
    """Compute the effective number of draws, 1 to S, of a chain of numbers [S]; 1 if it stands still."""
    found = float(geyer_ess(values[None]))
    return float(np.clip(found, 1.0, len(values))) if np.isfinite(found) else 1.0
