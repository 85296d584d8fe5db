"""Power posteriors: a ladder of tempered posteriors that exchange their states.

One sweep of swaps goes through the rungs i in order. Each is offered an exchange of states with a partner j,
drawn with probability proportional to exp(-|i - j| / 2), j != i, and accepted with probability
min(1, exp((t_i - t_j) (ll_j - ll_i))), t the powers and ll the log likelihoods of the states held.
The prior cancels. The choice of the pair does not depend on the states and every exchange is its
own inverse, so each offer leaves the product of the power posteriors invariant by itself.

Papamarkou et al. multiply the acceptance by the ratio of the normalisers of the two partner laws.
That is right where i is drawn uniformly too, as the pair can then be met from either end. In a sweep
the same i would make the way back, with the same probability, so there is no such factor here.

References:
    Friel and Pettitt 2008, J. R. Stat. Soc. B 70, 589. Papamarkou et al. 2019, arXiv:1910.06539,
    section 4.2, for the partner law and its decay of 1/2.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from tfbnn.data.validation import check_number
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
    """Probabilities [m, m] that rung i (row) is offered rung j."""
    distance = np.abs(np.subtract.outer(np.arange(num_rungs), np.arange(num_rungs)))
    weights = np.where(distance > 0, np.exp(-_DECAY * distance), 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def sweep(log_likelihood: Tensor, temperatures: tuple[float, ...], seed: Tensor) -> Tensor:
    """Offers every rung one exchange.

    Args:
        log_likelihood: Of the states that the rungs hold, float64 [C, m].
        temperatures: Powers of the likelihood [m].
        seed: Stateless seed.

    Returns:
        int32 [C, m]: the rung whose state each rung holds afterwards.
    """
    num_chains, num_rungs = log_likelihood.shape
    uniform = tf.random.stateless_uniform([2, num_rungs, num_chains], seed, dtype=tf.float64)
    temperatures = tf.constant(temperatures, tf.float64)
    partners = draw_partners(uniform[0])

    def offer(rung: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        held = tf.gather(log_likelihood, order, batch_dims=1)
        ratio = swap_log_ratio(held, temperatures, rung, partners[rung])
        # A likelihood that is not finite gives NaN at worst, which accepts nothing.
        accepted = tf.math.log(uniform[1, rung]) < ratio
        return rung + 1, exchange(order, rung, tf.where(accepted, partners[rung], rung))

    start = (tf.constant(0), tf.tile(tf.range(num_rungs)[None], [num_chains, 1]))
    return tf.while_loop(lambda rung, _: rung < num_rungs, offer, start)[1]


def draw_partners(uniform: Tensor) -> Tensor:
    """Return the partner that each rung is offered: uniform numbers [m, C] -> int32 [m, C]."""
    cumulative = np.cumsum(partner_law(uniform.shape[0]), axis=1)
    # Exactly 1 at the end; a rung has no share of its own interval, so it never meets itself.
    cumulative /= cumulative[:, -1:]
    passed = uniform[:, :, None] >= tf.constant(cumulative[:, None, :])
    return tf.reduce_sum(tf.cast(passed, tf.int32), axis=-1)


def swap_log_ratio(held: Tensor, temperatures: Tensor, rung: Tensor, partner: Tensor) -> Tensor:
    """Log acceptance ratio [C] of an exchange.

    Args:
        held: Log likelihoods of the states that the rungs hold [C, m].
        temperatures: Powers of the likelihood [m].
        rung: The rung i.
        partner: The rung j of every chain [C].
    """
    others = tf.gather(held, partner[:, None], batch_dims=1)[:, 0]
    gain = others - tf.gather(held, rung, axis=1)
    return (tf.gather(temperatures, rung) - tf.gather(temperatures, partner)) * gain


def exchange(order: Tensor, rung: Tensor, partner: Tensor) -> Tensor:
    """`order` [C, m] with the entries of the rung and of the partner [C] exchanged."""
    columns = tf.range(order.shape[1])
    own = tf.gather(order, [rung], axis=1)
    others = tf.gather(order, partner[:, None], batch_dims=1)
    return tf.where(columns == rung, others, tf.where(columns == partner[:, None], own, order))


# Share of the rungs that stands around `crowded_at`, and how steeply their number falls on both
# sides: with 2, half of them are within a factor of 1.7.
_CROWD, _STEEPNESS = 0.5, 2.0
# Where the weights are as many as the rows there is no such place below 1.
_LAST_CROWD = 0.5


class LadderResults(NamedTuple):
    """Results of a transition, for the next one and for the report; R rows, m rungs per chain.

    Attributes:
        inner: Results of the inner kernel, started anew after the swaps.
        moved: TransitionStatistics of the inner kernel's move, [R] each.
        log_likelihood: Log likelihood at the current states [C, m], float64.
    """

    inner: Results
    moved: TransitionStatistics
    log_likelihood: Tensor


@dataclass(eq=False)
class LadderKernel(TransitionKernel):
    """Moves every rung by the inner kernel, then offers every rung a swap.

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
        """Results at a start [R, P]."""
        inner = self._kernel.bootstrap_results(init_state)
        return LadderResults(inner, self.inner.statistics(inner), self._log_likelihood(init_state))

    def one_step(self, z: Tensor, before: Results, seed: Tensor) -> tuple[Tensor, Results]:
        """One transition; returns (position [R, P], LadderResults)."""
        move_seed, swap_seed = tf.unstack(tf.random.split(seed, 2))
        z, inner = self._kernel.one_step(z, before.inner, seed=move_seed)
        log_likelihood = self._log_likelihood(z)
        order = sweep(log_likelihood, self.temperatures, swap_seed)
        num_chains, num_rungs = order.shape
        rows = tf.reshape(num_rungs * tf.range(num_chains)[:, None] + order, [-1])  # of [R]
        z = self.target_log_prob_fn.gather(z, rows)
        return z, LadderResults(
            # Density and gradient that were cached before belong to the power of another rung.
            inner=self._kernel.bootstrap_results(z),
            moved=self.inner.statistics(inner),
            log_likelihood=tf.gather(log_likelihood, order, batch_dims=1),
        )

    def _log_likelihood(self, z: Tensor) -> Tensor:
        return tf.reshape(self.target_log_prob_fn.log_likelihood(z), [-1, len(self.temperatures)])


@dataclass(frozen=True)
class PowerPosterior(ComposedKernel, name="power_posterior"):
    """Power posteriors: every chain is a ladder of m rungs that exchange their states.

    Rung i samples p(D | theta)^t_i p(theta): the likelihood is tempered and the prior is not, from the
    prior at t = 0 to the posterior at t = 1, or to the coarsened posterior of a fit whose
    `likelihood_power` is below 1: then p(D | theta) has that power already. With t = x^power, x rises
    in equal steps; where a noise scale is learned, half of the rungs are placed otherwise, see
    `crowded_at`. Only the last rung's draws are kept, and only its acceptance,
    step size and divergences are reported; gradients count for all of them. A transition moves all rungs by the inner kernel, each with a step size and a
    diagonal preconditioner of its own, and then offers each of them a swap with another rung, after
    which the inner kernel starts anew: one gradient more, persistent momenta are drawn afresh, and a
    trajectory length that the inner kernel would learn stays at its first value.
    A swap of two rungs i and j is accepted with probability
    min(1, exp((t_i - t_j) (ll_j - ll_i))), ll their log likelihoods, without the ratio of the
    normalisers of the partner law: the module docstring says why this is exact.

    A chain finds other modes by way of the rungs near the prior, at m times the cost of the inner
    kernel. The log likelihoods of all rungs give `run.log_evidence`, log p(D) by thermodynamic
    integration and by stepping stones. Swaps that are rarely accepted, which the report says, ask
    for more rungs, and so does an error of the evidence that is too large.

    Attributes:
        inner: Kernel within the rungs; default MALA(). By settings or by name; with
            `preconditioner="auto"` it means "diagonal" where it would whiten. Its `step_size`,
            where given, is that of all rungs.
        num_temperatures: Rungs m per chain, at least 2; default 25. The evidence of linear models
            with 200 to 1000 rows is then known to 0.5 at most from runs of default length
            (`benchmarks/studies/evidence/run.py`); to find other modes fewer will do.
        power: Exponent of the ladder; default 4. The log likelihood changes fastest near the prior,
            where rungs have to be close.
        crowded_at: Power of the likelihood around which half of the rungs stand; 0 for none. None
            (default): where a noise scale is learned, the number of weights over that of targets,
            at most 0.5. At about this power the rows outweigh the weights that fit them, and the noise
            scale falls from what the prior has to that of the data within a factor of two of it.

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
        object.__setattr__(self, "power", check_number("power", self.power, above=0))
        if self.crowded_at is not None:
            crowded_at = check_number("crowded_at", self.crowded_at, minimum=0, below=1)
            object.__setattr__(self, "crowded_at", crowded_at)
        if self.inner.rung_obstacle is not None:
            raise ValueError(
                "The inner kernel of PowerPosterior must leave every power posterior exact, received "
                f"{self.inner!r}: {self.inner.rung_obstacle}. Use for example 'mala' or 'hmc'."
            )
        if self.inner.preconditioner == "gauss_newton":
            raise ValueError(
                "preconditioner of the inner kernel of PowerPosterior must be 'auto', 'diagonal' "
                "or 'identity', received 'gauss_newton', which is the curvature of the posterior "
                "and of no other rung."
            )

    @property
    def temperatures(self) -> tuple[float, ...]:
        """The powers of the likelihood, from 0 to 1."""
        last = self.num_temperatures - 1
        return tuple(self._temperature(rung / last) for rung in range(last + 1))

    def _temperature(self, share: float) -> float:
        """Return the power that this share of the steps of the ladder is below."""
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
        """Return these settings with a definite ladder and preconditioner, and a line on the latter."""
        resolved, why = super().resolve(spec, num_rows)
        if isinstance(spec, NetworkSpec) and self.crowded_at is None and spec.layout.num_noise:
            targets = spec.likelihood_power * num_rows * spec.num_targets
            ratio = spec.layout.num_weights / targets
            resolved = replace(resolved, crowded_at=min(ratio, _LAST_CROWD))
        return resolved, why

    @property
    def gradients_per_transition(self) -> int:
        """Gradients of one rung."""
        return self.inner.gradients_per_transition + 1

    def check_start(self, results: Results, chains: Sequence[int] | Array) -> None:
        """Refuse starts from which the inner kernel cannot move at one of the rungs."""
        self.inner.check_start(results.inner, np.repeat(chains, self.num_temperatures))

    def work(self, spec: Sampled) -> float:
        """About how many gradients a transition of one rung costs."""
        return self.inner.work(spec) + 1

    def instead_of_whitening(self, spec: Sampled) -> str:
        """Return the Gauss-Newton matrix of the posterior is that of no other rung."""
        return "diagonal, measured at every rung by itself"

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Return the kernel; `step_size` has shape [R, 1]."""
        return LadderKernel(target_log_prob_fn, step_size, self.inner, self.temperatures)

    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """Kernel results for the next transition, with the step size [R, 1]."""
        return before._replace(inner=self.inner.prepare(before.inner, step_size, key, adapting))

    def target_log_prob(self, results: Results) -> Tensor:
        """Log density of the current state [R], each to the power of its rung."""
        return self.inner.target_log_prob(results.inner)

    def statistics(self, results: Results) -> TransitionStatistics:
        """Statistics of the inner kernel's last move [R]."""
        moved = results.moved
        # The fresh start after the swaps takes a gradient too.
        steps = tf.where(moved.n_steps > 0, moved.n_steps + 1, 0)
        # Swaps change the energy between one transition and the next, which E-BFMI compares.
        return moved._replace(n_steps=steps, energy=unknown(moved.energy))


PowerPosterior.__init__ = explains_keywords(PowerPosterior.__init__)  # type: ignore[method-assign]
