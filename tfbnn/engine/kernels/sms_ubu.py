"""Mini-batch sampling: kinetic Langevin dynamics in symmetric sweeps over batches (SMS-UBU)."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, Self

from tfbnn.data.validation import check_flag, check_number
from tfbnn.engine.basis.libraries import Results, Tensor, tf
from tfbnn.engine.kernels.batch_sweeps import SweepKernel
from tfbnn.engine.kernels.transition import (
    TransitionKernel,
    TransitionStatistics,
    ratio_statistics,
)
from tfbnn.engine.kernels.tuned import TunedKernel
from tfbnn.engine.kernels.unadjusted import (
    ERROR_TARGET,
    bias_by_tolerance,
    check_bias_tolerance,
    with_error_as_acceptance,
)
from tfbnn.spec.sampled import Sampled, model_of
from tfbnn.system.arrays import Array

# What the published energy variance of microcanonical Langevin stands for.
_BIAS = 0.05
# Of a sweep, in passes over all rows: there, back, and the density at its end.
_PASSES = 3


def error_growth(time: Tensor, friction: float) -> Tensor:
    """About E[error^2] / (P b^2) of a sweep that lasts so long, b the error of the variances; no more.

    1 - r^2 is by how much a position in a normal density of variance 1 is forgotten, r its autocorrelation;
    the rest is of the heat that friction exchanges during a flight. Of an oscillator, whose b is
    -step_size^2 / 6, with frictions of 0.5 to 1.5, the mean is 3 times as large in sweeps that last 0.1,
    2.2 to 2.5 times in those of 0.4, and 1.0 to 1.2 times from 4 on.
    """
    half = 0.5 * friction
    frequency = sqrt(1.0 - half**2)
    wave = tf.cos(frequency * time) + half / frequency * tf.sin(frequency * time)
    return 1.0 - (tf.exp(-half * time) * wave) ** 2 + 0.4 * friction * time


@dataclass(frozen=True, kw_only=True)
class SMSUBU(TunedKernel, name="sms_ubu"):
    """Mini-batches: kinetic Langevin dynamics in symmetric sweeps over batches of rows. Draws are biased.

    Rows are put into `num_batches` batches, at random, once. A transition is one sweep: it visits all
    batches in a new random order, then in the reverse order, each with one UBU step, which is half a
    free flight with friction, a kick by the gradient of the whole log prior plus `num_batches` times the
    log likelihood of the batch, and the other half. Nothing is accepted or rejected, but a sweep that
    diverges is undone. A sweep costs two passes over the rows however many batches there are, and one
    without gradients for the log density and energy error at its end: `n_steps` is 3.

    With control variates a batch's gradient has its difference to the mean of all batches taken out, as
    it is where the kernel started last: at the start, and at the ends of the windows of warm-up. The parts
    still add up to the log density, so that nothing but the noise changes. What is left of it grows with the
    distance from there. Corrections take num_batches P numbers per chain.

    The step size is found from the energy error of whole sweeps: by how much the log density of all rows
    has changed otherwise than the gradients along the way say. Kinetic energies do not enter, as friction
    changes them within a flight by more than the error of the scheme is. Where the target is normal and
    batches agree, the bias follows from it (`error_growth`). What batches differ by adds to it: of a linear
    model the step found for 0.3 was 0.25, for which the scheme itself is off by 0.01.

    Sweeps are no cheaper than HMC for being made of batches: with 5-8-1 on 40 000 rows HMC made an
    effective draw of predictions in 28 passes over the rows, sweeps in 121 at a tolerance of 0.2 and in 259
    at 0.05 (`benchmarks/results/sms_ubu.md`). Prefer kernel="hmc" wherever it is affordable.

    Rows of earlier fits (`priors.FromPosterior`) are prior: every step takes all of them.

    Attributes:
        num_batches: Batches that the rows are put into; default 16. A sweep makes two steps for each
            of them, in the same two passes over the rows.
        friction: Rate at which velocities are forgotten, in preconditioned coordinates; default 1.
            Below 2, where directions of unit variance are damped critically.
        control_variates: Take from every batch's gradient what it differs by at a fixed point; default
            True. False is the published scheme.
        bias_tolerance: The share by which variances may be off, root mean square over principal
            directions of a normal density; None (default): 0.05, if the step size adapts. It is the step
            size that is adapted, and what stands for the energy error that is aimed at.

    The other attributes are described in `TunedKernel`.

    Raises:
        ValueError: For fewer rows than batches, and for a log density, which has no rows.

    References:
        Paulin, Whalley, Chada and Leimkuhler 2024, arXiv:2410.19780, without control variates. Robnik,
        Cohn-Gordon and Seljak 2024, arXiv:2412.08876, for the bias by the energy error, of single steps
        with all rows.
    """

    num_batches: int = 16
    friction: float = 1.0
    control_variates: bool = True
    bias_tolerance: float | None = None

    gradients_per_transition = _PASSES
    accept_targets = (ERROR_TARGET, ERROR_TARGET)
    theta_obstacle = "its batches need a likelihood that is a sum over rows"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_integer("num_batches", minimum=1)
        check_number("friction", self.friction, above=0, below=2)
        check_flag("control_variates", self.control_variates)
        check_bias_tolerance(self, False, self.bias_tolerance)

    @property
    def aimed_bias(self) -> float:
        """The error of variances that the step size adapts to."""
        return _BIAS if self.bias_tolerance is None else self.bias_tolerance

    def accept_target(self, spec: Sampled) -> tuple[float, str]:
        """What stands in place of an acceptance rate, and for what."""
        target, why = super().accept_target(spec)
        if self.target_accept_prob is not None:
            return target, why
        return target, f"stands for variances within {self.aimed_bias:.2g} of themselves"

    @property
    def bias_note(self) -> str:
        """The line that all reports carry."""
        error = bias_by_tolerance(
            self.aimed_bias if self.adapts else None, "of the order of step_size^2"
        )
        return (
            "BIASED draws: every step takes a batch of the rows and none is rejected, so the draws follow "
            f"the posterior only up to an error {error}, which no diagnostic here sees. Compare with a "
            "run at half the step size, or with kernel='hmc'."
        )

    def check_model(self, spec: Sampled, row_noise: bool) -> None:
        """Refuses a log density, which has no rows."""
        super().check_model(model_of(spec, type(self).__name__), row_noise)

    def resolve(self, spec: Sampled, num_rows: int) -> tuple[Self, str]:
        """As in `TunedKernel`; refuses fewer rows than batches."""
        if num_rows < self.num_batches:
            raise ValueError(
                f"SMSUBU needs a row for each of its num_batches={self.num_batches}, received {num_rows} "
                "rows. Use fewer batches, or kernel='hmc', which takes all rows."
            )
        return super().resolve(spec, num_rows)

    def gains_from_xla(self, spec: Sampled, num_rows: int) -> bool:
        """No: a sweep over 5 batches of 40 rows took 200 ms on a CPU under XLA, 2 ms without."""
        del spec, num_rows
        return False

    def first_step_size(self, leapfrog_step: Array, num_parameters: int) -> Array:
        """Such that a sweep, two steps a batch, lasts as long as two leapfrog steps."""
        return leapfrog_step / leapfrog_step.dtype.type(self.num_batches)

    def build(self, target_log_prob_fn: Any, step_size: Tensor) -> TransitionKernel:
        """The kernel; `step_size` has shape [C, 1]."""
        return SweepKernel(
            target_log_prob_fn, step_size, self.num_batches, self.friction, self.control_variates
        )

    def statistics(self, results: Results) -> TransitionStatistics:
        """Statistics of the last transition."""
        ratio = results.log_accept_ratio
        time = 2.0 * self.num_batches * results.step_size[:, 0]
        aim = self.aimed_bias**2 * error_growth(time, self.friction)
        statistics = ratio_statistics(ratio, tf.fill(ratio.shape, _PASSES))
        return with_error_as_acceptance(statistics, ratio, results.velocity.shape[-1], aim)
