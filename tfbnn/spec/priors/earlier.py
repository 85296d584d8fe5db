"""What the rows of an earlier fit say: the part of the prior that they make."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tfbnn.data.validation import check_integer
from tfbnn.spec.priors.arrays import FrozenArray
from tfbnn.spec.priors.base import REGISTRY
from tfbnn.spec.settings_json import ADDED
from tfbnn.system.arrays import Array


@dataclass(frozen=True)
class EarlierRows:
    """A factor of the prior: the likelihood of some rows, each to the power of its weight.

    It stands for the likelihood of all rows of earlier fits. M rows are kept, on the scale that the
    network sees, with D inputs and K targets; B networks of P parameters.

    Attributes:
        x: [M, D].
        y: [M, K]; class numbers of class likelihoods.
        noise: Known standard deviations [M, K], or None.
        weights: How many rows each stands for [M]; they add up to about `num_rows`.
        networks: The last draw of each chain of the earlier fit, where chains start [B, P].
        num_rows: How many rows there were.
        digests: Of all of them, as `Ensemble.row_digests`; None: files of before do not say.
    """

    x: FrozenArray
    y: FrozenArray
    noise: FrozenArray | None
    weights: FrozenArray
    networks: FrozenArray
    num_rows: int
    digests: FrozenArray | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        ranks = {"x": 2, "y": 2, "weights": 1, "networks": 2}
        ranks |= {"noise": 2} if self.noise is not None else {}
        ranks |= {"digests": 1} if self.digests is not None else {}
        for name, rank in ranks.items():
            array = getattr(self, name)
            if not isinstance(array, FrozenArray) or len(array.shape) != rank:
                raise ValueError(
                    f"{name} of EarlierRows must be an array with {rank} axes, received {array!r:.100}."
                )
        shapes = {"y": (self.num_kept, self.y.shape[1]), "weights": (self.num_kept,)}
        shapes["noise"] = shapes["y"]
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise ValueError(
                    f"{name} of EarlierRows must have shape {list(shape)}, received "
                    f"{list(array.shape)}."
                )
        if self.weights.values.min() <= 0:
            raise ValueError("weights of EarlierRows must be positive.")
        if self.noise is not None and self.noise.values.min() < 0:
            raise ValueError("noise of EarlierRows must not be negative.")
        digests = np.zeros(0) if self.digests is None else self.digests.values
        if np.any((digests != np.floor(digests)) | (digests < 0) | (digests >= 2.0**32)):
            raise ValueError("digests of EarlierRows must be integers of 32 bits.")
        check_integer("num_rows", self.num_rows, minimum=self.num_kept)

    @classmethod
    def of(cls, *, num_rows: int, noise: Array | None, **arrays: Array) -> EarlierRows:
        """The prior of these arrays, by the names of its attributes."""
        frozen = {name: FrozenArray.of(array) for name, array in arrays.items()}
        kept_noise = None if noise is None else FrozenArray.of(noise)
        return cls(num_rows=num_rows, noise=kept_noise, **frozen)

    @property
    def num_kept(self) -> int:
        """M, the rows that are kept."""
        return self.x.shape[0]

    @property
    def is_condensed(self) -> bool:
        """Whether some rows were left out, so that `networks` know more than the others say."""
        return self.num_kept < self.num_rows

    def fits(self, num_parameters: int, num_inputs: int, num_targets: int) -> bool:
        """Whether it is of networks and rows of these sizes."""
        sizes = self.networks.shape[1], self.x.shape[1], self.y.shape[1]
        return sizes == (num_parameters, num_inputs, num_targets)

    def __repr__(self) -> str:
        return f"what {self.num_rows} earlier rows say, by {self.num_kept} of them"


REGISTRY["EarlierRows"] = EarlierRows
