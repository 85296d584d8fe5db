"""Interface of the samplers: settings classes that build transition kernels.

Each sampler is one file of this folder. It is a frozen dataclass of settings that builds a
transition kernel, reads its statistics and sets its step size before every transition. The class
statement registers it: `class HMC(TunedKernel, name="hmc")`. This also defines its options on the
command line and its entry in `tfbnn.kernels`. Nothing else in the package depends on a particular
sampler. docs/developers/new_kernel.md shows how to write one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self, TypeAlias, get_args

from tfbnn.data.validation import check_choice, check_flag, check_integer, check_number
from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor
from tfbnn.engine.density.density_of import density_of
from tfbnn.engine.density.potential import Density
from tfbnn.engine.kernels.transition import (
    TransitionKernel,
    TransitionStatistics,
    current,
    with_next,
)
from tfbnn.spec.density_spec import Sampled
from tfbnn.spec.settings_json import ADDED
from tfbnn.system.arrays import Array

# All samplers by name; `Kernel.__init_subclass__` fills this dict.
KERNELS: dict[str, type["Kernel"]] = {}


@dataclass(frozen=True, eq=False)
class Kernel(ABC):
    """Settings of a sampler, with all methods that the runner needs.

    Subclasses are frozen dataclasses, because compiled programs are cached by their settings. Most
    derive from `TunedKernel`. The defaults of this class describe a kernel without tuning: nothing
    is adapted, and chains run in theta.

    C is the number of chains in a chain group, P the number of coordinates. If a chain has several
    `temperatures`, every C below counts all of its walkers.

    Attributes:
        couples_chains: Whether chains learn from each other, so that all of them advance in one
            program.
        has_memory: Whether the kernel results hold learned quantities, such as a trajectory length,
            which a new start loses.
        largest_step_size: Upper limit of adaptation; infinite if long steps are rejected anyway.
        theta_obstacle: Reason why Repriorised cannot run the kernel in coordinates other than
            theta, or None.
    """

    couples_chains: ClassVar[bool] = False
    has_memory: ClassVar[bool] = False
    largest_step_size: ClassVar[float] = float("inf")
    theta_obstacle: ClassVar[str | None] = None

    def __init_subclass__(cls, *, name: str | None = None) -> None:
        """Register the class under a name for `fit_posterior(kernel=name)`, unless `name` is None.

        Raises:
            ValueError: If another class has this kernel name, or another kernel this class name.
        """
        super().__init_subclass__()
        if name is None:
            return
        for other, kernel in KERNELS.items():
            # A class that is defined again, as in a notebook, replaces its earlier definition.
            if (other == name) != (kernel.__name__ == cls.__name__):
                raise ValueError(
                    f"The kernel {name!r} must have a name and a class name of its own, received "
                    f"{cls.__name__}; there is {other!r}, {kernel.__name__}. Choose another name."
                )
        KERNELS[name] = cls

    def _check_integer(self, name: str, minimum: int) -> None:
        # Plain integers, because NumPy integers would change dtypes in the compiled program.
        object.__setattr__(self, name, check_integer(name, getattr(self, name), minimum=minimum))

    def _check_number(self, name: str, **limits: float) -> None:
        """Check a setting, which may be None if that is its default, and store it as a float."""
        value, default = getattr(self, name), getattr(type(self), name)
        if value is not None or default is not None:
            object.__setattr__(self, name, check_number(name, value, **limits))

    # Tuning.

    @property
    def step_size(self) -> float | None:
        """The step size that the user set, or None."""
        return None

    @property
    def adapts(self) -> bool:
        """True if warm-up tunes the step size.

        If false and no step size is set, the kernel uses its own.
        """
        return False

    @property
    def preconditioner(self) -> str:
        """Kind of coordinates: identity, prior, diagonal, gauss_newton, or auto before `resolve`."""
        return "identity"

    @property
    def preconditions(self) -> bool:
        """True if warm-up tunes a preconditioner."""
        return self.preconditioner not in ("identity", "prior")

    def accept_target(self, spec: Sampled) -> tuple[float | None, str]:
        """Return the target acceptance rate of adaptation, and the reason for the report.

        A target of None means no adaptation.
        """
        return None, ""

    def pooled_acceptance(self, acceptance: Tensor) -> Tensor:
        """Return the acceptance rates [C] that the step sizes adapt to: here each chain's own rate."""
        return acceptance

    def first_step_size(self, leapfrog_step: Array, num_parameters: int) -> Array:
        """Return the first step sizes [C], given sizes at which one leapfrog step is accepted."""
        return leapfrog_step

    # Special properties.

    @property
    def bias_note(self) -> str | None:
        """Warning in every report if the draws do not follow the posterior exactly, else None."""
        return None

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Powers of the likelihood, one per walker of a chain.

        See `tfbnn.engine.density.value_and_gradient`. If there are several, m, the kernel results
        have `log_likelihood`, the log likelihoods of the current states of all walkers:
        [chains, m], float64.
        """
        return (1.0,)

    @property
    def rung_obstacle(self) -> str | None:
        """Reason why PowerPosterior cannot move its rungs with this kernel, or None."""
        if self.couples_chains:
            return "its chains learn from each other, and rungs have different densities"
        return None if self.bias_note is None else "its bias would enter every rung"

    def potential(self, spec: Sampled) -> Density:
        """Return the density in the coordinates that the kernel samples, here theta itself."""
        return density_of(spec)

    # Checks and choices before compilation.

    def check_model(self, spec: Sampled, row_noise: bool) -> None:
        """Raise ValueError if these settings cannot handle the model.

        Args:
            spec: The model, or log density.
            row_noise: Whether the noise scale of every row is known.
        """
        del spec, row_noise  # every model is accepted

    def check_chains(self, num_chains: int) -> None:
        """Raise ValueError if there are too few chains."""
        if self.couples_chains and num_chains < 2:
            raise ValueError(
                f"{type(self).__name__} learns from several chains and needs num_chains of at least 2, "
                f"received {num_chains}. Use more chains, or kernel='nuts'."
            )

    def resolve(self, spec: Sampled, num_rows: int) -> tuple["Kernel", str]:
        """Choose the preconditioner; return the settings with it, and the reason as a text.

        Args:
            spec: The model, or log density.
            num_rows: Training rows N, 0 for a log density.
        """
        return self, f"{self.preconditioner}, as this kernel has no other"

    def gains_from_xla(self, spec: Sampled, num_rows: int) -> bool:
        """Check whether XLA makes faster programs of this kernel than TensorFlow itself."""
        return spec.gains_from_xla

    def work(self, spec: Sampled) -> float:
        """Estimate the cost of a transition in gradients, to estimate the time of a run."""
        return self.gradients_per_transition

    def check_start(self, results: Results, chains: Sequence[int] | Array) -> None:
        """Raise StartError if the kernel cannot move from the starts of `chains`."""
        del results, chains  # every start is accepted

    # Transitions.

    @property
    @abstractmethod
    def gradients_per_transition(self) -> int:
        """Largest or approximate number of gradients per transition."""

    @abstractmethod
    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Build the transition kernel; `step_size` has shape [C, 1]."""

    @abstractmethod
    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """Return the kernel results with the parameters of the next transition.

        Args:
            before: Results of the last transition.
            step_size: Step size of the next transition [C, 1].
            key: Random key for parameters that are drawn.
            adapting: Scalar bool tensor. Quantities that the kernel tunes itself adapt only while
                it is true.
        """

    @abstractmethod
    def target_log_prob(self, results: Results) -> Tensor:
        """Return the log density of the current state [C]."""

    @abstractmethod
    def statistics(self, results: Results) -> TransitionStatistics:
        """Return the statistics of the last transition."""


# Each Gauss-Newton matrix takes 8 P^2 bytes, its rows 2 N K P^2 operations.
_LARGEST_WHITENING = 4000
# "auto" whitens if the two products with the P x P factor cost no more than a gradient (measured
# on two cores: 3.4 P / (N K) gradients), and if the factor fits in the processor's cache.
_LARGEST_AUTO_WHITENING = 1500
_LINES_PER_PARAMETER = 4
Preconditioner: TypeAlias = Literal["auto", "identity", "prior", "diagonal", "gauss_newton"]


@dataclass(frozen=True, kw_only=True)
class TunedKernel(Kernel):
    """Settings shared by the kernels whose step size and preconditioner are tuned.

    Attributes:
        step_size: Fixed step size. It applies in preconditioned coordinates. The docstring of the
            kernel defines it; by default it is a leapfrog step. None (default): found at the start
            and adapted during warm-up. A number is used unchanged, unless `adapt_step_size` is set.
        adapt_step_size: Also adapt a given step size, which is then the first guess.
        target_accept_prob: Acceptance rate that adaptation aims at. None (default): by kernel and
            activation. The kernel's own `accept_targets` are for smooth activations and for
            ReLU-like ones, whose optimum is lower because the leapfrog error is of first order
            (Dinh, Ho and Nguyen 2024, arXiv:2410.22065).
        preconditioner: "auto" (default), "gauss_newton", "diagonal", "prior" or "identity". "diagonal"
            rescales every coordinate by its standard deviation, measured in the windows of
            warm-up. "gauss_newton" whitens by the Gauss-Newton matrix at the chain's own point,
            computed at the start and at the ends of the windows, for up to 4000 parameters.
            "prior" rescales by the fixed scales of the priors. "identity" changes nothing. "auto"
            means "gauss_newton" for up to 1500 parameters and at least four times as many target
            values N K, where its products cost no more than a gradient; else "diagonal".
        preconditioners: Allowed values of `preconditioner`, a class attribute. In a class without
            whitening, "auto" means the second of them.
        no_whitening: Reason why a class does not allow "gauss_newton", or None. A class attribute.
    """

    preconditioners: ClassVar[tuple[Preconditioner, ...]] = get_args(Preconditioner)
    no_whitening: ClassVar[str | None] = None

    step_size: float | None = None
    adapt_step_size: bool = False
    target_accept_prob: float | None = None
    preconditioner: Preconditioner = "auto"

    def __post_init__(self) -> None:
        self._check_number("step_size", above=0)
        check_flag("adapt_step_size", self.adapt_step_size)
        self._check_number("target_accept_prob", above=0, below=1)
        why = ""
        if self.no_whitening and self.preconditioner in get_args(Preconditioner):
            why = f" {type(self).__name__}: {self.no_whitening}."
        check_choice("preconditioner", self.preconditioner, self.preconditioners, why)

    @property
    @abstractmethod
    def accept_targets(self) -> tuple[float, float]:
        """Target acceptance rates, for smooth and for ReLU-like activations."""

    @property
    def adapts(self) -> bool:
        """True if warm-up tunes the step size."""
        return self.step_size is None or self.adapt_step_size

    def check_model(self, spec: Sampled, row_noise: bool) -> None:
        """Raise ValueError if the model has too many parameters to whiten."""
        size, whitens = spec.num_parameters, self.preconditioner == "gauss_newton"
        if whitens and spec.network.no_jacobian is None and size > _LARGEST_WHITENING:
            raise ValueError(
                "preconditioner='gauss_newton' needs matrices of P x P float64, "
                f"{8e-9 * size**2:.2g} GB each for P = {size}, and is offered up to P = "
                f"{_LARGEST_WHITENING}. Use preconditioner='diagonal'."
            )

    def resolve(self, spec: Sampled, num_rows: int) -> tuple[Self, str]:
        """Choose the preconditioner; return the settings with it, and the reason as a text."""
        if self.no_whitening and self.preconditioner == "auto":
            instead = self.preconditioners[1]
            return replace(self, preconditioner=instead), f"{instead}: {self.no_whitening}"
        wants = self.preconditioner in ("auto", "gauss_newton")
        if wants and (why := spec.network.no_jacobian) is not None:
            return replace(self, preconditioner="diagonal"), f"diagonal, because {why}"
        if self.preconditioner != "auto":
            return self, f"{self.preconditioner}, as asked"
        size, lines = spec.num_parameters, num_rows * spec.num_outputs
        affordable = size <= min(_LARGEST_AUTO_WHITENING, lines / _LINES_PER_PARAMETER)
        chosen: Preconditioner = "gauss_newton" if affordable else "diagonal"
        cost = "no more than a gradient" if affordable else "too much"
        why = f"whitening costs {cost} for N = {num_rows}, P = {size}"
        return replace(self, preconditioner=chosen), f"{chosen}, chosen because {why}"

    def accept_target(self, spec: Sampled) -> tuple[float, str]:
        """Return `target_accept_prob`, or the kernel's target for the activations, and the reason."""
        if self.target_accept_prob is not None:
            return self.target_accept_prob, "set in the kernel"
        smooth, kinked = self.accept_targets
        if smooth == kinked:
            return smooth, "default"
        if spec.network.is_smooth:
            return smooth, "default for smooth activations"
        return kinked, "default for ReLU-like activations"

    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """Return the kernel results with the step size [C, 1] for the next transition.

        The step size has no jitter. A single step has no trajectory that could resonate or be
        tuned. Trajectories of NUTS and of a partial refreshment vary in length anyway. Other
        kernels define their own `prepare`.
        """
        return with_next(before, step_size=step_size)

    def target_log_prob(self, results: Results) -> Tensor:
        """Return the log density of the current state [C]."""
        return current(results).target_log_prob


@dataclass(frozen=True, kw_only=True)
class AdjustableKernel(TunedKernel):
    """Settings of kernels that may accept every step, with a bias that adaptation can limit.

    Attributes:
        adjusted: Accept or reject, default True; False gives biased draws.
        bias_tolerance: Unadjusted only: allowed relative error of variances, to which the step size
            adapts. `tfbnn.engine.kernels.transition` derives the step size.
        bias_without_tolerance: Description of the bias without a tolerance, a class attribute.
    """

    bias_without_tolerance: ClassVar[str]

    adjusted: bool = True
    bias_tolerance: float | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("adjusted", self.adjusted)
        if self.bias_tolerance is None:
            return
        self._check_number("bias_tolerance", above=0, below=1)
        if self.adjusted:
            raise ValueError(
                f"bias_tolerance is for adjusted=False, received bias_tolerance={self.bias_tolerance:g} "
                "with adjusted=True, which has no bias. Leave it out."
            )
        if not self.adapts or self.target_accept_prob is not None:
            raise ValueError(
                "bias_tolerance chooses the step size, received it with a step_size or "
                "target_accept_prob. Leave these out, or pass adapt_step_size=True with the step_size."
            )

    @property
    def bias_note(self) -> str | None:
        """Warning in reports of unadjusted runs, else None."""
        if self.adjusted:
            return None
        error = self.bias_without_tolerance
        if self.bias_tolerance is not None:
            error = (
                f"of variances by {self.bias_tolerance:.2g} of themselves (root mean square over "
                "directions, for a nearly normal density, by the energy error of the steps)"
            )
        return (
            "BIASED draws: adjusted=False accepts every step, so the draws follow the posterior only "
            f"up to an error {error}, which no diagnostic here sees. Use adjusted=True, or compare with "
            "a run at half the step size."
        )
