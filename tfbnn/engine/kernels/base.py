"""What a sampler is to the rest of the package: settings that say how transitions are made.

A sampler is one file of this folder: a frozen dataclass of settings that builds a transition
kernel, reads its statistics and, before every transition, puts its step size in place. The class
statement registers it: `class HMC(TunedKernel, name="hmc")`. Its name, its options on the command
line and its place in `tfbnn.kernels` follow from that; nothing else in the package knows about a
particular sampler. docs/developers/new_kernel.md shows how to write one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tfbnn.data.validation import check_integer
from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor
from tfbnn.engine.density.density import Density
from tfbnn.engine.density.function_density import density_of
from tfbnn.engine.kernels.transition import TransitionKernel, TransitionStatistics
from tfbnn.spec.density_spec import Sampled
from tfbnn.system.arrays import Array

# Every sampler by its name; `Kernel.__init_subclass__` fills it.
KERNELS: dict[str, type["Kernel"]] = {}


@dataclass(frozen=True, eq=False)
class Kernel(ABC):
    """Settings of a sampler, and all that the runner asks of them.

    Subclasses are frozen dataclasses, because compiled programs are kept by equal settings. Most
    derive from `TunedKernel`. What has a default here describes a kernel that is left as it is:
    nothing is adapted, and chains run in theta.

    C is the number of chains in a lane, P that of the coordinates. Where a chain has several
    `temperatures`, every C below but that of `rung_log_likelihood` counts all of its walkers.

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
        """Registers the class under a name for `fit_posterior(kernel=name)`; None: not at all.

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
        """Whether warm-up tunes the step size; if not, and none is given, it is the kernel's own."""
        return False

    @property
    def preconditioner(self) -> str:
        """What makes the coordinates: identity, prior, diagonal, gauss_newton; auto before `resolve`."""
        return "identity"

    @property
    def preconditions(self) -> bool:
        """Whether warm-up tunes a preconditioner."""
        return self.preconditioner not in ("identity", "prior")

    def accept_target(self, spec: Sampled) -> tuple[float | None, str]:
        """The acceptance rate that adaptation aims at for what is sampled, and for the report why.

        None: no adaptation.
        """
        return None, ""

    def pooled_acceptance(self, acceptance: Tensor) -> Tensor:
        """What the step sizes [C] learn from: each chain's from its own acceptance rate [C]."""
        return acceptance

    def first_step_size(self, leapfrog_step: Array, num_parameters: int) -> Array:
        """The step sizes [C] to start from where one leapfrog step of these sizes is accepted."""
        return leapfrog_step

    # What is special about it.

    @property
    def bias_note(self) -> str | None:
        """What every report must say of draws that do not have the posterior as distribution."""
        return None

    def splits_rows(self, spec: Sampled, num_rows: int, jit_compile: bool) -> bool:
        """Whether very many rows are summed in pieces, each on a core: where XLA compiles gradients alone."""
        return jit_compile and self.gains_from_xla(spec, num_rows)

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Powers of the likelihood, one per walker of a chain; see `tfbnn.engine.density.rungs`."""
        return (1.0,)

    @property
    def rung_obstacle(self) -> str | None:
        """Why PowerPosterior cannot move its rungs with this kernel, or None."""
        if self.couples_chains:
            return "its chains learn from each other, and rungs have different densities"
        return None if self.bias_note is None else "its bias would enter every rung"

    def potential(self, spec: Sampled) -> Density:
        """The density in the coordinates that the kernel samples: of theta itself."""
        return density_of(spec)

    # Before anything is compiled.

    def check_model(self, spec: Sampled, row_noise: bool) -> None:
        """Refuses a model these settings cannot handle.

        Args:
            spec: The model, or log density.
            row_noise: Whether the noise scale of every row is known.
        """
        del spec, row_noise  # any will do

    def check_chains(self, num_chains: int) -> None:
        """Refuses too few chains."""
        if self.couples_chains and num_chains < 2:
            raise ValueError(
                f"{type(self).__name__} learns from what several chains do and needs num_chains of "
                f"at least 2, received {num_chains}. Use more chains, or kernel='nuts'."
            )

    def resolve(self, spec: Sampled, num_rows: int) -> tuple["Kernel", str]:
        """These settings with a definite preconditioner, and a line on why that one.

        Args:
            spec: The model, or log density.
            num_rows: Training rows N, 0 of a log density.
        """
        return self, f"{self.preconditioner}, as asked"

    def gains_from_xla(self, spec: Sampled, num_rows: int) -> bool:
        """Whether XLA makes faster programs of this kernel than TensorFlow itself."""
        return True

    def work(self, spec: Sampled) -> float:
        """About how many gradients a transition costs, by which the time of a run is estimated."""
        return self.gradients_per_transition

    def check_start(self, results: Results, chains: Sequence[int] | Array) -> None:
        """Refuses kernel results at the starts of `chains` from which the kernel cannot move."""
        del results, chains  # any will do

    # The transitions.

    @property
    @abstractmethod
    def gradients_per_transition(self) -> int:
        """Gradients that a transition takes, at most or about."""

    @abstractmethod
    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """The transition kernel; `step_size` has shape [C, 1]."""

    @abstractmethod
    def prepare(self, before: Results, step_size: Tensor, key: Tensor, adapting: Tensor) -> Results:
        """The kernel's results with whatever the next transition needs.

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

    def rung_log_likelihood(self, results: Results) -> Tensor:
        """Log likelihoods of the current states of all m `temperatures` [C, m], float64."""
        raise NotImplementedError(
            f"{type(self).__name__} has {len(self.temperatures)} temperatures and must say the log "
            "likelihoods of its rungs. Define rung_log_likelihood."
        )
