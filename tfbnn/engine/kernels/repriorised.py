"""Repriorisation: coordinates for any kernel in which the posterior is close to the prior."""

from dataclasses import KW_ONLY, dataclass
from typing import Self

from tfbnn.data.validation import check_flag
from tfbnn.engine.basis.compile import has_gpu
from tfbnn.engine.density.potential import Potential
from tfbnn.engine.density.regression import is_conjugate, num_features, readout_of, readout_span
from tfbnn.engine.density.reparametrisation import Collapsed, RepriorisedPotential
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.kernels.hmc import HMC
from tfbnn.engine.kernels.registry import ComposedKernel
from tfbnn.spec.density_spec import Sampled, model_of
from tfbnn.spec.network_spec import NetworkSpec

# Largest number of features with which the square root of the readout's covariance is kept per
# draw.
_MOST_KEPT_FEATURES = 64
# XLA factorises larger matrices more slowly on a CPU than TensorFlow does (257 x 257, float64: 27 ms
# with the inverse, against 1.0 ms).
_LARGEST_XLA_FACTOR = 48


@dataclass(frozen=True)
class Repriorised(ComposedKernel, name="repriorised"):
    """Kernel on the posterior reparametrised by its readout, the network's last layer.

    Given the earlier weights, the readout of a network with Gaussian noise and a normal prior is
    normal in closed form. The map phi -> theta computes it from standard normal numbers. This costs
    one Cholesky factorisation per density, of the size of the last layer's features or of the rows,
    whichever is smaller. In phi the posterior of a wide network is close to its prior, so steps can
    be longer. The readout's phi is exactly N(0, I), independent of the rest. Draws are converted
    back to theta.

    With `collapse_readout` the inner kernel does not sample the readout. It samples the earlier
    weights and noise scales from their marginal density, and every kept draw gets a readout from
    its exact distribution. `predict` then averages over that distribution in closed form.

    In these coordinates the preconditioner "gauss_newton" is the identity on the readout. On the
    other parameters it is the Schur complement of the readout's block.

    Attributes:
        inner: Kernel inside; default HMC(). It is given by settings or by name.
            `UnderdampedLangevin(adjusted=False, target_accept_prob=0.98)` is the setting of the
            paper. SMMALA, TruncatedMALA and PowerPosterior need theta and are not allowed.
        regulariser: Noise variance in the map, on the scale of the transformed targets, in place of
            the likelihood's. With a large one the map is the identity. Any positive number leaves
            the posterior unchanged. None (default): the likelihood's own, learned ones included.
            That is the best choice for a Gaussian likelihood. Other likelihoods need a number.
            Classes enter the map by their one-hot labels.
        collapse_readout: Sample the other layers only, and draw the last one exactly; default
            False. The readout is integrated out. This needs a Gaussian likelihood,
            regulariser=None, and a Normal or HierarchicalNormal prior on the readout. A noise scale
            known per row together with a learned one is not allowed. If the last layer has at most
            64 inputs, the bias included, a square root of its covariance is stored with each draw
            (up to 8 kB in float32), and predictions use its variance in closed form. Otherwise they
            use drawn weights.

    Raises:
        TypeError, ValueError: For an inner kernel that is unknown or needs theta, a regulariser that
            is not positive, or settings that contradict each other.

    References:
        Hron, Novak, Pennington and Sohl-Dickstein 2022, arXiv:2206.07673. The collapsed form is the
        same paper's factorisation, with the readout integrated out.
    """

    inner: Kernel = HMC()
    _: KW_ONLY
    regulariser: float | None = None
    collapse_readout: bool = False

    rung_obstacle = "its map belongs to the posterior, and rungs have other densities"
    theta_obstacle = "it is reparametrised already"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner.theta_obstacle is not None:
            raise ValueError(
                "The inner kernel of Repriorised must work in any coordinates, received "
                f"{self.inner!r}: {self.inner.theta_obstacle}. Use for example 'hmc' or 'nuts'."
            )
        check_flag("collapse_readout", self.collapse_readout)
        self._check_number("regulariser", above=0)
        if self.collapse_readout and self.regulariser is not None:
            raise ValueError(
                "collapse_readout=True needs regulariser=None, the likelihood's own noise "
                f"variance, received regulariser={self.regulariser}."
            )

    def potential(self, spec: Sampled) -> Potential:
        """Return the density in the coordinates that the inner kernel samples."""
        model = _model(spec)
        if not self.collapse_readout:
            return RepriorisedPotential(model, self.regulariser)
        return Collapsed(model, num_features(model) <= _MOST_KEPT_FEATURES)

    def gains_from_xla(self, spec: Sampled, num_rows: int) -> bool:
        """Check whether XLA helps: the matrices to factorise are small, or there is a GPU."""
        small = min(num_features(_model(spec)), num_rows) <= _LARGEST_XLA_FACTOR
        return (small or has_gpu()) and self.inner.gains_from_xla(spec, num_rows)

    @property
    def max_tree_depth(self) -> int | None:
        """`max_tree_depth` of an inner NUTS, the limit to compare trajectories with; else None."""
        return getattr(self.inner, "max_tree_depth", None)

    def check_model(self, spec: Sampled, row_noise: bool) -> None:
        """Raise ValueError if the readout cannot be reparametrised or collapsed as requested."""
        spec = _model(spec)
        self.inner.check_model(spec, row_noise)
        if self.regulariser is None and not spec.likelihood.is_conjugate:
            raise ValueError(
                "Repriorised needs a regulariser, a positive number such as 1.0, and collapse_readout="
                f"False for likelihoods that are not Gaussian, received None for {spec.likelihood_name}."
            )
        if self.collapse_readout and not is_conjugate(spec):
            raise ValueError(
                "collapse_readout=True needs a Normal or HierarchicalNormal prior on kernel and bias "
                f"of the last layer, received {spec.earlier or readout_of(spec).prior}. Use "
                "collapse_readout=False."
            )
        if self.collapse_readout and row_noise and spec.layout.num_noise:
            raise ValueError(
                "collapse_readout=True does not go with a noise_scale known per row together with "
                "noise_scale='learned'. Use collapse_readout=False, or a fixed noise scale."
            )
        span = readout_span(spec)
        if self.collapse_readout and spec.num_parameters == span.stop - span.start:
            raise ValueError(
                "collapse_readout=True leaves nothing to sample of a network without hidden layers "
                "and with a fixed noise scale. Use collapse_readout=False."
            )
        if self.preconditioner == "gauss_newton" and self.instead_of_whitening(spec):
            raise ValueError(
                "preconditioner='gauss_newton' in Repriorised needs regulariser=None, a Gaussian "
                "likelihood and a Normal prior on the readout. Use 'diagonal'."
            )

    def resolve(self, spec: Sampled, num_rows: int) -> tuple[Self, str]:
        """Choose the preconditioner; return the settings with it, and a text on it and the readout."""
        resolved, why = super().resolve(spec, num_rows)
        size = num_features(_model(spec))
        space = "feature space" if size <= num_rows else "data space"
        what = "collapsed" if self.collapse_readout else "repriorised"
        return resolved, f"{why}; readout {what} in {space} (p = {size}, N = {num_rows})"

    def instead_of_whitening(self, spec: Sampled) -> str | None:
        """Return "diagonal" unless the map has the likelihood's own noise and a normal prior.

        Only such a map has the Schur complement.
        """
        return None if self.regulariser is None and is_conjugate(_model(spec)) else "diagonal"

    def work(self, spec: Sampled) -> float:
        """Estimate the cost of a transition in gradients, including the products of the features."""
        size = num_features(_model(spec))
        return self.inner.work(spec) * (1.0 + size**2 / spec.num_parameters)


def _model(spec: Sampled) -> NetworkSpec:
    return model_of(spec, "Repriorised")
