"""The No-U-Turn sampler: a trajectory that doubles until it turns back, and a draw from its points.

A doubling adds a subtree with as many leaves as the trajectory has points, at its left or right
end. The leaves are added one leapfrog step after the other, without recursion. A subtree that turns
back or diverges is discarded, and the trajectory ends. Otherwise the subtree becomes part of the
trajectory, which ends if the whole of it turns back. All chains of a batch that are still running
have the same number of leaves, so scalars describe the position in the tree. Only the two ends of a
trajectory are kept, and the spans that wait for a second half. When a leaf completes spans, each is
checked for a turn, and a point is drawn from it.

This file is written to compile fast. XLA takes some .02 s of processor time for every tensor that
changes in a loop, and .2 s or more for every call that draws random numbers. Numbers of a chain
that change together are therefore rows of one tensor, and all random numbers come from one call.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tfbnn.data.validation import check_number
from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor, tf, tfp
from tfbnn.engine.kernels.base import TunedKernel
from tfbnn.engine.kernels.transition import TransitionKernel, TransitionStatistics, is_divergent


class TreePoint(NamedTuple):
    """Position, momentum and gradient of the log density there, [C, P] each."""

    z: Tensor
    momentum: Tensor
    gradient: Tensor


class Draw(NamedTuple):
    """A point drawn from several points.

    Attributes:
        z, gradient: Position of the point, and the gradient there, [C, P] each.
        numbers: Log density and energy of the point, and the sum of exp(-energy error) over the
            points that it is drawn from, float64 [3, C].
    """

    z: Tensor
    gradient: Tensor
    numbers: Tensor


class Span(NamedTuple):
    """Successive points of a trajectory: sum of momenta, first and last momentum, [C, P] each."""

    total: Tensor
    first: Tensor
    last: Tensor


class Stack(NamedTuple):
    """Spans of a trajectory that wait for their second half, as TensorArrays.

    Index 0 holds the trajectory before the doubling, in its direction of growth. The dyadic span
    that begins with leaf k, counted from zero, has the index 1 + (number of ones of k in binary).
    No later leaf overwrites it before the span is complete.

    Attributes:
        momentum: Momentum of the first point of the span [C, P].
        previous: Momentum of the point before that [C, P].
        before: Sum of the momenta of all leaves before the span [C, P]; at index 0 minus the sum of
            the trajectory.
        draw: Draw from the first half of the span, or its first leaf; at index 0 from the
            trajectory.
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
        tally: Totals over all leaves, including discarded ones: sum of min(1, exp(-energy error)),
            number of leaves, and number of divergent leaves, float64 [3, C].
        going: Whether it should be doubled again [C].
        stack: Stack.
    """

    depth: Tensor
    front: TreePoint
    back: TreePoint
    right: Tensor
    total: Tensor
    tally: Tensor
    going: Tensor
    stack: Stack


class Doubling(NamedTuple):
    """State of a doubling.

    Attributes:
        size: Number of leaves so far, scalar.
        end: Point of the last leaf.
        total: Sum of the momenta of the leaves [C, P].
        tally, stack: As in Tree.
        going: Whether nothing has turned back or diverged so far [C].
    """

    size: Tensor
    end: TreePoint
    total: Tensor
    tally: Tensor
    going: Tensor
    stack: Stack


def tree_of(start: TreePoint, log_prob: Tensor, energy: Tensor, max_tree_depth: int) -> Tree:
    """Return the Tree with one point."""
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
    """Return the Tree with its front at the right end if `right` [C] is true, else at the left end."""
    turned = (tree.right != right)[:, None]
    pairs = list(zip(tree.back, tree.front))
    return tree._replace(
        front=TreePoint(*(tf.where(turned, back, front) for back, front in pairs)),
        back=TreePoint(*(tf.where(turned, front, back) for back, front in pairs)),
        right=right,
    )


def _either(takes: Tensor, new: Draw, old: Draw) -> Draw:
    """Return `new` where `takes` [C] is true, else `old`, as a draw from the points of both."""
    log_prob, energy, _ = tf.unstack(tf.where(takes, new.numbers, old.numbers))
    return Draw(
        z=tf.where(takes[:, None], new.z, old.z),
        gradient=tf.where(takes[:, None], new.gradient, old.gradient),
        numbers=tf.stack([log_prob, energy, new.numbers[2] + old.numbers[2]]),
    )


def _turns_back(one: Span, other: Span) -> Tensor:
    """Check whether a Span and the next one together turn back [C].

    They do if the momentum at either end points against the sum of momenta. The same is checked for
    each of them with the neighbouring point of the other, because two spans of half a period each
    end as they began.
    """
    return (
        _is_against(one.total + other.total, one.first, other.last)
        | _is_against(one.total + other.first, one.first, other.first)
        | _is_against(one.last + other.total, one.last, other.last)
    )


def _is_against(total: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Check whether one of two momenta points against the sum over a span, all [C, P]; return [C]."""
    along = (tf.reduce_sum(total * momentum, axis=-1) for momentum in (first, last))
    return tf.minimum(*along) < 0.0


def close_spans(
    new: Doubling, own: Tensor, longest: Tensor, draw: Draw, levels: Tensor
) -> tuple[Tensor, Draw]:
    """Join the spans that a leaf completes, the shortest first.

    Args:
        new: Doubling that ends with the leaf; its stack has no draw of the leaf yet.
        own: Stack index of the leaf, scalar.
        longest: Stack index of the longest span that the leaf completes, scalar.
        draw: Draw of the leaf alone.
        levels: Uniform numbers [max_tree_depth, C], float64.

    Returns:
        (whether the doubling is still going and no span turns back [C], Draw from the longest
        span).
    """
    stack = new.stack

    def close(index: Tensor, going: Tensor, draw: Draw) -> tuple[Tensor, Tensor, Draw]:
        index -= 1
        # The second half is the last span at the next index.
        first, middle = stack.before.read(index), stack.before.read(index + 1)
        turns = _turns_back(
            Span(middle - first, stack.momentum.read(index), stack.previous.read(index + 1)),
            Span(new.total - middle, stack.momentum.read(index + 1), new.end.momentum),
        )
        old = Draw(*(room.read(index) for room in stack.draw))
        weight = draw.numbers[2]
        # The new half of a trajectory is preferred: it is taken by the ratio of the weights, not by
        # its share of them.
        others = old.numbers[2] + tf.where(index > 0, weight, 0.0)
        takes = going & (levels[own - index - 1] * others < weight)
        return index, going & ~turns, _either(takes, draw, old)

    _, going, draw = tf.while_loop(
        lambda index, *_: index > longest, close, (own, new.going, draw), parallel_iterations=1
    )
    return going, draw


def num_ones(number: Tensor) -> Tensor:
    """Count the ones of an integer in binary, int32."""
    return tf.cast(tf.raw_ops.PopulationCount(x=number), tf.int32)


# Weights are float64 and relative to the weight of the start: 2^20 times exp(this) does not
# overflow.
_LARGEST_LOG_WEIGHT = 600.0


class NoUTurnResults(NamedTuple):
    """Results of a transition, used by the next transition and by the report.

    Attributes:
        target_log_prob: Log density of the current state [C].
        gradient: Its gradient [C, P].
        step_size: Leapfrog step [C, 1].
        is_accepted: Whether the last transition moved [C].
        acceptance_rate: Mean of min(1, exp(-energy error)) over the leaves of the last tree [C].
        n_steps: Number of these leaves [C], int32.
        diverging: Whether the last tree diverged [C].
        energy: Hamiltonian of the current state, with the momentum that led to it [C], float64.
    """

    target_log_prob: Tensor
    gradient: Tensor
    step_size: Tensor
    is_accepted: Tensor
    acceptance_rate: Tensor
    n_steps: Tensor
    diverging: Tensor
    energy: Tensor


class Randomness(NamedTuple):
    """Random numbers of a transition.

    Momentum and directions determine the tree. Levels determine the draw from it. All spans of a
    level share one number. This is exact, because a point is drawn by one decision per level.

    Attributes:
        momentum: Standard normal numbers [C, P].
        directions: Whether a doubling goes to the right, bool [max_tree_depth, C].
        levels: Uniform numbers on (0, 1), float64 [max_tree_depth, C]. They choose the half of a
            span of 2, 4, 8 ... points to draw from.
    """

    momentum: Tensor
    directions: Tensor
    levels: Tensor


@dataclass(eq=False)
class NoUTurnKernel(TransitionKernel):
    """Transition kernel of NUTS with multinomial sampling.

    Attributes:
        max_tree_depth: As in NUTS.
    """

    is_calibrated = True

    max_tree_depth: int

    def bootstrap_results(self, init_state: Tensor) -> Results:
        """Compute the kernel results at a start [C, P]."""
        value, gradient = tfp.math.value_and_gradient(self.target_log_prob_fn, init_state)
        return NoUTurnResults(
            target_log_prob=value,
            gradient=gradient,
            step_size=self.step_size,
            is_accepted=tf.ones_like(value, tf.bool),
            acceptance_rate=tf.ones_like(value),
            n_steps=tf.zeros_like(value, tf.int32),
            diverging=tf.zeros_like(value, tf.bool),
            energy=-tf.cast(value, tf.float64),
        )

    def one_step(self, z: Tensor, before: Results, seed: Tensor) -> tuple[Tensor, Results]:
        """Make one transition; return (position [C, P], NoUTurnResults)."""
        random = draw_randomness(z, self.max_tree_depth, seed)
        start = TreePoint(z, random.momentum, before.gradient)
        initial_energy = _energy(start, before.target_log_prob)

        (tree,) = tf.while_loop(
            lambda tree: (tree.depth < self.max_tree_depth) & tf.reduce_any(tree.going),
            lambda tree: (self._double(tree, before.step_size, initial_energy, random),),
            (tree_of(start, before.target_log_prob, initial_energy, self.max_tree_depth),),
            parallel_iterations=1,
        )
        draw = Draw(*(room.read(0) for room in tree.stack.draw))
        log_prob, energy, _ = tf.unstack(draw.numbers)
        acceptance, n_steps, num_divergent = tf.unstack(tree.tally)
        return draw.z, NoUTurnResults(
            target_log_prob=tf.cast(log_prob, z.dtype),
            gradient=draw.gradient,
            step_size=before.step_size,
            is_accepted=tf.reduce_any(draw.z != z, axis=-1),
            acceptance_rate=tf.cast(acceptance / n_steps, z.dtype),
            n_steps=tf.cast(n_steps, tf.int32),
            diverging=num_divergent > 0.0,
            energy=energy,
        )

    def _double(
        self, tree: Tree, step_size: Tensor, initial_energy: Tensor, random: Randomness
    ) -> Tree:
        """Return the tree with twice as many points, or fewer if the doubling ends early."""
        tree = facing(tree, random.directions[tree.depth])
        step = tf.where(tree.right[:, None], step_size, -step_size)
        num_leaves = tf.bitwise.left_shift(1, tree.depth)

        def add_leaf(new: Doubling) -> tuple[Doubling]:
            is_last = new.size + 1 == num_leaves
            return (self._add_leaf(new, step, initial_energy, random.levels, is_last),)

        stack = tree.stack._replace(
            momentum=tree.stack.momentum.write(0, tree.back.momentum),
            before=tree.stack.before.write(0, -tree.total),
        )
        nothing = tf.zeros_like(tree.total)
        (new,) = tf.while_loop(
            lambda new: (new.size < num_leaves) & tf.reduce_any(new.going),
            add_leaf,
            (Doubling(tf.constant(0), tree.front, nothing, tree.tally, tree.going, stack),),
            parallel_iterations=1,
        )
        return tree._replace(
            depth=tree.depth + 1,
            front=new.end,
            total=tree.total + new.total,
            tally=new.tally,
            going=new.going,
            stack=new.stack,
        )

    def _add_leaf(
        self, old: Doubling, step: Tensor, initial_energy: Tensor, levels: Tensor, is_last: Tensor
    ) -> Doubling:
        """Add a leaf by one leapfrog step, in the chains where the doubling is still going."""
        end, value = self._leapfrog(old.end, step, old.going)
        energy = _energy(end, value)
        gain = initial_energy - energy
        survives = old.going & ~is_divergent(gain) & tf.math.is_finite(gain)
        weight = tf.where(survives, tf.exp(tf.minimum(gain, _LARGEST_LOG_WEIGHT)), 0.0)
        counts = (tf.minimum(weight, 1.0), old.going, old.going & ~survives)
        draw = Draw(end.z, end.gradient, tf.stack([tf.cast(value, tf.float64), energy, weight]))
        own = num_ones(old.size) + 1
        new = Doubling(
            size=old.size + 1,
            end=end,
            total=old.total + end.momentum,
            tally=old.tally + tf.stack([tf.cast(count, tf.float64) for count in counts]),
            going=survives,
            stack=old.stack._replace(
                momentum=old.stack.momentum.write(own, end.momentum),
                previous=old.stack.previous.write(own, old.end.momentum),
                before=old.stack.before.write(own, old.total),
            ),
        )
        # Completed spans begin at the leaf numbers that remain if trailing ones of this one are set
        # to 0.
        longest = num_ones(new.size) - tf.cast(is_last, tf.int32)
        going, draw = close_spans(new, own, longest, draw, levels)
        draws = Draw(*(room.write(longest, part) for room, part in zip(new.stack.draw, draw)))
        return new._replace(going=going, stack=new.stack._replace(draw=draws))

    def _leapfrog(self, point: TreePoint, step: Tensor, going: Tensor) -> tuple[TreePoint, Tensor]:
        """Return (point after one step, log density there); ended chains keep their position."""
        half = point.momentum + 0.5 * step * point.gradient
        z = tf.where(going[:, None], point.z + step * half, point.z)
        value, gradient = tfp.math.value_and_gradient(self.target_log_prob_fn, z)
        return TreePoint(z, half + 0.5 * step * gradient, gradient), value


def draw_randomness(z: Tensor, max_tree_depth: int, seed: Tensor) -> Randomness:
    """Draw the random numbers of a transition from z [C, P].

    Momenta are quantiles of the normal distribution, as in `stateless_normal` under XLA.
    """
    num_chains, size = z.shape
    one = z.dtype.as_numpy_dtype(1.0)
    numbers = tf.random.stateless_uniform(
        [size + 2 * max_tree_depth, num_chains], seed, np.nextafter(-one, one), one, z.dtype
    )
    normal, directions, levels = tf.split(numbers, [size, max_tree_depth, max_tree_depth])
    return Randomness(
        momentum=2.0**0.5 * tf.math.erfinv(tf.transpose(normal)),
        directions=directions > 0.0,
        levels=0.5 + 0.5 * tf.cast(levels, tf.float64),
    )


def _energy(point: TreePoint, log_prob: Tensor) -> Tensor:
    """Compute the Hamiltonian [C] in float64; a float32 sum over thousands of momenta errs by .005."""
    kinetic = 0.5 * tf.reduce_sum(tf.cast(point.momentum, tf.float64) ** 2, axis=-1)
    return kinetic - tf.cast(log_prob, tf.float64)


# A million gradients per transition; no adapted step size needs as many.
_MAX_TREE_DEPTH = 20


@dataclass(frozen=True, kw_only=True)
class NUTS(TunedKernel, name="nuts"):
    """The No-U-Turn sampler with multinomial sampling of trajectories.

    A trajectory doubles, to the left or to the right, until it or one of its dyadic parts turns
    back: the momentum at an end points against the sum of the momenta. As in Stan, each half is
    also checked together with the neighbouring point of the other half. Without this, trajectories
    of a normal density in 500 whitened dimensions had 510 steps instead of 15 wherever eight steps
    are half a period, at an acceptance of 0.77. Points are drawn with weights exp(-energy error)
    within a half, and the new half is preferred to the old one. A leaf whose energy error is above
    1000 or NaN ends the trajectory, and the half that contains it is discarded. Each chain of a
    batch ends on its own; the batch continues until all have ended.

    Attributes:
        max_tree_depth: Largest depth of the tree, with at most 2**max_tree_depth - 1 leapfrog steps
            per transition; default 10, at most 20. Each level takes memory for five vectors per
            chain.

    The other attributes are described in `TunedKernel`.

    References:
        Hoffman and Gelman 2014, JMLR 15, 1593. Betancourt 2017, arXiv:1701.02434 (weights, and
        turns by sums of momenta). Phan, Pradhan and Jankowiak 2019, arXiv:1912.11554, and Lao et
        al. 2020, arXiv:2002.01184 (trees without recursion).
    """

    max_tree_depth: int = 10

    # The optimum of the acceptance averaged over a trajectory is higher: Hoffman and Gelman 2014,
    # 0.65 to 0.8. The upper end copes with varying curvature.
    accept_targets = (0.8, 0.7)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_integer("max_tree_depth", minimum=1)
        check_number("max_tree_depth", self.max_tree_depth, maximum=_MAX_TREE_DEPTH)

    @property
    def gradients_per_transition(self) -> int:
        # Trees rarely saturate; this guess only serves to estimate the time of a run.
        return min(2**self.max_tree_depth - 1, 127)

    def build(self, target_log_prob_fn: LogDensity, step_size: Tensor) -> TransitionKernel:
        """Build the kernel; `step_size` has shape [C, 1]."""
        return NoUTurnKernel(target_log_prob_fn, step_size, self.max_tree_depth)

    def statistics(self, results: Results) -> TransitionStatistics:
        """Return the statistics of the last transition."""
        return TransitionStatistics(
            results.acceptance_rate, results.n_steps, results.diverging, results.energy
        )
