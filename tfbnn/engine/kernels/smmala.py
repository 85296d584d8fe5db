"""The simplified manifold Metropolis-adjusted Langevin algorithm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np

from tfbnn.data.validation import check_choice
from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor, tf, tfp
from tfbnn.engine.density.row_blocks import rows_per_block
from tfbnn.engine.kernels.metropolis import MetropolisKernel, Point, Proposal
from tfbnn.engine.kernels.transition import TransitionKernel
from tfbnn.exceptions import StartError
from tfbnn.spec.density_spec import Sampled
from tfbnn.spec.infinite_spec import require_weights
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.system.arrays import Array

MetricName: TypeAlias = Literal["softabs", "gauss_newton"]
# Number of P x P matrices in memory per chain: Hessian, eigenvectors, and the roots of both points
# in the results before and after the accept step.
_MATRICES = 12
# Numbers in memory per parameter and row: seven per unit of the network for second derivatives,
# three per output for the Jacobian (measured, 5-12-1 and 5-8-8-2, with and without XLA).
_HESSIAN_NUMBERS, _JACOBIAN_NUMBERS = 7, 3
_MOST_BYTES = 1e9
# Below this, x coth(x) is 1 + x^2 / 3 to the last bit.
_SMALL = 1e-4


class MetricTensor(NamedTuple):
    """Factorised positive definite matrices G = root root^T, one per position.

    All are float64. If a matrix is not finite, the log determinant is NaN, so that a proposal there
    is rejected. Its factors are then those of the identity, because a factorisation with a NaN
    stops the program (TensorFlow) or the other chains of the batch (XLA).

    Attributes:
        root: Square root of G [C, P, P].
        inverse_root: Transposed inverse of the root [C, P, P]: G^-1 = inverse_root inverse_root^T.
        log_det: log det G [C]; NaN if G is not finite.
    """

    root: Tensor
    inverse_root: Tensor
    log_det: Tensor

    def raised(self, gradient: Tensor) -> Tensor:
        """Multiply gradients [C, P] by G^-1."""
        return self.spread(tf.linalg.matvec(self.inverse_root, gradient, transpose_a=True))

    def spread(self, noise: Tensor) -> Tensor:
        """Transform standard normal noise [C, P] to noise with covariance G^-1."""
        return tf.linalg.matvec(self.inverse_root, noise)

    def squared_length(self, shift: Tensor) -> Tensor:
        """Compute shift^T G shift [C] for shifts [C, P]."""
        return tf.reduce_sum(tf.linalg.matvec(self.root, shift, transpose_a=True) ** 2, axis=-1)


Metric = Callable[[Tensor], MetricTensor]


def softabs(values: Tensor, alpha: float) -> Tensor:
    """Compute x coth(alpha x): about |x| for |x| >> 1 / alpha, at least 1 / alpha, its limit at 0."""
    scaled = alpha * tf.abs(values)
    limit = 1.0 + scaled**2 / 3.0
    return tf.where(scaled < _SMALL, limit, scaled / tf.tanh(scaled)) / alpha


def softabs_metric(hessian: Tensor, alpha: float) -> MetricTensor:
    """Return the metric of symmetric matrices [C, P, P] with the SoftAbs of their eigenvalues.

    XLA's eigendecomposition on a CPU stops at errors of 1e-7 of the largest eigenvalue. The
    eigenvectors are orthonormal to rounding, so the result is a valid metric that differs slightly.

    References:
        Betancourt 2013, arXiv:1212.4693.
    """
    hessian, is_finite = _finite(hessian)
    values, vectors = tf.linalg.eigh(hessian)
    values = softabs(values, alpha)
    scale = tf.sqrt(values)[:, None, :]
    return _metric(vectors * scale, vectors / scale, values, is_finite)


def cholesky_metric(matrix: Tensor) -> MetricTensor:
    """Return the metric of semi-definite matrices [C, P, P], damped at the level of rounding errors.

    The diagonals are raised by P^2 units in the last place. With this the factorisation of a matrix
    with positive diagonal cannot fail (Higham 2002, Accuracy and Stability of Numerical Algorithms,
    theorem 10.7).
    """
    matrix, is_finite = _finite(matrix)
    size = matrix.shape[-1]
    diagonal = tf.linalg.diag_part(matrix)
    damped = diagonal * (1.0 + size**2 * np.finfo(np.float64).eps)
    root = tf.linalg.cholesky(tf.linalg.set_diag(matrix, damped))
    identity = tf.eye(size, batch_shape=matrix.shape[:1], dtype=matrix.dtype)
    inverse = tf.linalg.triangular_solve(root, identity)
    squares = tf.linalg.diag_part(root) ** 2
    return _metric(root, tf.linalg.matrix_transpose(inverse), squares, is_finite)


def _finite(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Replace matrices that are not finite by the identity; return (matrices, which are finite [C])."""
    is_finite = tf.reduce_all(tf.math.is_finite(matrix), axis=[-2, -1])
    identity = tf.eye(matrix.shape[-1], dtype=matrix.dtype)
    return tf.where(is_finite[:, None, None], matrix, identity), is_finite


def _metric(root: Tensor, inverse_root: Tensor, factors: Tensor, is_finite: Tensor) -> MetricTensor:
    log_det = tf.reduce_sum(tf.math.log(factors), axis=-1)
    missing = tf.constant(np.nan, log_det.dtype)
    return MetricTensor(root, inverse_root, tf.where(is_finite, log_det, missing))


class ManifoldProposal(Proposal):
    """Proposal z' ~ N(z + (h / 2) G^-1 grad, h G^-1), h the step size, G the metric at z; in float64."""

    def __init__(self, target_log_prob_fn: LogDensity, step_size: Tensor, metric: Metric) -> None:
        """Make a ManifoldProposal.

        Args:
            target_log_prob_fn: As in Proposal.
            step_size: As in Proposal.
            metric: Function z [C, P] -> MetricTensor.
        """
        super().__init__(target_log_prob_fn, step_size)
        self.metric_at = metric  # type: ignore[assignment, method-assign]

    def mean(self, point: Point, step_size: Tensor) -> Tensor:
        """Return the mean [C, P] of the proposal from a Point."""
        gradient = tf.cast(point.gradient, tf.float64)
        return tf.cast(point.z, tf.float64) + 0.5 * step_size * point.metric.raised(gradient)

    def draw(self, here: Point, step_size: Tensor, seed: Tensor) -> Tensor:
        """Draw a new position [C, P]."""
        step_size = tf.cast(step_size, tf.float64)
        noise = tf.random.stateless_normal(here.z.shape, seed, dtype=tf.float64)
        z = self.mean(here, step_size) + tf.sqrt(step_size) * here.metric.spread(noise)
        return tf.cast(z, here.z.dtype)

    def log_ratio(self, here: Point, there: Point, step_size: Tensor) -> Tensor:
        """Compute log q(here | there) - log q(there | here) [C], with the determinants of both metrics."""
        step_size = tf.cast(step_size, tf.float64)
        back = self._log_density(here, there, step_size)
        return tf.cast(back - self._log_density(there, here, step_size), here.z.dtype)

    def _log_density(self, end: Point, start: Point, step_size: Tensor) -> Tensor:
        """Compute log q(end | start) [C] for two Points, up to a common constant."""
        shift = tf.cast(end.z, tf.float64) - self.mean(start, step_size)
        squares = start.metric.squared_length(shift) / step_size[:, 0]
        return 0.5 * (start.metric.log_det - squares)


@dataclass(frozen=True, kw_only=True)
class SMMALA(MetropolisKernel, name="smmala"):
    """Simplified manifold MALA: theta' ~ N(theta + (h / 2) G^-1 grad, h G^-1) with the metric G.

    G is the metric at theta. The acceptance ratio contains both full normal densities, with the
    determinants of G at theta and theta'. `step_size` is h. It is of order 1 for all scales of the
    parameters: on a normal density G can be its precision, and this is then MALA on a standard
    normal.

    A transition costs one gradient, counted by `n_steps`, and one metric. The metric takes second
    derivatives and an eigendecomposition, or the Jacobian and a Cholesky factorisation, and costs
    about P times as much as the gradient. The kernel suits small networks. XLA factorises slowly on
    a CPU: from about 27 parameters (softabs) or 60 (gauss_newton),
    `fit_posterior(jit_compile=False)` is faster. It took 1.2 ms instead of 1.7 for four chains of
    4-3-3 on 150 rows, but 1.6 instead of 0.25 for ten of 2-2-1 on four rows (softabs, processor
    time per transition).

    Attributes:
        metric: "softabs" (default) or "gauss_newton". "softabs" is the Hessian H of minus the log
            posterior, with its eigenvalues lam replaced by lam coth(softabs_alpha lam), which is
            about `|lam|` for large values. "gauss_newton" is the Fisher information of the
            likelihood plus the precision of the prior, positive definite by construction. It is
            cheaper, but does not reflect where H is indefinite.
        softabs_alpha: Sharpness of the SoftAbs, default 1. No eigenvalue of G is below
            1 / softabs_alpha, so a proposal spreads by at most sqrt(h softabs_alpha) in any
            direction. The literature uses 1e3 to 1e6. Eigenvalues that change sign along the way
            then cause proposals far outside the posterior. In 80 000 draws on exclusive-or (2-2-1,
            weights of prior variance 10), the smallest ESS of the outputs was 22 with 1000, 1255
            with 10, and 21344 with 1.
        target_accept_prob: Default 0.7, as Girolami and Calderhead advise; no theory is known.
        preconditioner: "auto" (default), which means "identity", or "identity": the metric replaces
            the preconditioner.

    The other attributes are described in `TunedKernel`.

    Raises:
        ValueError: For other preconditioners, and for models whose metric does not fit in memory.
        StartError: If the metric at a start is not finite. Later such a proposal is rejected.

    References:
        Girolami and Calderhead 2011, J. R. Stat. Soc. B 73, 123. Betancourt 2013, arXiv:1212.4693.
    """

    metric: MetricName = "softabs"
    softabs_alpha: float = 1.0

    accept_targets = (0.7, 0.7)
    preconditioners = ("auto", "identity")
    no_whitening = "the metric takes its place"
    theta_obstacle = "its metric is computed in theta"
    proposal = ManifoldProposal

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("metric", self.metric, get_args(MetricName))
        self._check_number("softabs_alpha", above=0)

    def check_model(self, spec: Sampled, row_noise: bool) -> None:
        """Raise ValueError if the model does not have the requested metric."""
        super().check_model(spec, row_noise)
        require_weights(spec, type(self).__name__, "Use kernel='hmc' or 'nuts'.")
        is_network, obstacle = isinstance(spec, NetworkSpec), spec.network.no_jacobian
        if obstacle is not None and (is_network or self.metric == "gauss_newton"):
            instead = "metric='softabs', which takes second derivatives"
            if is_network:
                instead = "kernel='nuts'"
            raise ValueError(
                f"SMMALA(metric={self.metric!r}) cannot be used: {obstacle}. Use {instead}."
            )

    def resolve(self, spec: Sampled, num_rows: int) -> tuple[Self, str]:
        """Keep the coordinates; raise ValueError if matrices and rows do not fit in memory."""
        size, numbers = spec.num_parameters, _JACOBIAN_NUMBERS * spec.num_outputs
        at_once = min(num_rows, rows_per_block(spec, size))
        if self.metric == "softabs":
            numbers = _HESSIAN_NUMBERS
            if isinstance(spec, NetworkSpec):
                numbers *= spec.network.num_units
            # Rows of an earlier fit are one block, with the prior.
            at_once = max(at_once, spec.num_earlier)
        needed = 8 * size * (_MATRICES * size + numbers * at_once)
        if needed > _MOST_BYTES:
            raise ValueError(
                f"SMMALA(metric={self.metric!r}) must fit into {_MOST_BYTES:.3g} bytes per chain, and "
                f"would need {needed:.3g} for P = {size} and {at_once} rows at once. Use kernel='nuts', "
                "which takes its geometry from one Gauss-Newton matrix per window, or a smaller network."
            )
        return super().resolve(spec, num_rows)

    def check_start(self, results: Results, chains: Sequence[int] | Array) -> None:
        """Raise StartError if the metric at a start is not finite, as all proposals would be rejected."""
        log_det = results.accepted_results.metric.log_det.numpy()
        for chain, value in zip(chains, log_det):
            if not np.isfinite(value):
                raise StartError(
                    f"The {self.metric} metric of SMMALA is not finite where chain {chain} starts. "
                    "Leave pretraining out, or use a narrower prior or kernel='nuts'."
                )

    def work(self, spec: Sampled) -> float:
        """Estimate the cost of second derivatives and factorisation in gradients."""
        return spec.num_parameters

    def first_step_size(self, leapfrog_step: Array, num_parameters: int) -> Array:
        """Return the optimum of MALA for a standard normal density, 1.65^2 P^(-1/3), for all chains."""
        return np.full_like(leapfrog_step, 1.65**2 / num_parameters ** (1 / 3))

    def build(self, target_log_prob_fn: Any, step_size: Tensor) -> TransitionKernel:
        """Build the TFP kernel; `target_log_prob_fn` needs `hessian`, `gauss_newton` as in `Target`."""

        def metric(z: Tensor) -> MetricTensor:
            if self.metric == "softabs":
                return softabs_metric(-target_log_prob_fn.hessian(z), self.softabs_alpha)
            return cholesky_metric(target_log_prob_fn.gauss_newton(z))

        return tfp.mcmc.MetropolisHastings(self.proposal(target_log_prob_fn, step_size, metric))
