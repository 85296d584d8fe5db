"""The simplified manifold Metropolis-adjusted Langevin algorithm."""

from dataclasses import dataclass, replace

import numpy as np

from tfbnn.data.validation import check_choice, check_number
from tfbnn.engine.basis.libraries import tf, tfp
from tfbnn.engine.kernels.metric_tensor import cholesky_metric, softabs_metric
from tfbnn.engine.kernels.metropolis import MetropolisKernel, Proposal
from tfbnn.exceptions import StartError

METRICS = ("softabs", "gauss_newton")

# Matrices P x P that a program holds for a chain: Hessian, eigenvectors, and the roots of both points
# in the results before and after the accept step.
_MATRICES = 12
# Numbers held per parameter and row: seven per unit of the network for second derivatives, three per
# output for the Jacobian (measured, 5-12-1 and 5-8-8-2, with and without XLA).
_HESSIAN_NUMBERS, _JACOBIAN_NUMBERS = 7, 3
_MOST_BYTES = 1e9


class ManifoldProposal(Proposal):
    """z' ~ N(z + (h / 2) G^-1 grad, h G^-1), h the step size and G the metric at z; in float64."""

    def __init__(self, target_log_prob_fn, step_size, metric):
        """
        Args:
            target_log_prob_fn: As in Proposal.
            step_size: As in Proposal.
            metric: z [C, P] -> MetricTensor.
        """
        super().__init__(target_log_prob_fn, step_size)
        self.metric_at = metric

    def mean(self, point, step_size):
        """Where the proposal from a Point is centred [C, P]."""
        gradient = tf.cast(point.gradient, tf.float64)
        return tf.cast(point.z, tf.float64) + 0.5 * step_size * point.metric.raised(gradient)

    def draw(self, here, step_size, seed):
        """A new position [C, P]."""
        step_size = tf.cast(step_size, tf.float64)
        noise = tf.random.stateless_normal(here.z.shape, seed, dtype=tf.float64)
        z = self.mean(here, step_size) + tf.sqrt(step_size) * here.metric.spread(noise)
        return tf.cast(z, here.z.dtype)

    def log_ratio(self, here, there, step_size):
        """log q(here | there) - log q(there | here) [C], with the determinants of both metrics."""
        step_size = tf.cast(step_size, tf.float64)
        ratio = self._log_density(here, there, step_size) - self._log_density(
            there, here, step_size
        )
        return tf.cast(ratio, here.z.dtype)

    def _log_density(self, end, start, step_size):
        """log q(end | start) [C] of two Points, up to what is the same for all."""
        shift = tf.cast(end.z, tf.float64) - self.mean(start, step_size)
        squares = start.metric.squared_length(shift) / step_size[:, 0]
        return 0.5 * (start.metric.log_det - squares)


@dataclass(frozen=True, kw_only=True)
class SMMALA(MetropolisKernel):
    """Simplified manifold MALA: theta' ~ N(theta + (h / 2) G^-1 grad, h G^-1), G the metric at theta.

    The ratio has both normal densities in full, with the determinants of G at theta and at theta'.
    `step_size` is h, of order 1 whatever the scales of the parameters: on a normal density G can be
    its precision, and this is MALA on a standard normal. A transition costs one gradient, which is
    what `n_steps` counts, and one metric: second derivatives and an eigendecomposition, or Jacobian
    and Cholesky factorisation, about P times as much. It suits small networks. XLA factorises slowly on
    a CPU: from about 27 parameters (softabs) or 60 (gauss_newton), `fit_posterior(jit_compile=False)`
    is faster; it took 1.2 ms instead of 1.7 for four chains of 4-3-3 on 150 rows, but 1.6 instead of
    0.25 for ten of 2-2-1 on four rows (softabs, processor time per transition).

    Attributes:
        metric: "softabs" (default): the Hessian H of minus the log posterior, with its eigenvalues
            lam replaced by lam coth(softabs_alpha lam), which is |lam| where that is large.
            "gauss_newton": the Fisher information of the likelihood plus the precision of the
            prior, positive definite by construction; cheaper, and blind to where H is indefinite.
        softabs_alpha: Sharpness of the SoftAbs, default 1. No eigenvalue of G is below
            1 / softabs_alpha, so a proposal spreads by at most sqrt(h softabs_alpha) in any
            direction. The literature has 1e3 to 1e6, where eigenvalues that change sign on the way make
            proposals far beyond the posterior: of 80 000 draws on exclusive-or (2-2-1, weights of
            prior variance 10), the smallest ESS of the outputs was 22 with 1000, 1255 with 10, and
            21344 with 1.
        target_accept_prob: Default 0.7, Girolami and Calderhead's advice; no theory is known.
        preconditioner: "auto" (default) or "identity", which it means: the metric takes its place.

    The other attributes are described in `Kernel`.

    Raises:
        ValueError: For other preconditioners, and for models whose metric does not fit in memory.
        StartError: Where the metric at a start is not finite. Elsewhere such a proposal is rejected.

    References:
        Girolami and Calderhead 2011, J. R. Stat. Soc. B 73, 123. Betancourt 2013, arXiv:1212.4693.
    """

    metric: str = "softabs"
    softabs_alpha: float = 1.0

    accept_targets = (0.7, 0.7)
    theta_obstacle = "its metric is computed in theta"
    proposal = ManifoldProposal

    def __post_init__(self):
        super().__post_init__()
        check_choice("metric", self.metric, METRICS)
        check_number("softabs_alpha", self.softabs_alpha, above=0)
        if self.preconditioner not in ("auto", "identity"):
            raise ValueError(
                "preconditioner of SMMALA must be 'auto' or 'identity', received "
                f"{self.preconditioner!r}: the metric takes its place."
            )

    def check_model(self, spec, row_noise):
        """Refuses models whose matrices P x P do not fit in memory."""
        super().check_model(spec, row_noise)
        self._check_memory(spec, num_rows=0)

    def resolve(self, spec, num_rows):
        """Leaves the coordinates as they are; refuses rows whose derivatives do not fit in memory."""
        self._check_memory(spec, num_rows)
        return replace(self, preconditioner="identity"), "identity: the metric takes its place"

    def _check_memory(self, spec, num_rows):
        size, numbers = spec.layout.num_parameters, _JACOBIAN_NUMBERS * spec.layer_sizes[-1]
        if self.metric == "softabs":
            numbers = _HESSIAN_NUMBERS * sum(spec.layer_sizes[1:])
        needed = 8 * size * (_MATRICES * size + numbers * num_rows)
        if needed > _MOST_BYTES:
            rows = f" and {num_rows} rows" if num_rows else ""
            raise ValueError(
                f"SMMALA(metric={self.metric!r}) must fit into {_MOST_BYTES:.3g} bytes per chain, "
                f"and would need {needed:.3g} for P = {size}{rows}. Use kernel='nuts', which takes "
                "its geometry from one Gauss-Newton matrix per window, or a smaller network."
            )

    def check_start(self, results, chains):
        """Refuses starts whose metric is not finite: every proposal from there would be rejected."""
        log_det = results.accepted_results.metric.log_det.numpy()
        for chain, value in zip(chains, log_det):
            if not np.isfinite(value):
                raise StartError(
                    f"The {self.metric} metric of SMMALA is not finite where chain {chain} starts. "
                    "Use Pretraining, a narrower prior, or kernel='nuts'."
                )

    def work(self, spec):
        """Second derivatives and factorisation, in gradients."""
        return spec.layout.num_parameters

    def first_step_size(self, leapfrog_step, num_parameters):
        """The optimum of MALA for a standard normal density, 1.65^2 P^(-1/3), for every chain."""
        return np.full_like(leapfrog_step, 1.65**2 / num_parameters ** (1 / 3))

    def build(self, target_log_prob_fn, step_size):
        """The TFP kernel; `target_log_prob_fn` has methods `hessian`, `gauss_newton` as `Target`."""

        def metric(z):
            if self.metric == "softabs":
                return softabs_metric(-target_log_prob_fn.hessian(z), self.softabs_alpha)
            return cholesky_metric(target_log_prob_fn.gauss_newton(z))

        return tfp.mcmc.MetropolisHastings(self.proposal(target_log_prob_fn, step_size, metric))
