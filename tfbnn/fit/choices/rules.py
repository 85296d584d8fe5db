"""Rules for settings that are "auto": pure functions that return (setting, reason).

They use sizes, the targets and the result of a pilot, never a clock: the same rows give the same
choices on every machine. `pilot` is the noise of every target that a pilot found, or None for class
labels.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from tfbnn.diagnostics.wording import percent
from tfbnn.engine.kernels.base import Preconditioner
from tfbnn.engine.kernels.hmc import HMC
from tfbnn.engine.kernels.nuts import NUTS
from tfbnn.run.until import FIRST_LOOK
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array

# Up to this number of parameters NUTS trees are short, and no fixed length suits all transitions.
_FEW_PARAMETERS = 30
# Leapfrog steps for noisy rows, for others, and above this N P. With little noise the posterior is
# long and narrow. A draw of 64 steps is then close to the previous one, and four times as many of them
# would be kept for nothing.
_NOISY_STEPS, _STEPS_OF_HMC, _FEW_STEPS, _LONG_WORK = 64, 256, 32, 5e6
# For more rows than the search for starts uses: limit on N P times gradients of the shortest warm-up and as
# many draws, all chains together. It is 40 minutes of a core, 20 of two, by the estimate of
# `tfbnn.run.cost`. Fewer leapfrog steps than _FEWEST_STEPS hardly move a chain. Whitening may take half as
# many operations. The matrix of all rows needs 2 N P^2, at the start and after each of the two windows of
# such a short warm-up.
_WORK_OF_CHAINS, _FEWEST_STEPS, _WHITENING_WORK, _MATRICES = 1.6e13, 8, 4.8e13, 3
# For warm-up: transitions of a chain, usual and fewest, and the limit on N P times gradients.
_WARMUP, _LEAST_WARMUP, _WARMUP_WORK = 1000, 100, 1.6e11
# Warm-up, acceptance and most draws per chain of the scales of a network of infinite width.
_WARMUP_OF_SCALES, _ACCEPT_OF_SCALES, _MOST_OF_SCALES = 100, 0.65, 1200
# Most rows of the search for starts; with more rows it uses a sample of this size, but at least ten rows per
# weight. This limits its time. With fewer rows it is as it was measured.
_MOST_ROWS_OF_SEARCH = 2**16
# For ADAM: steps of a chain, limits on the rows per step, and aimed steps per epoch. _MORE_STEPS multiplies
# the steps if neither early stopping nor Levenberg-Marquardt follows.
_STEPS, _SMALLEST_BATCH, _LARGEST_BATCH, _BATCHES = 12_000, 32, 512, 64
_MORE_STEPS = 8

# Share of the rows that is held out to score starts. It is at least eight rows, unless that exceeds the
# largest share, and at most 2000 rows. _PATIENCE is the patience of early stopping as a share of all epochs.
_HELD_OUT, _LARGEST_SHARE, _FEWEST_HELD_OUT, _MOST_HELD_OUT = 0.15, 0.4, 8, 2000
_PATIENCE = 0.2
# With fewer rows than these none is held out: ADAM makes few steps, and Levenberg-Marquardt is not used.
_FEW_ROWS, _FEW_STEPS_OF_ADAM = 10, 500
# Noise of the pilot from which Levenberg-Marquardt is not tried. With so much noise the result of ADAM is
# as good, and Levenberg-Marquardt would follow single rows.
_MOSTLY_NOISE = 0.5
# Noise below which several starts are tried for each chain, as with many rows per weight. Above this N P
# their polish takes minutes more. With so little noise chains stay where they start.
_NEARLY_NO_NOISE, _STARTS_PER_CHAIN, _MOST_WORK_OF_MANY = 0.1, 2, 2e7
# With so little noise, populations are cooled in place of ADAM if there are enough rows per weight, and no
# more rows than particles can afford. The rows then determine a network, and ADAM ends in basins hundreds of
# nats below it (benchmarks/results/starts.md). With 1.3 rows per weight populations ended 500 nats below, too.
# On yacht, with .7 rows per weight, chains from populations scored .76 per row, and chains from ADAM with
# held-out rows .88.
_PARTICLES, _ROWS_OF_PARTICLES, _ROWS_PER_WEIGHT_OF_PARTICLES = 16, 1500, 2
# ADAM has failed if the misfit of a start is more than _FAILED_BY times that of the pilot, and more than
# _FAILED: it did not begin to follow the rows. Otherwise it ends near the misfit of the pilot.
_FAILED_BY, _FAILED = 2.0, 0.5
# Below this effort starts are not polished. For 30 rows without noise the polish took 15 s of a processor,
# three times as long as a tenth of warm-up and draws. Without it, a run on 300 rows of Friedman's function
# with a noise of 0.1 still predicted new rows with an error of 0.117.
_EFFORT_OF_POLISH = 0.5
# Longer steps are rejected where the chains end up, which is steeper than where they were tuned: with the
# usual target of 0.65, a quarter of the transitions diverged on concrete and yacht.
_ACCEPT = 0.8
# With much noise the sampled scales of layers vary widely, and some corners of the posterior are far steeper
# than its middle. With a target of 0.8, 1.0 and 1.6 % of the transitions diverged in two of ten fits to red
# wine, with 0.9 0.12 and 0.38 %.
_ACCEPT_OF_NOISE = 0.9

# From this number of rows per weight on, Levenberg-Marquardt cannot follow single rows, and none are held out
# to stop it. On 11746 rows of neutralinos (P = 572) the holdout score ended it after 36 to 84 iterations at
# a noise of .019 to .045, while 181 iterations reach .013. Such a narrow posterior is well described by the
# curvature at its middle: whitened chains scored 2.73 per row there, others 2.61. Elsewhere sampled prior
# scales move away from the curvature: on the demo (N = 1600, P = 361) whitened draws cost 1.5 times as much
# and mixed no better, on 2500 noisy rows they had a sixth of the effective sample size.
_ROWS_PER_WEIGHT = 10

# Pairs of most rows and planned seconds of a fit on two cores, including the choice of the network and the
# calibration. Scores after two minutes were within .05 of those after five on 13 of 14
# tables (benchmarks/results/default.md).
_BUDGETS, BUDGET_CORES = ((1500, 60.0), (15_000, 150.0)), 2
# Shares of the search for starts and of the chains. With ten rows per weight chains stay about where they
# start, and Levenberg-Marquardt gains more than they do. It takes less time than planned, which leaves
# some for the choice of the network.
_SHARES, _SHARES_OF_NARROW = (1 / 3, 0.6), (0.65, 0.35)

# Fewest rows with which a fit ends with a calibration: enough to determine bars of 1 and 2 standard
# deviations. Log densities of held-out rows rose or stayed on nine of nine tables of 900 to
# 14000 rows, by up to .7 and .96 where the misfit of a deterministic function is taken for noise
# (benchmarks/results/calibration.md).
_FEWEST_CALIBRATING = 150


class FitSizes(NamedTuple):
    """Sizes of a fit, the input of the rules besides a pilot.

    Attributes:
        num_rows: N, including the rows kept of earlier fits.
        num_parameters: P, which includes the effect of D and K.
        num_chains: C.
        effort: Share of the usual steps of warm-up and of ADAM, and of starts.
        is_infinite: Whether the network has infinite width, and so no weights.
        can_cool: Whether a population can be cooled: this needs a Gauss-Newton matrix and independent
            draws of the prior.
    """

    num_rows: int
    num_parameters: int
    num_chains: int = 4
    effort: float = 1.0
    is_infinite: bool = False
    can_cool: bool = True

    @property
    def work(self) -> float:
        """N P, approximately proportional to the cost of a gradient."""
        return float(self.num_rows) * self.num_parameters

    @property
    def rows_of_search(self) -> int:
        """Number of rows that the search for starts uses."""
        most = max(_MOST_ROWS_OF_SEARCH, _ROWS_PER_WEIGHT * self.num_parameters)
        return min(self.num_rows, most)

    @property
    def is_large(self) -> bool:
        """True if the search for starts uses only a sample of the rows."""
        return self.num_rows > self.rows_of_search

    @property
    def affords_whitening(self) -> bool:
        """True if the chains can afford whitening by the matrix of all rows."""
        flops = 2.0 * self.work * self.num_parameters * _MATRICES * self.num_chains
        return not self.is_large or flops <= _WHITENING_WORK

    @property
    def effort_note(self) -> str:
        """Text on the effort for a reason; empty for the full effort."""
        return "" if self.effort == 1.0 else f", effort {self.effort:g}"

    @property
    def has_many_rows(self) -> bool:
        """True if there are at least ten rows per weight."""
        return self.num_rows >= _ROWS_PER_WEIGHT * self.num_parameters

    @property
    def has_particles(self) -> bool:
        """True if the rows determine the weights and are few enough for a population."""
        least = _ROWS_PER_WEIGHT_OF_PARTICLES * self.num_parameters
        return self.can_cool and least <= self.num_rows <= _ROWS_OF_PARTICLES

    def are_narrow(self, noise: float) -> bool:
        """Return whether the number of rows and this noise make the posterior very narrow."""
        return noise < _MOSTLY_NOISE and self.has_many_rows


def kernel(sizes: FitSizes, pilot: Array | None) -> tuple[Any, str]:
    """Return (settings of the kernel, reason)."""
    if sizes.is_infinite:
        whitened = NUTS(target_accept_prob=_ACCEPT_OF_SCALES, preconditioner="gauss_newton")
        return whitened, "the curvature at the maximum whitens the scales, so NUTS trees are short"
    if sizes.num_parameters <= _FEW_PARAMETERS:
        return NUTS(), f"NUTS trees are short with P = {sizes.num_parameters} parameters"
    noise, accept = _noise_of(pilot), _ACCEPT
    if sizes.work > _LONG_WORK:
        length, why = _FEW_STEPS, f"gradients are costly: N P = {sizes.work:.2g}"
    elif noise < _MOSTLY_NOISE:
        length, why = _STEPS_OF_HMC, f"for little noise: {percent(noise)} of the spread"
    else:
        length, why = _NOISY_STEPS, "default for class labels and counts"
        if pilot is not None:
            why, accept = f"default for noise of {percent(noise)} of the spread", _ACCEPT_OF_NOISE
    if sizes.is_large:
        affordable = int(_WORK_OF_CHAINS / (sizes.work * sizes.num_chains * 2 * _LEAST_WARMUP))
        if affordable < length:
            length = max(affordable, _FEWEST_STEPS)
            why = f"to limit the time of {sizes.num_chains} chains: N P = {sizes.work:.2g}"
    whitens = sizes.are_narrow(noise) and sizes.affords_whitening
    preconditioner: Preconditioner = "auto" if whitens else "diagonal"
    settings = HMC(
        num_leapfrog_steps=length, target_accept_prob=accept, preconditioner=preconditioner
    )
    return settings, f"{length} leapfrog steps ({why})"


class Budget(NamedTuple):
    """Planned time of a fit that ends when more draws no longer change predictions.

    Attributes:
        seconds: Seconds on two cores, with the full effort.
        search, chains: Shares of the search for starts, and of warm-up and draws.
    """

    seconds: float
    search: float
    chains: float

    @property
    def chain_seconds(self) -> float:
        """Core seconds that warm-up and draws of all chains may take."""
        return BUDGET_CORES * self.chains * self.seconds


def budget(sizes: FitSizes, is_short: bool = True) -> Budget | None:
    """Return the Budget of a fit, or None.

    None if the fit is not `FitOptions.is_short`, or has more rows than budgets are defined for.
    """
    for most, seconds in _BUDGETS if is_short and not sizes.is_infinite else ():
        if sizes.num_rows <= most:
            return Budget(seconds, *(_SHARES_OF_NARROW if sizes.has_many_rows else _SHARES))
    return None


def num_burnin_steps(sizes: FitSizes, gradients: int) -> tuple[int, str]:
    """Return (number of warm-up transitions, reason) for a kernel with `gradients` per transition."""
    if sizes.is_infinite:
        return _WARMUP_OF_SCALES, "chains start at the maximum, whitened by the curvature there"
    affordable = sizes.effort * _WARMUP_WORK / (sizes.work * gradients)
    told = f"N P = {sizes.work:.2g}, {gradients} gradient{'s' * (gradients > 1)} per step{sizes.effort_note}"
    usual = max(_LEAST_WARMUP, 50 * round(sizes.effort * _WARMUP / 50))
    if affordable >= usual:
        return usual, f"the usual number ({told})"
    # In steps of 50, so that neighbouring tables share compiled programs.
    return max(_LEAST_WARMUP, 50 * int(affordable / 50)), f"fewer than usual to save time ({told})"


def most_of_scales(effort: float) -> int:
    """Return the most draws per chain of the scales of a network of infinite width."""
    return max(FIRST_LOOK, round(effort * _MOST_OF_SCALES))


def pretraining(sizes: FitSizes, pilot: Array | None) -> tuple[Pretraining, str]:
    """Return (settings of the search for starts, reason)."""
    settings, why = _adam(sizes, pilot)
    noise = _noise_of(pilot)
    is_adam = noise >= _NEARLY_NO_NOISE or not sizes.has_particles
    if sizes.is_infinite or is_adam or sizes.effort < _EFFORT_OF_POLISH:
        return settings, why
    return replace(settings, num_particles=_PARTICLES), (
        f"two populations of {_PARTICLES} particles cooled from the prior, as N = {sizes.num_rows} rows "
        f"with noise of {noise:.2g} determine all P = {sizes.num_parameters} parameters"
    )


def _adam(sizes: FitSizes, pilot: Array | None) -> tuple[Pretraining, str]:
    """Return (settings of a search by ADAM and Levenberg-Marquardt, reason)."""
    if sizes.is_infinite:
        why = "there are no weights to train; chains start at the maximum of the evidence"
        return Pretraining(epochs=0, newton_iterations=0), why
    if sizes.num_rows < _FEW_ROWS:
        why = f"{_FEW_STEPS_OF_ADAM} steps; N = {sizes.num_rows} rows are too few to hold any out"
        return Pretraining(epochs=_FEW_STEPS_OF_ADAM, newton_iterations=0), why
    num_rows, batch_size = sizes.rows_of_search, _SMALLEST_BATCH
    while batch_size < min(_LARGEST_BATCH, num_rows / _BATCHES):
        batch_size *= 2
    batches = ceil(num_rows / batch_size)
    epochs = ceil(sizes.effort * _STEPS / batches)
    settings = Pretraining(epochs=epochs, batch_size=batch_size)
    taken = min(batch_size, num_rows)
    why = f"up to {epochs * batches} steps of {taken} rows out of N = {sizes.num_rows}"
    if sizes.is_large:
        settings = replace(settings, search_rows=num_rows)
        why = f"{why}, from a sample of {num_rows}"
    why += sizes.effort_note
    noise = _noise_of(pilot)
    is_narrow = sizes.are_narrow(noise)
    told = f"noise is {noise:.2g} of the spread"
    is_small = pilot is not None and not sizes.is_large
    if is_small and noise >= _MOSTLY_NOISE and sizes.has_many_rows:
        why = f"{_MORE_STEPS} times {why}, none held out; no Levenberg-Marquardt, as {told}"
        return long_adam(settings), why
    if is_narrow:
        why = f"{why}, none held out"
    else:
        patience = ceil(_PATIENCE * epochs)
        share = _held_out_share(sizes.num_rows)
        settings = replace(settings, early_stopping=patience, validation_split=share)
    if sizes.effort < _EFFORT_OF_POLISH:
        settings, why = replace(settings, newton_iterations=0), f"{why}; no Levenberg-Marquardt"
    if pilot is None:
        return settings, why
    if noise < _MOSTLY_NOISE and not sizes.is_large:
        limit = max(_FAILED_BY * noise, _FAILED)
        settings = replace(settings, largest_misfit=float(f"{limit:.2g}"))
    if (noise < _NEARLY_NO_NOISE or is_narrow) and sizes.work <= _MOST_WORK_OF_MANY:
        num_starts = max(1, round(_STARTS_PER_CHAIN * sizes.effort)) * sizes.num_chains
        settings = replace(settings, num_starts=num_starts)
        why = f"{num_starts} starts, {why}"
    if settings.newton_iterations == 0:
        return settings, why
    if sizes.is_large:  # at ten rows per weight it does not follow single rows
        return settings, f"{why}; then Levenberg-Marquardt, finally on all rows"
    if noise < _MOSTLY_NOISE:
        return settings, f"{why}; then Levenberg-Marquardt, as {told}"
    return replace(settings, newton_iterations=0), f"{why}; no Levenberg-Marquardt, as {told}"


def long_adam(settings: Pretraining) -> Pretraining:
    """Return settings of ADAM for a full schedule that no Levenberg-Marquardt follows.

    Compared with a constant rate and early stopping, the error of networks of 50-50 on new rows of
    airfoil was .95, not 1.26, and 50 units with input-dependent noise scored -4.46 per row on bikes, not
    -4.56.
    """
    return replace(
        settings,
        epochs=_MORE_STEPS * settings.epochs,
        learning_rate=0.01,
        learning_rate_schedule="cosine",
        early_stopping=None,
        newton_iterations=0,
    )


def _noise_of(pilot: Array | None) -> float:
    """Return the largest noise of the targets; class labels count as noisy."""
    return 1.0 if pilot is None else float(np.max(pilot))


def _held_out_share(num_rows: int) -> float:
    """Return the share of rows held out to score starts, to three digits."""
    share = max(_HELD_OUT, min(_FEWEST_HELD_OUT / num_rows, _LARGEST_SHARE))
    return float(f"{min(share, _MOST_HELD_OUT / num_rows):.3g}")


def calibrate(learns_noise: bool, num_rows: int) -> tuple[bool, str]:
    """Choose whether a fit to numeric targets ends with a calibration by its own rows."""
    if not learns_noise:
        return False, "the noise was given, and the error bars follow from it"
    if num_rows < _FEWEST_CALIBRATING:
        return False, f"{num_rows} rows are too few, calibration needs {_FEWEST_CALIBRATING}"
    return True, "the noise is learned, and a poor fit would otherwise look like noise"
