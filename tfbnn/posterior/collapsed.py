"""What a run with collapsed readout knows of the readouts besides those it drew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfbnn.system.arrays import Array, read_only


@dataclass(frozen=True, eq=False)
class Readouts:
    """The normal distribution of every draw's readout, given the rest of that draw.

    Attributes:
        mean: Means of the entries of theta that are the readout's, kernel before bias
            [C, S, p * K], for p features (hidden units and the bias) and K outputs.
        factor: Upper triangular F with F F^T the covariance of one output's entries, its rows one
            after the other without the zeros: [C, S, G, p (p + 1) / 2], G = 1 where all outputs
            have the same, else K. None where it was not kept.
    """

    mean: Array
    factor: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", read_only(self.mean))
        if self.factor is not None:
            object.__setattr__(self, "factor", read_only(self.factor))

    def of_chains(self, chains: Array) -> Readouts:
        """Those of some chains, given by numbers or a mask."""
        return Readouts(self.mean[chains], None if self.factor is None else self.factor[chains])

    def factors(self, num_features: int) -> Array | None:
        """The matrices F of all draws [C * S, G, p, p], None where they were not kept."""
        if self.factor is None:
            return None
        packed = self.factor.reshape(-1, *self.factor.shape[2:])
        full: Array = np.zeros((*packed.shape[:2], num_features, num_features), packed.dtype)
        rows, columns = np.triu_indices(num_features)
        full[..., rows, columns] = packed
        return full


def pop_readouts(statistics: dict[str, Array]) -> Readouts | None:
    """Takes what belongs to the readouts out of a dict of statistics: Readouts, or None."""
    mean, factor = (statistics.pop(name, None) for name in ("readout_mean", "readout_factor"))
    return None if mean is None else Readouts(mean, factor)
