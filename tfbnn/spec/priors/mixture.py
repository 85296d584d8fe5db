"""Normal distributions of all parameters together: what an earlier posterior is as a prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfbnn.spec.priors.arrays import FrozenArray
from tfbnn.spec.priors.base import REGISTRY
from tfbnn.system.arrays import Array


@dataclass(frozen=True)
class NormalMixture:
    """theta ~ sum_b w_b N(m_b, D_b (I + V_b (T_b^2 - I) V_b^T) D_b), over all P parameters.

    D and T are diagonal and the columns of V orthonormal: along them theta / D has the standard
    deviations T, across them one. With as many columns as parameters that is any covariance, with
    fewer one of low rank and a diagonal.

    Attributes:
        weights: w [B], which add up to one.
        loc: m [B, P].
        scale: Diagonals of D [B, P].
        directions: V [B, P, r], r from 0 to P.
        stretch: Diagonals of T [B, r].
    """

    weights: FrozenArray
    loc: FrozenArray
    scale: FrozenArray
    directions: FrozenArray
    stretch: FrozenArray

    def __post_init__(self) -> None:
        if len(self.loc.shape) != 2 or 0 in self.loc.shape:
            raise ValueError(f"loc of a mixture must be [B, P], received {list(self.loc.shape)}.")
        count, size = self.loc.shape
        rank = self.stretch.shape[-1] if len(self.stretch.shape) == 2 else -1
        wanted = {
            "weights": (count,),
            "scale": (count, size),
            "directions": (count, size, rank),
            "stretch": (count, rank),
        }
        for name, shape in wanted.items():
            if getattr(self, name).shape != shape:
                raise ValueError(
                    f"{name} of a mixture must have shape {list(shape)}, received "
                    f"{list(getattr(self, name).shape)}."
                )
        for name in ("weights", "scale", "stretch"):
            if (getattr(self, name).values <= 0).any():
                raise ValueError(f"{name} of a mixture must be positive.")
        if abs(self.weights.values.sum() - 1.0) > 1e-6:
            raise ValueError("the weights of a mixture must add up to one.")

    @classmethod
    def of(
        cls, weights: Array, loc: Array, scale: Array, directions: Array, stretch: Array
    ) -> NormalMixture:
        """The mixture of these arrays."""
        return cls(*map(FrozenArray.of, (weights, loc, scale, directions, stretch)))

    @property
    def num_components(self) -> int:
        return self.loc.shape[0]

    @property
    def num_parameters(self) -> int:
        return self.loc.shape[1]

    def sample(self, generator: np.random.Generator) -> Array:
        """One draw [P]."""
        index = generator.choice(self.num_components, p=self.weights.values)
        standard = generator.standard_normal(self.num_parameters)
        directions, stretch = self.directions.values[index], self.stretch.values[index]
        shaped = standard + directions @ ((stretch - 1.0) * (directions.T @ standard))
        draw: Array = self.loc.values[index] + self.scale.values[index] * shaped
        return draw

    def __repr__(self) -> str:
        what = (
            "a normal distribution"
            if self.num_components == 1
            else (f"a mixture of {self.num_components} normal distributions")
        )
        return f"{what} of all {self.num_parameters} parameters"


REGISTRY["NormalMixture"] = NormalMixture
