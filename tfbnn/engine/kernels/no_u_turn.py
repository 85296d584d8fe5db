"""One transition of NUTS: what decides it, its leapfrog steps and their weights, what it reports.

It is a trajectory that doubles until it turns back, and a draw from its points.

A doubling adds a subtree with as many leaves as the trajectory has points, at its left or its right
end, one leapfrog step after the other: there is no recursion. A subtree that turns back or diverges
is thrown away, and the trajectory ends; one that does not becomes part of it, and the trajectory
ends if the whole of it turns back. All chains of a batch that still go on have the same number of
leaves, so scalars say where in the tree they are.

This file and trajectory.py are made to compile fast: XLA takes some .02 s of processor time for
every tensor that changes in a loop, and .2 s or more for every place that draws random numbers.
Hence numbers of a chain that change together are rows of one tensor, and there is one draw of a few
numbers.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tfbnn.engine.basis.libraries import LogDensity, Results, Tensor, tf, tfp
from tfbnn.engine.kernels.trajectory import (
    Doubling,
    Draw,
    Leaf,
    Point,
    Tree,
    close_spans,
    facing,
    num_ones,
    tree_of,
)
from tfbnn.engine.kernels.transition import TransitionKernel, is_divergent

# Weights are float64 numbers relative to that of the start: 2^20 of exp(this) do not overflow.
_LARGEST_LOG_WEIGHT = 600.0


class NoUTurnResults(NamedTuple):
    """What a transition leaves for the next one, and what it reports.

    Attributes:
        target_log_prob: Log density of the current state [C].
        gradient: Its gradient [C, P].
        step_size: Leapfrog step [C, 1].
        is_accepted: Whether the last transition moved [C].
        acceptance_rate: Mean of min(1, exp(-energy error)) over the leaves of the last tree [C].
        n_steps: Number of these leaves [C], int32.
        diverging: Whether the last one diverged [C].
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
    """All that a transition is decided by.

    Momentum and directions decide what the tree is. Levels decide what is drawn from it, one number
    at all places of a level: that is exact, as a point is drawn by one decision on each level.

    Attributes:
        momentum: Standard normal [C, P].
        directions: Whether a doubling goes to the right, bool [max_tree_depth, C].
        levels: Uniform on (0, 1), float64 [max_tree_depth, C]: which half of a span of 2, 4, 8 ...
            points to draw from.
    """

    momentum: Tensor
    directions: Tensor
    levels: Tensor


@dataclass(eq=False)
class NoUTurnKernel(TransitionKernel):
    """Multinomial NUTS.

    Attributes:
        target_log_prob_fn: z [C, P] -> [C].
        step_size: [C, 1], for `bootstrap_results` only; later ones travel in the results.
        max_tree_depth: As in NUTS.
    """

    is_calibrated = True

    target_log_prob_fn: LogDensity
    step_size: Tensor
    max_tree_depth: int

    def bootstrap_results(self, init_state: Tensor) -> Results:
        """Results at a start [C, P]."""
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
        """One transition; returns (position [C, P], NoUTurnResults)."""
        random = draw_randomness(z, self.max_tree_depth, seed)
        start = Point(z, random.momentum, before.gradient)
        initial_energy = _energy(start, before.target_log_prob)

        def double(tree: Tree) -> tuple[Tree]:
            return (self._double(tree, before.step_size, initial_energy, random),)

        (tree,) = tf.while_loop(
            lambda tree: (tree.depth < self.max_tree_depth) & tf.reduce_any(tree.going),
            double,
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
        """The tree with twice as many points, unless it ends on the way."""
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
        """The Doubling with one leapfrog step more, for the chains where it is still going."""
        end, value = self._leapfrog(old.end, step, old.going)
        energy = _energy(end, value)
        gain = initial_energy - energy
        survives = old.going & ~is_divergent(gain) & tf.math.is_finite(gain)
        weight = tf.where(survives, tf.exp(tf.minimum(gain, _LARGEST_LOG_WEIGHT)), 0.0)
        counts = (tf.minimum(weight, 1.0), old.going, old.going & ~survives)
        draw = Draw(end.z, end.gradient, tf.stack([tf.cast(value, tf.float64), energy, weight]))
        leaf = Leaf(end.momentum, old.total + end.momentum, draw)
        own = num_ones(old.size) + 1
        stack = old.stack._replace(
            momentum=old.stack.momentum.write(own, end.momentum),
            previous=old.stack.previous.write(own, old.end.momentum),
            before=old.stack.before.write(own, old.total),
        )
        # Spans that the leaf completes begin where one or more of its last ones become zeros.
        longest = num_ones(old.size + 1) - tf.cast(is_last, tf.int32)
        going, draw = close_spans(stack, own, longest, leaf, survives, levels)
        return Doubling(
            size=old.size + 1,
            end=end,
            total=leaf.total,
            tally=old.tally + tf.stack([tf.cast(count, tf.float64) for count in counts]),
            going=going,
            stack=stack._replace(
                draw=Draw(*(room.write(longest, part) for room, part in zip(stack.draw, draw)))
            ),
        )

    def _leapfrog(self, point: Point, step: Tensor, going: Tensor) -> tuple[Point, Tensor]:
        """(Point after one step, log density there); chains that have ended keep their position."""
        half = point.momentum + 0.5 * step * point.gradient
        z = tf.where(going[:, None], point.z + step * half, point.z)
        value, gradient = tfp.math.value_and_gradient(self.target_log_prob_fn, z)
        return Point(z, half + 0.5 * step * gradient, gradient), value


def draw_randomness(z: Tensor, max_tree_depth: int, seed: Tensor) -> Randomness:
    """The Randomness of a transition from z [C, P].

    Momenta are quantiles of the normal distribution, as those of `stateless_normal` under XLA are.
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


def _energy(point: Point, log_prob: Tensor) -> Tensor:
    """The Hamiltonian [C], float64: a float32 sum over thousands of momenta errs by .005."""
    kinetic = 0.5 * tf.reduce_sum(tf.cast(point.momentum, tf.float64) ** 2, axis=-1)
    return kinetic - tf.cast(log_prob, tf.float64)
