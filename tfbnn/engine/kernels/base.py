"""Samplers as the rest of the package sees them: settings that say how transitions are made.

A sampler is one file of this folder: a frozen dataclass of settings that builds a transition
kernel, reads its statistics and, before every transition, puts its step size in place. The class
statement registers it: `class HMC(TunedKernel, name="hmc")`. Its name, its options on the command
line and its place in `tfbnn.kernels` follow from that; nothing else in the package knows about a
particular sampler. docs/developers/new_kernel.md shows how to write one.
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

# Every sampler by its name; `Kernel.__init_subclass__` fills it.
KERNELS: dict[str, type["Kernel"]] = {}


@dataclass(frozen=True, eq=False)
class Kernel(ABC):
    """Settings of a sampler, and all that the runner asks of them.

    Subclasses are frozen dataclasses, because compiled programs are kept by equal settings. Most
    derive from `TunedKernel`. What has a default here describes a kernel that is left as it is:
    nothing is adapted, and chains run in theta.

    C is the number of chains in a chain group, P that of the coordinates. Where a chain has several
    `temperatures`, every C below counts all of its walkers.

    Attributes:
        couples_chains: Whether chains learn from each other, so that all of them advance in one
            program.
        has_memory: Whether its results hold what it has learned, such as a trajectory's length, which a
            new start loses.
        largest_step_size: Up to which adaptation goes; infinite where long steps are rejected anyhow.
        theta_obstacle: Why Repriorised cannot give the kernel coordinates other than theta, or None.
    """

    couples_chains: ClassVar[bool] = False
    has_memory: ClassVar[bool] = False
    largest_step_size: ClassVar[float] = float("inf")
    theta_obstacle: ClassVar[str | None] = None

    def __init_subclass__(cls, *, name: str | None = None) -> None:
        """Register the class under a name for `fit_posterior(kernel=name)`; None: not at all.

        Raises:
            ValueError: When another class has the name, or another kernel's class is called so.
        """
        super().__init_subclass__()
        if name is None:
            return
        for other, kernel in KERNELS.items():
            # A class that is defined anew, as in a notebook, takes its own place.
            if (other == name) != (kernel.__name__ == cls.__name__):
                raise ValueError(
                    f"The kernel {name!r} must have a name and a class name of its own, received "
                    f"{cls.__name__}; there is {other!r}, {kernel.__name__}. Choose another name."
                )
        KERNELS[name] = cls

    def _check_integer(self, name: str, minimum: int) -> None:
        # Plain integers: NumPy ones would decide dtypes in the compiled program.
        object.__setattr__(self, name, check_integer(name, getattr(self, name), minimum=minimum))

    # How it is tuned.

    @property
    def step_size(self) -> float | None:
        """The step size that was given, if one was."""
        return None

    @property
    def adapts(self) -> bool:
        """Return whether warm-up tunes the step size; if not, and none is given, it is the kernel's own."""
        return False

    @property
    def preconditioner(self) -> str:
        """Kind of the coordinates: identity, prior, diagonal, gauss_newton; auto before `resolve`."""
        return "identity"

    @property
    def preconditions(self) -> bool:
        """Return whether warm-up tunes a preconditioner."""
        return self.preconditioner not in ("identity", "prior")

    def accept_target(self, spec: Sampled) -> tuple[float | None, str]:
        """Return the acceptance rate that adaptation aims at for what is sampled, and for the report why.

        None: no adaptation.
        """
        return None, ""

    def pooled_acceptance(self, acceptance: Tensor) -> Tensor:
        """Return what step sizes [C] learn from: each chain's from its own acceptance rate [C]."""
        return acceptance

    def first_step_size(self, leapfrog_step: Array, num_parameters: int) -> Array:
        """Return the step sizes [C] to start from where one leapfrog step of these sizes is accepted."""
        return leapfrog_step

    # What is special about it.

    @property
    def bias_note(self) -> str | None:
        """Line that every report has of draws that do not have the posterior as distribution, else None."""
        return None

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Powers of the likelihood, one per walker of a chain; see `tfbnn.engine.density.value_and_gradient`.

        Where there are several, m, the kernel's results have `log_likelihood`, those of the current
        states of all of them: [chains, m], float64.
        """
        return (1.0,)

    @property
    def rung_obstacle(self) -> str | None:
        """Return why PowerPosterior cannot move its rungs with this kernel, or None."""
        if self.couples_chains:
            return "its chains learn from each other, and rungs have different densities"
        return None if self.bias_note is None else "its bias would enter every rung"

    def potential(self, spec: Sampled) -> Density:
        """Return the density in the coordinates that the kernel samples: of theta itself."""
        return density_of(spec)

    # Before anything is compiled.

    def check_model(self, spec: Sampled, row_noise: bool) -> None:
        """Refuse a model these settings cannot handle.

        Args:
            spec: The model, or log density.
            row_noise: Whether the noise scale of every row is known.
        """
        del spec, row_noise  # any will do

    def check_chains(self, num_chains: int) -> None:
        """Refuse too few chains."""
        if self.couples_chains and num_chains < 2:
            raise ValueError(
                f"{type(self).__name__} learns from several chains and needs num_chains of at least 2, "
                f"received {num_chains}. Use more chains, or kernel='nuts'."
            )

    def resolve(self, spec: Sampled, num_rows: int) -> tuple["Kernel", str]:
        """Return these settings with a definite preconditioner, and a line on why that one.

        Args:
            spec: The model, or log density.
            num_rows: Training rows N, 0 of a log density.
        """
        return self, f"{self.preconditioner}, as this kernel has no other"

    def gains_from_xla(self, spec: Sampled, num_rows: int) -> bool:
        """Return whether XLA makes faster programs of this kernel than TensorFlow itself."""
        return spec.gains_from_xla

    def work(self, spec: Sampled) -> float:
        """About how many gradients a transition costs, by which the time of a run is estimated."""
        return self.gradients_per_transition

    def check_start(self, results: Results, chains: Sequence[int] | Array) -> None:
        """Refuse kernel results at the starts of `chains` from which the kernel cannot move."""
        del results, chains  # any will do

    # The transitions.

    @property
    @abstractmethod
    def gradients_per_transition(self) -> int:
        """Gradients that a transition takes, at most or about."""

    @abstractmethod
    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Return the transition kernel; `step_size` has shape [C, 1]."""

    @abstractmethod
    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """Return the kernel's results with whatever the next transition needs.

        Args:
            before: What the last transition left.
            step_size: Of the next transition [C, 1].
            key: For what has to be drawn.
            adapting: Scalar bool tensor; what a kernel tunes by itself learns only while it holds.
        """

    @abstractmethod
    def target_log_prob(self, results: Results) -> Tensor:
        """Log density of the current state [C]."""

    @abstractmethod
    def statistics(self, results: Results) -> TransitionStatistics:
        """Statistics of the last transition."""


# Each Gauss-Newton matrix takes 8 P^2 bytes, its rows 2 N K P^2 operations.
_LARGEST_WHITENING = 4000
# "auto" whitens while the two products with the P x P factor cost no more than a gradient (measured
# on two cores: 3.4 P / (N K) gradients), and while the factor stays in the processor's cache.
_LARGEST_AUTO_WHITENING = 1500
_LINES_PER_PARAMETER = 4
Preconditioner: TypeAlias = Literal["auto", "identity", "prior", "diagonal", "gauss_newton"]


@dataclass(frozen=True, kw_only=True)
class TunedKernel(Kernel):
    """Settings that all of these kernels share.

    Attributes:
        step_size: Fixed step size. It is one in preconditioned coordinates, as the kernel's own
            docstring defines it; a leapfrog step where it says nothing. None (default): found at
            the start and adapted during warm-up. A number is used as it is, unless
            `adapt_step_size`.
        adapt_step_size: Adapt also a given step size, which is then the first guess.
        target_accept_prob: Acceptance aimed at while adapting. None (default): by kernel and
            activation. The kernel's own `accept_targets` are for smooth activations and for
            ReLU-like ones, whose optimum is lower because the leapfrog error is of first order
            (Dinh, Ho and Nguyen 2024, arXiv:2410.22065).
        preconditioner: "auto" (default), "gauss_newton", "diagonal", "prior" or "identity". "diagonal"
            rescales every coordinate by its standard deviation, measured in the windows of
            warm-up; "gauss_newton" whitens by the Gauss-Newton matrix at the chain's own point,
            taken at the start and at the ends of the windows, for up to 4000 parameters;
            "prior" takes the fixed scales of the priors as units, "identity" does none of it; "auto"
            means "gauss_newton" for up to 1500 parameters and at least four times as many target
            values N K, where its products cost no more than a gradient; else "diagonal".
        preconditioners: Of a class: those that it takes; of a class without whitening "auto" means the
            second.
        no_whitening: Of a class: why it takes no others, where "gauss_newton" is none of them.
    """

    preconditioners: ClassVar[tuple[Preconditioner, ...]] = get_args(Preconditioner)
    no_whitening: ClassVar[str | None] = None

    step_size: float | None = None
    adapt_step_size: bool = False
    target_accept_prob: float | None = None
    preconditioner: Preconditioner = "auto"

    def __post_init__(self) -> None:
        if self.step_size is not None:
            check_number("step_size", self.step_size, above=0)
        check_flag("adapt_step_size", self.adapt_step_size)
        if self.target_accept_prob is not None:
            check_number("target_accept_prob", self.target_accept_prob, above=0, below=1)
        check_choice("preconditioner", self.preconditioner, get_args(Preconditioner))
        if self.preconditioner not in self.preconditioners:
            *others, last = map(repr, self.preconditioners)
            raise ValueError(
                f"preconditioner of {type(self).__name__} must be {', '.join(others)} or {last}, received "
                f"{self.preconditioner!r}: {self.no_whitening}."
            )

    @property
    @abstractmethod
    def accept_targets(self) -> tuple[float, float]:
        """The acceptance rates to aim at, for smooth and for ReLU-like activations."""

    @property
    def adapts(self) -> bool:
        """Return whether warm-up tunes the step size."""
        return self.step_size is None or self.adapt_step_size

    def check_model(self, spec: Sampled, row_noise: bool) -> None:
        """Refuse to whiten a model of too many parameters."""
        size, whitens = spec.num_parameters, self.preconditioner == "gauss_newton"
        if whitens and spec.gauss_newton_obstacle is None and size > _LARGEST_WHITENING:
            raise ValueError(
                "preconditioner='gauss_newton' needs matrices of P x P float64, "
                f"{8e-9 * size**2:.2g} GB each for P = {size}, and is offered up to P = "
                f"{_LARGEST_WHITENING}. Use preconditioner='diagonal'."
            )

    def resolve(self, spec: Sampled, num_rows: int) -> tuple[Self, str]:
        """Return these settings with a definite preconditioner, and a line on why that one."""
        if self.no_whitening and self.preconditioner == "auto":
            instead = self.preconditioners[1]
            return replace(self, preconditioner=instead), f"{instead}: {self.no_whitening}"
        wants = self.preconditioner in ("auto", "gauss_newton")
        if wants and (why := spec.gauss_newton_obstacle) is not None:
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
        """`target_accept_prob`, or the kernel's own target for the model's activations, and why."""
        if self.target_accept_prob is not None:
            return self.target_accept_prob, "as asked"
        smooth, kinked = self.accept_targets
        if smooth == kinked:
            return smooth, "default"
        if spec.is_smooth:
            return smooth, "default for smooth activations"
        return kinked, "default for ReLU-like activations"

    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """Kernel results with the step size [C, 1] for the next transition, without jitter.

        One step has no trajectory that could resonate, or be tuned; those of NUTS and of a partial
        refreshment vary in length by themselves. Other kernels have a `prepare` of their own.
        """
        return with_next(before, step_size=step_size)

    def target_log_prob(self, results: Results) -> Tensor:
        """Log density of the current state [C]."""
        return current(results).target_log_prob


@dataclass(frozen=True, kw_only=True)
class AdjustableKernel(TunedKernel):
    """Settings of kernels that may accept every step, with an error that adaptation may bound.

    Attributes:
        adjusted: Accept or reject, default True; False gives biased draws.
        bias_tolerance: Unadjusted only: the share by which variances may be off, see
            `tfbnn.engine.kernels.transition`.
        bias_without_tolerance: Of a class: how large the error is where there is no tolerance.
    """

    bias_without_tolerance: ClassVar[str]

    adjusted: bool = True
    bias_tolerance: float | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("adjusted", self.adjusted)
        if self.bias_tolerance is None:
            return
        check_number("bias_tolerance", self.bias_tolerance, above=0, below=1)
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
        """The line that reports of unadjusted runs carry, else None."""
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
