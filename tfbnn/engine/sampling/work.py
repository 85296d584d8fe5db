"""How much a block does: what bounds it, and what it says of itself. Needs nothing of the engine."""

from typing import NamedTuple

# More gradients than any block makes.
UNLIMITED = 2**31 - 1


class Work(NamedTuple):
    """What a block has done, or may do at most.

    Attributes:
        transitions: Number of transitions.
        gradients: Number of gradients, one after another; see
            `tfbnn.engine.sampling.block.BlockOutput.num_sequential`.
    """

    transitions: int
    gradients: int
