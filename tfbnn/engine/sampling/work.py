"""Choice of the size of a chain group's next block from the work and time of the last one.

While a block runs, its group cannot report, commit or be stopped, except by abandoning the block. A
block should therefore take about a second. The work per second cannot be known in advance: trees of
NUTS may differ in size by a factor of a thousand, and so may the time of a gradient.
"""

from typing import NamedTuple

BLOCK_SECONDS = 1.0
# Largest factor between successive blocks. A short block says little about a long one; its group
# may, for example, have been alone on the machine. It takes four blocks from one transition to a
# thousand. A call of the smallest block takes some milliseconds, most of them to clear the slots
# for draws.
_GROWTH = 16
# More gradients than any block makes.
UNLIMITED = 2**31 - 1


class Work(NamedTuple):
    """Amount of work that a block has done, or may do at most.

    Attributes:
        transitions: Number of transitions.
        gradients: Number of sequential gradients, see
            `tfbnn.engine.sampling.block.BlockOutput.num_sequential`.
    """

    transitions: int
    gradients: int


# The first block of a chain group is a single transition, because nothing is known yet and a
# transition may take a minute.
FIRST = Work(transitions=1, gradients=1)


def next_work(made: Work, seconds: float) -> Work:
    """Return the work for about a second, at most 16 times that of the last block.

    Both limits apply at once. The limit of gradients matters if transitions differ in their number
    of gradients. The limit of transitions matters if these have other costs (metrics, swaps, a
    user's kernel that does not report its gradients), or if there are no gradients at all.

    A transition cannot be split. A block therefore makes at least one, however long that takes, and
    exceeds its limits by less than one transition.

    Args:
        made: Work of the last block of the group.
        seconds: Seconds that it took.
    """
    share = BLOCK_SECONDS / max(seconds, BLOCK_SECONDS / _GROWTH)
    return Work(*(max(1, int(share * number)) for number in made))
