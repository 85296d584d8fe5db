"""What is wrong between a model and its data, by how much, and what to do next.

Convergence says nothing about this: chains agree perfectly on a network that its prior, its noise
or the scale of its data keeps from following the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tfbnn.diagnostics.fit_check import (
    LEVELS,
    ROUNDING,
    ClassesCheck,
    FitCheck,
    InputCheck,
    NumbersCheck,
    RowsCheck,
    TargetCheck,
)
from tfbnn.diagnostics.problem import LONGER_SEARCH, Problem, Remedy, Spoils, verdict_of
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.diagnostics.wording import percent, shown

_COVERAGE_LIMIT = 0.1
# Networks are made for numbers of order one.
_FAR, _NEAR = 10.0, 0.01
# A noise scale that is wrong by less than this may be right for other rows.
_NOISE_RATIO = 2.0
# Priors have two and one in a thousand of the weights there, a well-placed posterior about as many.
_EDGE_LIMIT, _TAIL_LIMIT = 0.1, 0.02
# Networks of the prior whose outputs vary less than this share of what the targets do.
_NARROW = 0.2
_LITTLE = 0.05
_JUDGE = Remedy("model.evaluate(x_held_out, y_held_out)")
_CALIBRATE = Remedy("model.calibrate with rows that the fit has not seen, or with method='loo'")
_OTHER_NOISE = Remedy(f"likelihood=StudentT() or HeteroscedasticGaussian(), or {_CALIBRATE.text}")
_WIDE = "Chains that disagree widen them, and so does a posterior that is far from normal."
_NARROW_BARS = "The noise has other tails than the likelihood, or is larger for some rows."


def find_misfits(fit: FitCheck | None) -> tuple[Problem, ...]:
    """What keeps a model from following its data."""
    if fit is None:
        return ()
    rows = fit.rows
    # Where the predictions follow the rows all the same, it is worth a word and spoils nothing.
    severity = Spoils.NOTHING if rows is None or rows.explains else Spoils.MEANS
    causes = [*_unscaled_targets(rows, severity), *_unscaled_inputs(fit.inputs, severity)]
    causes += _wrong_noise(rows)
    if not verdict_of(causes):  # else a narrow prior looks the same
        causes += _narrow_prior(fit, severity)
    return tuple(causes)


def find_effects(fit: FitCheck | None) -> tuple[Problem, ...]:
    """What the predictions of the training rows fall short of; misfits would explain it."""
    if fit is None:
        return ()
    rows, found = fit.rows, fit.predictions
    # Rows that calibrated nothing decide, where there are enough of them.
    coverage: Iterable[Problem] = ()
    if found.ok is False:
        coverage = [_failing_bars(found)]
    elif found.ok is None and not fit.is_calibrated:
        coverage = _wrong_coverage(rows)
    return (*_unknown_rows(rows), *coverage, *_little_explained(rows))


def _failing_bars(found: Predictions) -> Problem:
    """Error bars that do not hold on rows that calibrated nothing."""
    is_wide = found.coverage[1] > LEVELS[0]
    name = f" of {shown(found.target)}" if found.target else ""
    return Problem(
        f"The error bars{name} are too {'wide' if is_wide else 'narrow'} on {found.num_rows} "
        f"{found.source}",
        f"{found.text}. {_WIDE if is_wide else _NARROW_BARS}",
        _CALIBRATE if is_wide or found.is_calibrated else _OTHER_NOISE,
        Spoils.ERROR_BARS,
    )


def _targets(rows: RowsCheck | None) -> tuple[TargetCheck, ...]:
    return rows.targets if isinstance(rows, NumbersCheck) else ()


def _is_far(mean: float, stddev: float) -> bool:
    # A column without any spread is constant, which is said elsewhere.
    is_constant = stddev <= ROUNDING * abs(mean)
    return abs(mean) > _FAR or stddev > _FAR or (stddev < _NEAR and not is_constant)


def _unscaled_targets(rows: RowsCheck | None, severity: Spoils) -> Iterator[Problem]:
    far = [target for target in _targets(rows) if _is_far(target.mean, target.stddev)]
    for target in far[:1]:
        yield Problem(
            f"The targets are not scaled: {shown(target.name)} has mean {target.mean:.3g} and standard "
            f"deviation {target.stddev:.3g} where the network expects about 0 and 1 (R2 "
            f"{target.r2:.2g})",
            "Weights of order one cannot reach such numbers, and the prior holds them there.",
            Remedy("y_transform='standardize'"),
            severity,
        )


def _unscaled_inputs(inputs: InputCheck, severity: Spoils) -> Iterator[Problem]:
    if _is_far(inputs.mean, inputs.stddev):
        yield Problem(
            f"The inputs are not scaled: {shown(inputs.name)} has mean {inputs.mean:.3g} and standard "
            f"deviation {inputs.stddev:.3g} where the network expects about 0 and 1",
            "Hidden units saturate: they are constant over the rows.",
            Remedy("x_transform='standardize'"),
            severity,
        )


def _wrong_noise(rows: RowsCheck | None) -> Iterator[Problem]:
    """Noise that is given and far from the residuals."""
    if not isinstance(rows, NumbersCheck) or rows.noise == "learned":
        return
    given = "the noise_scale of the rows" if rows.noise == "rows" else "the fixed noise_scale"
    for target in rows.targets:
        name, severity = shown(target.name), Spoils.ERROR_BARS if target.r2 >= 0.5 else Spoils.MEANS
        # Where the network follows the rows closely, its spread is what the residuals have lost.
        expected = float(np.hypot(target.residual, target.spread))
        if target.residual > _NOISE_RATIO * target.noise:
            yield Problem(
                f"The noise is too small: the residuals of {name} are "
                f"{target.residual / target.noise:.2g} times {given} (pull width "
                f"{target.pull_width:.2g})",
                "Or the network cannot follow the rows. Either way the error bars are too small.",
                Remedy(
                    "check the noise, or likelihood=Gaussian('learned'), which adds what is missing"
                ),
                severity,
            )
            return
        if target.noise > _NOISE_RATIO * expected:
            yield Problem(
                f"The noise is too large: {given} is {target.noise / expected:.2g} times the "
                f"residuals of {name} (R2 {target.r2:.2g}, pull width {target.pull_width:.2g})",
                "The rows then say too little, and the network keeps near its prior.",
                Remedy(
                    "check noise_scale: standard deviations, in the units of y"
                    if rows.noise == "rows"
                    else "check noise_scale: a standard deviation, after y_transform; or 'learned'"
                ),
                severity,
            )
            return


def _narrow_prior(fit: FitCheck, severity: Spoils) -> Iterator[Problem]:
    prior, rows = fit.prior, fit.rows
    # Wider than one whose scales are sampled, too: those of the default have a lighter tail.
    wider = Remedy("a wider prior, such as prior=HierarchicalNormal(HalfCauchy(1.0))")
    if prior.at_edge > _EDGE_LIMIT:
        yield Problem(
            f"The prior is too narrow: {percent(prior.at_edge)} of the weights lie at an edge of its "
            f"range{_explained(rows)}",
            "The data pull the weights beyond what the prior allows.",
            wider,
            max(severity, Spoils.ERROR_BARS),
        )
    elif prior.in_tail > _TAIL_LIMIT:
        yield Problem(
            f"The prior is too narrow: {percent(prior.in_tail)} of the weights lie in its outermost "
            f"0.1 %{_explained(rows)}",
            "The data pull the weights beyond what the prior expects.",
            wider,
            severity,
        )
    elif prior.spread < _NARROW * _spread_wanted(rows):
        yield Problem(
            "The prior is too narrow: networks drawn from it vary over the inputs by "
            f"{prior.spread:.2g}, the targets by {_spread_wanted(rows):.2g}{_explained(rows)}",
            "The network is held near a constant, and the noise takes what it cannot follow.",
            wider,
            severity,
        )


def _spread_wanted(rows: RowsCheck | None) -> float:
    """How much the outputs have to vary over the rows; 0 where that is not to be asked."""
    if rows is None or rows.explains:
        return 0.0
    # Logits of order one are probabilities that differ.
    return 1.0 if isinstance(rows, ClassesCheck) else max(t.stddev for t in rows.targets)


def _explained(rows: RowsCheck | None) -> str:
    if rows is None:
        return ""
    if isinstance(rows, ClassesCheck):
        return f" (accuracy {percent(rows.accuracy)})"
    return f" (R2 {min(target.r2 for target in rows.targets):.2g})"


def _unknown_rows(rows: RowsCheck | None) -> Iterator[Problem]:
    if rows is None:
        yield Problem(
            "The predictions were not compared with the training rows",
            "Files of earlier releases do not say how well they agree.",
            _JUDGE,
            Spoils.ERROR_BARS,
        )


def _wrong_coverage(rows: RowsCheck | None) -> Iterator[Problem]:
    if isinstance(rows, ClassesCheck):
        if not rows.calibration_error <= _COVERAGE_LIMIT:  # nor is an unknown one within
            yield Problem(
                f"Predicted probabilities are off by {100 * rows.calibration_error:.0f} percentage "
                "points on average, on the training rows",
                "That is the expected calibration error.",
                _JUDGE,
                Spoils.ERROR_BARS,
            )
        return
    targets = sorted(_targets(rows), key=lambda target: -target.coverage_error)
    for target in targets[:1]:
        if np.isnan(target.coverage_error):
            yield Problem(
                f"The intervals of {shown(target.name)} cannot be judged by the training rows",
                "The network follows nearly every row by itself: there are few rows per weight, and "
                "little noise.",
                _JUDGE,
                Spoils.ERROR_BARS,
            )
        elif target.coverage_error > _COVERAGE_LIMIT:
            errors = [share - level for share, level in zip(target.coverage, LEVELS)]
            worst = int(np.argmax(np.abs(errors)))
            wide = errors[worst] > 0
            yield Problem(
                f"The intervals of {shown(target.name)} are too {'wide' if wide else 'narrow'}: those of "
                f"{percent(LEVELS[worst])} hold {percent(target.coverage[worst])} of the training "
                f"rows, each as if left out (pull width {target.pull_width:.2g})",
                _WIDE if wide else _NARROW_BARS,
                _CALIBRATE if wide else _OTHER_NOISE,
                Spoils.ERROR_BARS,
            )


def _little_explained(rows: RowsCheck | None) -> Iterator[Problem]:
    if isinstance(rows, ClassesCheck) and not rows.explains:
        yield Problem(
            f"{percent(rows.accuracy)} of the training rows are classified right, no more than "
            f"{percent(rows.majority)} by always saying the most frequent label",
            "The inputs may not tell the classes apart.",
            _JUDGE,
            Spoils.NOTHING,
        )
    for target in sorted(_targets(rows), key=lambda target: target.r2)[:1]:
        if target.r2 < -_LITTLE:
            yield Problem(
                f"The predictions of {shown(target.name)} are worse than its mean (R2 {target.r2:.2g})",
                "The chains may not have come to where the data are.",
                Remedy(f"{LONGER_SEARCH}, or more num_burnin_steps"),
                Spoils.MEANS,
            )
        elif target.r2 < _LITTLE:
            yield Problem(
                f"The predictions of {shown(target.name)} explain next to nothing of the training rows "
                f"(R2 {target.r2:.2g})",
                "The inputs may not determine the target.",
                _JUDGE,
                Spoils.NOTHING,
            )
