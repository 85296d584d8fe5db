"""Settings of the kernels whose step size and coordinates warm-up can tune."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self, TypeAlias, get_args

from tfbnn.data.validation import check_choice, check_flag, check_number
from tfbnn.engine.basis.libraries import Results, Tensor
from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.kernels.transition import current, with_next
from tfbnn.spec.density_spec import Sampled

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
        no_whitening: Of a class: why "gauss_newton" is refused, where coordinates may be scaled only.
    """

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
        if self.no_whitening and self.preconditioner == "gauss_newton":
            raise ValueError(
                f"preconditioner of {type(self).__name__} must be 'auto', 'diagonal' or 'identity', "
                f"received 'gauss_newton': {self.no_whitening}."
            )

    @property
    @abstractmethod
    def accept_targets(self) -> tuple[float, float]:
        """The acceptance rates to aim at, for smooth and for ReLU-like activations."""

    @property
    def adapts(self) -> bool:
        """Whether warm-up tunes the step size."""
        return self.step_size is None or self.adapt_step_size

    def check_model(self, spec: Sampled, row_noise: bool) -> None:
        """Refuses to whiten a model of too many parameters."""
        size, whitens = spec.num_parameters, self.preconditioner == "gauss_newton"
        if whitens and spec.gauss_newton_obstacle is None and size > _LARGEST_WHITENING:
            raise ValueError(
                "preconditioner='gauss_newton' needs matrices of P x P float64, "
                f"{8e-9 * size**2:.2g} GB each for P = {size}, and is offered up to P = "
                f"{_LARGEST_WHITENING}. Use preconditioner='diagonal'."
            )

    def resolve(self, spec: Sampled, num_rows: int) -> tuple[Self, str]:
        """These settings with a definite preconditioner, and a line on why that one."""
        wants = self.preconditioner in ("auto", "gauss_newton")
        if wants and (why := spec.gauss_newton_obstacle) is not None:
            return replace(self, preconditioner="diagonal"), f"diagonal, because {why}"
        if self.preconditioner != "auto":
            return self, f"{self.preconditioner}, as asked"
        if self.no_whitening:
            return replace(self, preconditioner="diagonal"), f"diagonal: {self.no_whitening}"
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
        del key, adapting
        return with_next(before, step_size=step_size)

    def target_log_prob(self, results: Results) -> Tensor:
        """Log density of the current state [C]."""
        return current(results).target_log_prob
