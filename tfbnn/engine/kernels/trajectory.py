"""What is kept of a trajectory while it doubles, and whether it turns back.

Kept are its two ends, and its spans that wait for a second half. The leaf that completes spans says
of each whether it turns back, and draws a point from it.
"""

from typing import Any, NamedTuple

from tfbnn.engine.basis.libraries import Tensor, tf


class Point(NamedTuple):
    """Position, momentum and gradient of the log density there, [C, P] each."""

    z: Tensor
    momentum: Tensor
    gradient: Tensor


class Draw(NamedTuple):
    """A point drawn from several.

    Attributes:
        z, gradient: Its position, and the gradient there, [C, P] each.
        numbers: Its log density and energy, and the sum of exp(-energy error) over the points that
            it is drawn from, float64 [3, C].
    """

    z: Tensor
    gradient: Tensor
    numbers: Tensor


class Leaf(NamedTuple):
    """The leaf that a doubling has come to.

    Attributes:
        momentum: At the leaf [C, P].
        total: Sum of the momenta of all leaves of the doubling up to it [C, P].
        draw: Draw of the leaf alone.
    """

    momentum: Tensor
    total: Tensor
    draw: Draw


class Span(NamedTuple):
    """Successive points of a trajectory: sum of their momenta, first and last one, [C, P] each."""

    total: Tensor
    first: Tensor
    last: Tensor


class Stack(NamedTuple):
    """What is kept of the spans of a trajectory that wait for their second half: TensorArrays.

    Place 0 has the trajectory before the doubling, in the direction that it grows in. The dyadic
    span that begins with leaf k, from zero, is in the place that is one and the number of ones of k
    in binary: the next leaf with as many ones or fewer comes when it is complete.

    Attributes:
        momentum: Of its first point [C, P].
        previous: Of the point before that [C, P].
        before: Sum of the momenta of all leaves before it [C, P]; for place 0 minus the trajectory's.
        draw: Draw from its first half, or of its first leaf; in place 0 from the trajectory.
    """

    momentum: Any
    previous: Any
    before: Any
    draw: Draw


class Tree(NamedTuple):
    """A trajectory.

    Attributes:
        depth: Number of doublings, scalar.
        front: Point at the end where it grows.
        back: Point at the other end.
        right: Whether the front is the right end [C].
        total: Sum of the momenta of its points [C, P].
        tally: Of all leaves, also of those thrown away: sum of min(1, exp(-energy error)), number,
            and number of those that diverged, float64 [3, C].
        going: Whether it is to be doubled [C].
        stack: Stack.
    """

    depth: Tensor
    front: Point
    back: Point
    right: Tensor
    total: Tensor
    tally: Tensor
    going: Tensor
    stack: Stack


class Doubling(NamedTuple):
    """A doubling under way.

    Attributes:
        size: Number of its leaves so far, scalar.
        end: Point at the last of them.
        total: Sum of their momenta [C, P].
        tally, stack: As in Tree.
        going: Whether no part of it, nor the whole in the end, has turned back or diverged [C].
    """

    size: Tensor
    end: Point
    total: Tensor
    tally: Tensor
    going: Tensor
    stack: Stack


def tree_of(start: Point, log_prob: Tensor, energy: Tensor, max_tree_depth: int) -> Tree:
    """The Tree of one Point."""
    numbers = tf.stack([tf.cast(log_prob, tf.float64), energy, tf.ones_like(energy)])
    draw = Draw(start.z, start.gradient, numbers)

    def room(like: Tensor) -> Any:
        return tf.TensorArray(
            like.dtype, size=max_tree_depth + 1, element_shape=like.shape, clear_after_read=False
        )

    return Tree(
        depth=tf.constant(0),
        front=start,
        back=start,
        right=tf.ones_like(energy, tf.bool),
        total=start.momentum,
        tally=tf.zeros_like(numbers),
        going=tf.ones_like(energy, tf.bool),
        stack=Stack(
            momentum=room(start.z),
            previous=room(start.z),
            before=room(start.z),
            draw=Draw(*(room(part).write(0, part) for part in draw)),
        ),
    )


def facing(tree: Tree, right: Tensor) -> Tree:
    """The Tree with its front at the right end, or at the left one where `right` [C] is false."""
    turned = (tree.right != right)[:, None]
    pairs = list(zip(tree.back, tree.front))
    return tree._replace(
        front=Point(*(tf.where(turned, back, front) for back, front in pairs)),
        back=Point(*(tf.where(turned, front, back) for back, front in pairs)),
        right=right,
    )


def _either(takes: Tensor, new: Draw, old: Draw) -> Draw:
    """`new` for the chains where `takes` [C] holds, else `old`, from the points of both."""
    log_prob, energy, _ = tf.unstack(tf.where(takes, new.numbers, old.numbers))
    return Draw(
        z=tf.where(takes[:, None], new.z, old.z),
        gradient=tf.where(takes[:, None], new.gradient, old.gradient),
        numbers=tf.stack([log_prob, energy, new.numbers[2] + old.numbers[2]]),
    )


def _turns_back(one: Span, other: Span) -> Tensor:
    """Whether a Span and the one after it turn back together [C].

    They do where the momentum at either end points against the sum; or where that is so of one of
    them with the neighbouring point of the other, as twice half a period ends as it began.
    """
    return (
        _is_against(one.total + other.total, one.first, other.last)
        | _is_against(one.total + other.first, one.first, other.first)
        | _is_against(one.last + other.total, one.last, other.last)
    )


def _is_against(total: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Whether one of two momenta points against their sum over a span, all [C, P]; [C]."""
    along = (tf.reduce_sum(total * momentum, axis=-1) for momentum in (first, last))
    return tf.minimum(*along) < 0.0


def close_spans(
    stack: Stack,
    own: Tensor,
    longest: Tensor,
    leaf: Leaf,
    survives: Tensor,
    levels: Tensor,
) -> tuple[Tensor, Draw]:
    """Joins the spans that a leaf completes, the shortest first.

    Args:
        stack: Stack, with what is known of the leaf but its draw.
        own: Place of the leaf, scalar.
        longest: Place of the longest span that it completes, scalar.
        leaf: Leaf.
        survives: Whether the doubling is still going [C].
        levels: Uniform numbers [max_tree_depth, C], float64.

    Returns:
        (whether it still is and no span turns back [C], Draw from the longest).
    """

    def close(place: Tensor, going: Tensor, draw: Draw) -> tuple[Tensor, Tensor, Draw]:
        place -= 1
        # The second half is the last span that came to the next place.
        first, middle = stack.before.read(place), stack.before.read(place + 1)
        turns = _turns_back(
            Span(middle - first, stack.momentum.read(place), stack.previous.read(place + 1)),
            Span(leaf.total - middle, stack.momentum.read(place + 1), leaf.momentum),
        )
        old = Draw(*(room.read(place) for room in stack.draw))
        weight = draw.numbers[2]
        # The new half of a trajectory is preferred: by the ratio of the weights, not by the share.
        others = old.numbers[2] + tf.where(place > 0, weight, 0.0)
        takes = going & (levels[own - place - 1] * others < weight)
        return place, going & ~turns, _either(takes, draw, old)

    _, going, draw = tf.while_loop(
        lambda place, *_: place > longest, close, (own, survives, leaf.draw), parallel_iterations=1
    )
    return going, draw


def num_ones(number: Tensor) -> Tensor:
    """How many ones an integer has in binary, int32."""
    return tf.cast(tf.raw_ops.PopulationCount(x=number), tf.int32)
