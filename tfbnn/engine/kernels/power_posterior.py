"""Power posteriors: a ladder of tempered posteriors that exchange their states.

A sweep of swaps goes through the rungs i in order. Each rung is offered an exchange of states with
a partner j != i, drawn with probability proportional to exp(-|i - j| / 2). The exchange is accepted
with probability min(1, exp((t_i - t_j) (ll_j - ll_i))), with t the powers and ll the log
likelihoods of the current states. The prior cancels. The choice of the pair does not depend on the
states, and every exchange is its own inverse. Each offer alone therefore leaves the product of the
power posteriors invariant.

Papamarkou et al. multiply the acceptance by the ratio of the normalisers of the two partner laws.
This factor is right if i is also drawn uniformly, because the pair can then be chosen from either
end. In a sweep, the reverse move has the same i and the same probability, so there is no such
factor.

References:
    Friel and Pettitt 2008, J. R. Stat. Soc. B 70, 589. Papamarkou et al. 2019, arXiv:1910.06539,
    section 4.2, for the partner law and its decay of 1/2.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor, tf
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.kernels.mala import MALA
from tfbnn.engine.kernels.registry import ComposedKernel
from tfbnn.engine.kernels.transition import TransitionKernel, TransitionStatistics, unknown
from tfbnn.spec.density_spec import Sampled
from tfbnn.spec.habits import explains_keywords
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

_DECAY = 0.5


def partner_law(num_rungs: int) -> Array:
    """Compute the probabilities [m, m] that rung i (row) is offered rung j (column)."""
    distance = np.abs(np.subtract.outer(np.arange(num_rungs), np.arange(num_rungs)))
    weights = np.where(distance > 0, np.exp(-_DECAY * distance), 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def sweep(log_likelihood: Tensor, temperatures: tuple[float, ...], seed: Tensor) -> Tensor:
    """Offer every rung one exchange.

    Args:
        log_likelihood: Log likelihoods of the states of the rungs, float64 [C, m].
        temperatures: Powers of the likelihood [m].
        seed: Stateless seed.

    Returns:
        int32 [C, m]: for each rung, the rung whose state it holds afterwards.
    """
    num_chains, num_rungs = log_likelihood.shape
    uniform = tf.random.stateless_uniform([2, num_rungs, num_chains], seed, dtype=tf.float64)
    temperatures = tf.constant(temperatures, tf.float64)
    partners = draw_partners(uniform[0])

    def offer(rung: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        held = tf.gather(log_likelihood, order, batch_dims=1)
        ratio = swap_log_ratio(held, temperatures, rung, partners[rung])
        # A likelihood that is not finite gives NaN at worst, and NaN rejects the exchange.
        accepted = tf.math.log(uniform[1, rung]) < ratio
        return rung + 1, exchange(order, rung, tf.where(accepted, partners[rung], rung))

    start = (tf.constant(0), tf.tile(tf.range(num_rungs)[None], [num_chains, 1]))
    return tf.while_loop(lambda rung, _: rung < num_rungs, offer, start)[1]


def draw_partners(uniform: Tensor) -> Tensor:
    """Draw the partner of each rung from uniform numbers [m, C]; int32 [m, C]."""
    cumulative = np.cumsum(partner_law(uniform.shape[0]), axis=1)
    # The last value is exactly 1. The interval of the rung itself is empty, so it is never drawn.
    cumulative /= cumulative[:, -1:]
    passed = uniform[:, :, None] >= tf.constant(cumulative[:, None, :])
    return tf.reduce_sum(tf.cast(passed, tf.int32), axis=-1)


def swap_log_ratio(held: Tensor, temperatures: Tensor, rung: Tensor, partner: Tensor) -> Tensor:
    """Compute the log acceptance ratio [C] of an exchange.

    Args:
        held: Log likelihoods of the current states of the rungs [C, m].
        temperatures: Powers of the likelihood [m].
        rung: Rung i.
        partner: Rung j of every chain [C].
    """
    others = tf.gather(held, partner[:, None], batch_dims=1)[:, 0]
    gain = others - tf.gather(held, rung, axis=1)
    return (tf.gather(temperatures, rung) - tf.gather(temperatures, partner)) * gain


def exchange(order: Tensor, rung: Tensor, partner: Tensor) -> Tensor:
    """Exchange the entries of the rung and of the partner [C] in `order` [C, m]."""
    columns = tf.range(order.shape[1])
    own = tf.gather(order, [rung], axis=1)
    others = tf.gather(order, partner[:, None], batch_dims=1)
    return tf.where(columns == rung, others, tf.where(columns == partner[:, None], own, order))


# Share of the rungs around `crowded_at`, and steepness of the fall of their density on both sides:
# with 2, half of them are within a factor of 1.7.
_CROWD, _STEEPNESS = 0.5, 2.0
# With as many weights as rows, the noise scale falls at no power below 1.
_LAST_CROWD = 0.5


class LadderResults(NamedTuple):
    """Results of a transition, used by the next transition and by the report; R rows, m rungs per chain.

    Attributes:
        inner: Results of the inner kernel, restarted after the swaps.
        moved: TransitionStatistics of the inner kernel's move, [R] each.
        log_likelihood: Log likelihood at the current states [C, m], float64.
    """

    inner: Results
    moved: TransitionStatistics
    log_likelihood: Tensor


@dataclass(eq=False)
class LadderKernel(TransitionKernel):
    """Kernel that moves every rung by the inner kernel, then offers every rung a swap.

    Attributes:
        inner: Settings of the inner kernel.
        temperatures: Powers of the likelihood of a chain's rungs.
    """

    inner: Kernel
    temperatures: tuple[float, ...]

    def __post_init__(self) -> None:
        self._kernel = self.inner.build(self.target_log_prob_fn, self.step_size)
        self.is_calibrated = self._kernel.is_calibrated

    def bootstrap_results(self, init_state: Tensor) -> Results:
        """Compute the kernel results at a start [R, P]."""
        inner = self._kernel.bootstrap_results(init_state)
        return LadderResults(inner, self.inner.statistics(inner), self._log_likelihood(init_state))

    def one_step(self, z: Tensor, before: Results, seed: Tensor) -> tuple[Tensor, Results]:
        """Make one transition; return (position [R, P], LadderResults)."""
        move_seed, swap_seed = tf.unstack(tf.random.split(seed, 2))
        z, inner = self._kernel.one_step(z, before.inner, seed=move_seed)
        log_likelihood = self._log_likelihood(z)
        order = sweep(log_likelihood, self.temperatures, swap_seed)
        num_chains, num_rungs = order.shape
        rows = tf.reshape(num_rungs * tf.range(num_chains)[:, None] + order, [-1])  # [R]
        z = self.target_log_prob_fn.gather(z, rows)
        return z, LadderResults(
            # The cached density and gradient belong to the power of another rung.
            inner=self._kernel.bootstrap_results(z),
            moved=self.inner.statistics(inner),
            log_likelihood=tf.gather(log_likelihood, order, batch_dims=1),
        )

    def _log_likelihood(self, z: Tensor) -> Tensor:
        return tf.reshape(self.target_log_prob_fn.log_likelihood(z), [-1, len(self.temperatures)])


@dataclass(frozen=True)
class PowerPosterior(ComposedKernel, name="power_posterior"):
    """Power posteriors: every chain is a ladder of m rungs that exchange their states.

    Rung i samples p(D | theta)^t_i p(theta). The likelihood is tempered, the prior is not: t = 0 is
    the prior and t = 1 the posterior. In a fit with `likelihood_power` below 1, t = 1 is the
    coarsened posterior, because p(D | theta) already has that power. With t = x^power, x rises in
    equal steps. If a noise scale is learned, half of the rungs are distributed differently, see
    `crowded_at`. Only the draws of the last rung are kept, and only its acceptance, step size and
    divergences are reported. Gradients are counted for all rungs.

    A transition moves all rungs by the inner kernel, each with its own step size and diagonal
    preconditioner. It then offers each rung a swap with another rung. After the swaps the inner
    kernel is restarted: this takes one more gradient, persistent momenta are drawn again, and a
    trajectory length that the inner kernel would learn stays at its first value. A swap of two
    rungs i and j is accepted with probability min(1, exp((t_i - t_j) (ll_j - ll_i))), where ll are
    their log likelihoods. The ratio of the normalisers of the partner law is left out; the module
    docstring explains why this is exact.

    A chain finds other modes through the rungs near the prior, at m times the cost of the inner
    kernel. The log likelihoods of all rungs give `run.log_evidence`, log p(D) by thermodynamic
    integration and by stepping stones. More rungs are needed if the report says that swaps are
    rarely accepted, or if the error of the evidence is too large.

    Attributes:
        inner: Kernel within the rungs; default MALA(). It is given by settings or by name. With
            `preconditioner="auto"` it uses "diagonal" where it would whiten. Its `step_size`, if
            given, applies to all rungs.
        num_temperatures: Rungs m per chain, at least 2; default 25. With 25 rungs, runs of default
            length determine the evidence of linear models with 200 to 1000 rows to 0.5 or better
            (`benchmarks/studies/evidence/run.py`). Fewer rungs suffice to find other modes.
        power: Exponent of the ladder; default 4. The log likelihood changes fastest near the prior,
            where rungs have to be close.
        crowded_at: Power of the likelihood around which half of the rungs lie; 0 for none. None
            (default): with a learned noise scale, the number of weights divided by that of targets,
            at most 0.5; otherwise 0. At about this power the rows begin to outweigh the weights
            that fit them. Within a factor of two of it, the noise scale falls from that of the
            prior to that of the data.

    Raises:
        TypeError, ValueError: For an inner kernel that is unknown, biased, built by the user,
            whitened by the Gauss-Newton matrix, or a PowerPosterior.

    References:
        Friel and Pettitt 2008, J. R. Stat. Soc. B 70, 589. Papamarkou et al. 2019,
        arXiv:1910.06539, sections 3.1.5 and 4.2.
    """

    inner: Kernel = MALA()
    _: KW_ONLY
    num_temperatures: int = 25
    power: float = 4.0
    crowded_at: float | None = None

    rung_obstacle = "its rungs would be ladders themselves"
    theta_obstacle = "the readout of every rung would have a map of its own"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_integer("num_temperatures", minimum=2)
        self._check_number("power", above=0)
        self._check_number("crowded_at", minimum=0, below=1)
        if self.inner.rung_obstacle is not None:
            raise ValueError(
                "The inner kernel of PowerPosterior must leave every power posterior exact, received "
                f"{self.inner!r}: {self.inner.rung_obstacle}. Use for example 'mala' or 'hmc'."
            )
        if self.inner.preconditioner == "gauss_newton":
            raise ValueError(
                "preconditioner of the inner kernel of PowerPosterior must be 'auto', 'diagonal', "
                "'prior' or 'identity', received 'gauss_newton', which is the curvature of the posterior "
                "and of no other rung."
            )

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Powers of the likelihood, from 0 to 1."""
        last = self.num_temperatures - 1
        return tuple(self._temperature(rung / last) for rung in range(last + 1))

    def _temperature(self, share: float) -> float:
        """Return the power of the likelihood at a share of the ladder, from 0 to 1."""
        if not self.crowded_at or share in (0.0, 1.0):
            return share**self.power
        from scipy.optimize import brentq

        centre = self.crowded_at**_STEEPNESS

        def excess(x: float) -> float:
            t = x ** (self.power * _STEEPNESS)
            crowd = (1.0 + centre) * t / (t + centre)
            return (1.0 - _CROWD) * x + _CROWD * crowd - share

        return float(brentq(excess, 0.0, 1.0, xtol=1e-14)) ** self.power

    def resolve(self, spec: Sampled, num_rows: int) -> tuple[Self, str]:
        """Choose ladder and preconditioner; return the settings, and a text about the latter."""
        resolved, why = super().resolve(spec, num_rows)
        if isinstance(spec, NetworkSpec) and self.crowded_at is None and spec.layout.num_noise:
            targets = spec.likelihood_power * num_rows * spec.num_targets
            ratio = spec.layout.num_weights / targets
            resolved = replace(resolved, crowded_at=min(ratio, _LAST_CROWD))
        return resolved, why

    @property
    def gradients_per_transition(self) -> int:
        """Gradients per transition of one rung."""
        return self.inner.gradients_per_transition + 1

    def check_start(self, results: Results, chains: Sequence[int] | Array) -> None:
        """Raise StartError if the inner kernel cannot move from a start at one of the rungs."""
        self.inner.check_start(results.inner, np.repeat(chains, self.num_temperatures))

    def work(self, spec: Sampled) -> float:
        """Estimate the cost of a transition of one rung in gradients."""
        return self.inner.work(spec) + 1

    def instead_of_whitening(self, spec: Sampled) -> str:
        """Return the reason for "diagonal": the Gauss-Newton matrix fits only the last rung."""
        return "diagonal, measured at every rung by itself"

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Build the kernel; `step_size` has shape [R, 1]."""
        return LadderKernel(target_log_prob_fn, step_size, self.inner, self.temperatures)

    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """Return the kernel results for the next transition, with the step size [R, 1]."""
        return before._replace(inner=self.inner.prepare(before.inner, step_size, key, adapting))

    def target_log_prob(self, results: Results) -> Tensor:
        """Return the log density of the current state [R], with the power of its rung."""
        return self.inner.target_log_prob(results.inner)

    def statistics(self, results: Results) -> TransitionStatistics:
        """Return the statistics of the inner kernel's last move [R]."""
        moved = results.moved
        # The restart after the swaps takes a gradient, too.
        steps = tf.where(moved.n_steps > 0, moved.n_steps + 1, 0)
        # E-BFMI compares the energies of successive transitions, and swaps change them in between.
        return moved._replace(n_steps=steps, energy=unknown(moved.energy))


PowerPosterior.__init__ = explains_keywords(PowerPosterior.__init__)  # type: ignore[method-assign]
