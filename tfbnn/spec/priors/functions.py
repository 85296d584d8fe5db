"""What an earlier posterior says of a network's function: the part that rows had in it."""

from __future__ import annotations

from dataclasses import dataclass

from tfbnn.data.validation import check_integer
from tfbnn.spec.priors.arrays import FrozenArray
from tfbnn.spec.priors.base import REGISTRY
from tfbnn.system.arrays import Array


@dataclass(frozen=True)
class FunctionPrior:
    """A factor of the prior: sum_b w_b N(W_b f_theta(z) - o_b; 0, 1) N(log s; l_b, t_b^2).

    f_theta(z) are the outputs of a network at inputs z on the scale that it sees, and s the learned
    noise scales. It stands for the likelihood of rows that are gone, up to a constant: as a normal
    distribution of outputs, in which that of Gaussian noise is one however they depend on the weights.

    One component is for each chain of the earlier fit. M inputs of dimension D, K outputs, S learned
    noise scales, R lines.

    Attributes:
        inputs: z [M, D].
        weights: w [B], which add up to one: of the heights of the components. Their masses also depend
            on the priors of the layers, and are no one's business while chains stay in theirs.
        networks: Parameters [B, P] where each component is nearly largest, and where chains start.
        lines: W [B, R, M * K], input by input.
        offsets: o [B, R].
        log_noise: l [B, S].
        log_noise_scale: t [B, S].
        num_rows: How many rows it stands for.
    """

    inputs: FrozenArray
    weights: FrozenArray
    networks: FrozenArray
    lines: FrozenArray
    offsets: FrozenArray
    log_noise: FrozenArray
    log_noise_scale: FrozenArray
    num_rows: int

    def __post_init__(self) -> None:
        wanted = {"inputs": 2, "weights": 1, "networks": 2, "lines": 3}
        wanted |= {"offsets": 2, "log_noise": 2, "log_noise_scale": 2}
        for name, rank in wanted.items():
            if len(getattr(self, name).shape) != rank:
                raise ValueError(
                    f"{name} of a FunctionPrior must have {rank} axes, received "
                    f"{list(getattr(self, name).shape)}."
                )
        count, num_lines = self.offsets.shape
        shapes = {
            "weights": (count,),
            "networks": (count, self.networks.shape[1]),
            "lines": (count, num_lines, self.lines.shape[2]),
            "log_noise": (count, self.log_noise.shape[1]),
            "log_noise_scale": self.log_noise.shape,
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(
                    f"{name} of a FunctionPrior must have shape {list(shape)}, received "
                    f"{list(getattr(self, name).shape)}."
                )
        check_integer("num_rows", self.num_rows, minimum=1)
        for name in ("weights", "log_noise_scale"):
            if (getattr(self, name).values <= 0).any():
                raise ValueError(f"{name} of a FunctionPrior must be positive.")

    @classmethod
    def of(cls, *, num_rows: int, **arrays: Array) -> FunctionPrior:
        """The prior of these arrays, by the names of its attributes."""
        frozen = {name: FrozenArray.of(array) for name, array in arrays.items()}
        return cls(num_rows=num_rows, **frozen)

    @property
    def num_components(self) -> int:
        return self.offsets.shape[0]

    @property
    def num_inputs(self) -> int:
        """M, the inputs at which functions are held."""
        return self.inputs.shape[0]

    def fits(self, num_parameters: int, input_size: int, num_outputs: int, num_noise: int) -> bool:
        """Whether it is of networks of these sizes."""
        return (
            self.networks.shape[1] == num_parameters
            and self.inputs.shape[1] == input_size
            and self.lines.shape[2] == self.num_inputs * num_outputs
            and self.log_noise.shape[1] == num_noise
        )

    def __repr__(self) -> str:
        return (
            f"what {self.num_rows} earlier rows say of outputs at {self.num_inputs} inputs, in "
            f"{self.num_components} normal distributions"
        )


REGISTRY["FunctionPrior"] = FunctionPrior
