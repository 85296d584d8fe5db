"""Size the next block of a chain group by what the last one did and how long it took.

While a block runs, nobody hears of its group, commits it or can stop it other than by leaving it
behind, so it should take about a second. No setting tells how much that is: trees of NUTS are a
thousand times deeper here than there, and a gradient takes a thousand times longer with more rows.
"""

from typing import NamedTuple

BLOCK_SECONDS = 1.0
# A short block says little of a long one: its group may have been alone on the machine, say. From one
# transition to a thousand it takes four blocks, and a call of the smallest takes some milliseconds,
# most of them to clear the room for draws.
_GROWTH = 16
# More gradients than any block makes.
UNLIMITED = 2**31 - 1


class Work(NamedTuple):
    """Work that a block has done, or may do at most.

    Attributes:
        transitions: Number of transitions.
        gradients: Number of gradients, one after another; see
            `tfbnn.engine.sampling.block.BlockOutput.num_sequential`.
    """

    transitions: int
    gradients: int


# The first block of a chain group is one transition: any second one would be one too many on a network
# whose transitions take a minute, of which nothing is known yet.
FIRST = Work(transitions=1, gradients=1)


def next_work(made: Work, seconds: float) -> Work:
    """Return what takes about a second, or a few times what was made if that was over much sooner.

    Both limits hold at once. Gradients rule where transitions differ in how many they take;
    transitions where they cost something else (metrics, swaps, the kernel of a user that does not
    say its gradients), or where there are no gradients at all.

    A single transition cannot be split: a block is one of them, at least, however long that takes,
    and exceeds what it may do by less than one.

    Args:
        made: What the last block of the group did.
        seconds: How long that took.
    """
    share = BLOCK_SECONDS / max(seconds, BLOCK_SECONDS / _GROWTH)
    return Work(*(max(1, int(share * number)) for number in made))
