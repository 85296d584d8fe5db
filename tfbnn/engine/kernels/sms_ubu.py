"""Mini-batch sampling: kinetic Langevin dynamics in symmetric sweeps over batches (SMS-UBU)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from tfbnn.data.validation import check_choice, check_number
from tfbnn.engine.basis.libraries import Results, Tensor, tf
from tfbnn.engine.kernels.batch_sweeps import SweepKernel
from tfbnn.engine.kernels.transition import (
    TransitionKernel,
    TransitionStatistics,
    ratio_statistics,
)
from tfbnn.engine.kernels.tuned import TunedKernel
from tfbnn.engine.kernels.unadjusted import (
    bias_by_tolerance,
    check_bias_tolerance,
)
from tfbnn.exceptions import StartError
from tfbnn.spec.density_spec import Sampled, model_of
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.system.arrays import Array

# Mean of `calmness` that adaptation aims at: normal errors of the largest size that is allowed have 0.538,
# and chance in the step size shall not carry variances beyond the tolerance.
_TARGET = 0.55
# Of a linear model variances are 0.07 off at this tolerance (benchmarks/results/sms_ubu.md).
_BIAS = 0.1
# Of a sweep, in passes over all rows: there, back, and the density at its end.
_PASSES = 3
# Numbers that second derivatives of all batches may take per chain: 16 MB by default, which are in every
# checkpoint, and 256 MB if they are asked for.
_MOST_NUMBERS, _MOST_ASKED_FOR = 2**22, 2**26
ControlVariates: TypeAlias = Literal["auto", "hessian", "gradient", "none"]
# How many derivatives they take, when "auto" is resolved.
_ORDERS: dict[str, int] = {"hessian": 2, "gradient": 1, "none": 0}


def error_growth(time: Tensor, friction: float) -> Tensor:
    """About E[error^2] / (P b^2) of a sweep that lasts so long, b the error of the variances; no more.

    1 - r^2 is by how much a position in a normal density of variance 1 is forgotten, r its autocorrelation;
    the rest is of the heat that friction exchanges during a flight. Of an oscillator, whose b is
    -step_size^2 / 6, with frictions of 0.12 to 1.5, the mean is 3 times as large in sweeps that last 0.1,
    2.2 to 2.4 times in those of 0.4, 1.2 to 2 times in those of 1.6 and 1.0 to 1.6 times from 4 on.
    """
    half = 0.5 * friction
    frequency = sqrt(1.0 - half**2)
    wave = tf.cos(frequency * time) + half / frequency * tf.sin(frequency * time)
    return 1.0 - (tf.exp(-half * time) * wave) ** 2 + 0.4 * friction * time


def calmness(error: Tensor, aim: Tensor) -> Tensor:
    """What stands for an acceptance rate: 1 / (1 + |error / aim|^(1/4)), which changes slowly with the step.

    Errors grow as the square of the step or faster, and differ from sweep to sweep. A statistic that one
    of them throws from one to zero has dual averaging try steps of ten times the right size, and one such
    sweep can carry a chain so far off that batches differ too much for any step.
    """
    return 1.0 / (1.0 + tf.abs(error / aim) ** 0.25)


@dataclass(frozen=True, kw_only=True)
class SMSUBU(TunedKernel, name="sms_ubu"):
    """Mini-batches: kinetic Langevin dynamics in symmetric sweeps over batches of rows. Draws are biased.

    Rows are put into `num_batches` batches, at random, once. A transition is one sweep: it visits all
    batches in a new random order, then in the reverse order, each with one UBU step, which is half a
    free flight with friction, a kick by the gradient of the whole log prior plus `num_batches` times the
    log likelihood of the batch, and the other half. Nothing is accepted or rejected, but a sweep that
    diverges is undone. A sweep costs two passes over the rows however many batches there are, and one
    without gradients for the log density and energy error at its end: `n_steps` is 3.

    Control variates take out of a batch's gradient what it differs by from the mean of all batches, as it
    is around one point: the start, and then the mean position of the last window of warm-up, if its length
    and the preconditioner make windows. The parts still add up to the log density, so that nothing but the
    noise changes. With second derivatives what is left of it grows with the square of the distance from
    there. They matter: in directions that the rows hardly determine, the sums of residuals times second
    derivatives of the network are noise alone, which the Gauss-Newton matrix knows nothing of. Of 5-8-1 on
    40 000 rows the noise of the gradients at draws of the posterior is 9.0 per whitened coordinate without
    control variates, 5.1 with first and 0.34 with second derivatives, where the gradient itself is 1.7. An
    effective draw of predictions takes 3.1 passes over these rows, with HMC 27; with first derivatives
    alone, or none, more than 150 (`benchmarks/results/sms_ubu.md`). That is one network on one table, whose
    posterior is narrow: prefer HMC where rows are few.

    The step size is found from the energy error of whole sweeps: by how much the log density of all rows
    has changed otherwise than the gradients along the way say. Kinetic energies do not enter, as friction
    changes them within a flight by more than the error of the scheme is. Where the target is normal and
    batches agree, the bias follows from it (`error_growth`). What batches differ by adds to it.

    Rows of earlier fits (`priors.FromPosterior`) are prior: every step takes all of them.

    Attributes:
        num_batches: Batches that the rows are put into; default 32. A sweep makes two steps for each
            of them, in the same two passes over the rows.
        friction: Rate at which velocities are forgotten, in preconditioned coordinates; default 0.25.
            Below 2, where directions of unit variance are damped critically.
        control_variates: "hessian": take from every batch's gradient what it and its second derivatives
            differ by at a fixed point; "gradient": its gradient alone; "none": the published scheme. "auto"
            (default) means "hessian" for perceptrons without rows of earlier fits, while num_batches P^2
            numbers per chain are at most 2^22, else "gradient"; what is asked for may be 2^26. Second
            derivatives of all rows cost about as much as 2 P gradients, at the start and after every window,
            which `n_steps` does not count: 724 passes for 362 parameters.
        bias_tolerance: The share by which variances may be off, root mean square over principal
            directions of a normal density; None (default): 0.1, if the step size adapts. It is the step
            size that is adapted, and what stands for the energy error that is aimed at.

    The other attributes are described in `TunedKernel`.

    Raises:
        ValueError: For fewer rows than batches, for a log density, which has no rows, and for second
            derivatives that are asked for of other models, of rows of earlier fits, or of too many
            parameters.
        StartError: When batches differ by what is not finite where they are compared.

    References:
        Paulin, Whalley, Chada and Leimkuhler 2024, arXiv:2410.19780, without control variates. Robnik,
        Cohn-Gordon and Seljak 2024, arXiv:2412.08876, for the bias by the energy error, of single steps
        with all rows.
    """

    num_batches: int = 32
    friction: float = 0.25
    control_variates: ControlVariates = "auto"
    bias_tolerance: float | None = None

    gradients_per_transition = _PASSES
    accept_targets = (_TARGET, _TARGET)
    theta_obstacle = "its batches need a likelihood that is a sum over rows"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_integer("num_batches", minimum=1)
        check_number("friction", self.friction, above=0, below=2)
        check_choice("control_variates", self.control_variates, get_args(ControlVariates))
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
        settings, why = super().resolve(spec, num_rows)
        if self.control_variates == "auto":
            obstacle = self._hessian_obstacle(spec, _MOST_NUMBERS)
            chosen: ControlVariates = "gradient" if obstacle else "hessian"
            return replace(settings, control_variates=chosen), why
        if self.control_variates == "hessian":
            obstacle = self._hessian_obstacle(spec, _MOST_ASKED_FOR)
            if obstacle:
                raise ValueError(
                    f"SMSUBU(control_variates='hessian') {obstacle}. Use control_variates='gradient'."
                )
        return settings, why

    def _hessian_obstacle(self, spec: Sampled, most_numbers: int) -> str | None:
        """Why second derivatives of batches are not taken, or None."""
        if not isinstance(spec, ModelSpec):
            return "is about perceptrons, received another model"
        if spec.earlier is not None:
            return "would have all copies of the rows of earlier fits in memory at once"
        needed = self.num_batches * spec.num_parameters**2
        if needed > most_numbers:
            return (
                f"must keep at most {most_numbers:.3g} numbers per chain, and would keep {needed:.3g} "
                f"for num_batches={self.num_batches} and P = {spec.num_parameters}"
            )
        return None

    def work_of_a_start(self, spec: Sampled) -> float:
        """That of the derivatives by which batches are compared."""
        passes = {"hessian": 2.0 * spec.num_parameters + 1.0, "gradient": 1.0, "none": 0.0}
        return passes[self.control_variates]

    def check_start(self, results: Results, chains: Sequence[int] | Array) -> None:
        """Refuses what no sweep could be made with."""
        for part in (results.correction.shift, results.correction.bend):
            of_all = tuple(axis for axis in range(len(part.shape)) if axis != 1)
            for chain, fine in zip(chains, np.isfinite(part.numpy()).all(axis=of_all)):
                if not fine:
                    raise StartError(
                        f"Derivatives of batches are not finite where chain {chain} compares them. Use "
                        "SMSUBU(control_variates='none'), or a narrower prior."
                    )

    @property
    def takes_batches(self) -> bool:
        """Yes; XLA makes the loop over them many times faster, if it compiles it as a whole."""
        return True

    @property
    def compares_batches(self) -> bool:
        """Yes, for control variates."""
        return self.control_variates != "none"

    def first_step_size(self, leapfrog_step: Array, num_parameters: int) -> Array:
        """A fifth of what has a sweep, two steps a batch, last as long as two leapfrog steps.

        Dual averaging begins with ten times as much, and a step that is too long costs more than time.
        """
        return leapfrog_step / leapfrog_step.dtype.type(5.0 * self.num_batches)

    def build(self, target_log_prob_fn: Any, step_size: Tensor) -> TransitionKernel:
        """The kernel; `step_size` has shape [C, 1]."""
        return SweepKernel(
            target_log_prob_fn,
            step_size,
            self.num_batches,
            self.friction,
            _ORDERS[self.control_variates],
        )

    def statistics(self, results: Results) -> TransitionStatistics:
        """Statistics of the last transition."""
        ratio = results.log_accept_ratio
        time = 2.0 * self.num_batches * results.step_size[:, 0]
        size = results.velocity.shape[-1]
        aim = self.aimed_bias * tf.sqrt(size * error_growth(time, self.friction))
        statistics = ratio_statistics(ratio, tf.fill(ratio.shape, _PASSES))
        return statistics._replace(acceptance_rate=calmness(ratio, aim))
