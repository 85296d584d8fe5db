"""Problems between a model and its data: what they are, their size, and the next step.

Convergence says nothing about these. Chains can agree perfectly on a network that does not follow
the rows because of its prior, its noise or the scale of its data.
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
    pulled,
)
from tfbnn.diagnostics.problem import Problem, Remedy, Severity, verdict_of
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.diagnostics.wording import percent, shown

_COVERAGE_LIMIT = 0.1
# Networks are made for numbers of order one.
_FAR, _NEAR = 10.0, 0.01
# A noise scale that is wrong by less than this may be right for other rows.
_NOISE_RATIO = 2.0
# The prior has two hundredths of the weights at its edges and a thousandth in its tail, a well-placed
# posterior about as many.
_EDGE_LIMIT, _TAIL_LIMIT = 0.1, 0.02
# A prior is narrow if outputs of its networks vary less than this share of the targets' variation.
_NARROW = 0.2
_LITTLE = 0.05
# Name of the noise of each origin, and its units.
_GIVEN_NOISE = {
    "rows": ("the noise_scale of the rows", "standard deviations, in the units of y"),
    "fixed": ("the fixed noise_scale", "a standard deviation, after y_transform; or 'learned'"),
}
_LEARN_NOISE = Remedy(
    "check the noise, or use likelihood=Gaussian('learned'), which adds the missing noise"
)
_SCATTER = Remedy(
    "likelihood=NegativeBinomial(), unless it is in use, or inputs that explain how rates scatter"
)
_LESS_SCATTER = Remedy("longer chains, or likelihood=Poisson(), whose counts scatter least")
# Pull width from which on bars that are too wide are no larger than residuals.
_OF_TAILS = 0.95
# Standard errors by which the variance of counts has to be above that of the likelihood.
_SCATTERED = 4.0
# Wider than the default, too, whose sampled scales have a lighter tail.
_WIDER = Remedy("a wider prior, such as prior=HierarchicalNormal(HalfCauchy(1.0))")
_JUDGE = Remedy("model.evaluate(x_held_out, y_held_out)")
_CALIBRATE = Remedy("model.calibrate with rows that the fit has not seen, or with method='loo'")
_OTHER_NOISE = Remedy(f"likelihood=StudentT() or HeteroscedasticGaussian(), or {_CALIBRATE.text}")
_WIDE = "Chains that disagree widen them, and so does a posterior that is far from normal."
_NARROW_BARS = "The noise has other tails than the likelihood, or is larger for some rows."


def find_misfits(fit: FitCheck) -> list[Problem]:
    """Find the problems that keep a model from following its data."""
    rows = fit.rows
    # If the predictions follow the rows all the same, a misfit is only a remark.
    severity = Severity.NOTHING if rows is None or rows.explains else Severity.MEANS
    causes = [
        *[*_unscaled("targets", _targets(rows), fit, severity)][:1],
        *_unscaled("inputs", filter(None, [fit.inputs]), fit, severity),
        *[*_wrong_noise(rows)][:1],
    ]
    if not verdict_of(causes):  # other causes look like a narrow prior
        causes += _narrow_prior(fit, severity)
    return causes


def find_effects(fit: FitCheck) -> Iterator[Problem]:
    """Yield the shortcomings of the predictions of the training rows, which misfits would explain."""
    rows, found = fit.rows, fit.predictions
    if rows is None:
        yield Problem(
            "The predictions were not compared with the training rows",
            _JUDGE,
            why="Files of earlier releases do not say how well they agree.",
        )
    # Rows that calibrated nothing decide, if there are enough of them.
    if found.ok is False:
        yield _wrong_bars(rows, found)
    elif found.ok is None and not fit.is_calibrated:
        yield from _wrong_coverage(rows, found.why)
    yield from _little_explained(rows)


def _wrong_bars(rows: RowsCheck | None, found: Predictions) -> Problem:
    name = f" of {shown(found.target)}" if found.target else ""
    on = f"on {found.num_rows} {found.source}"
    if found.shares_hold and not _is_of_counts(rows):
        return Problem(
            f"Targets{name} are distributed otherwise than predicted {on}, though 1 and 2 sigma hold",
            _CALIBRATE,
            why=f"{found.text}. They are skewed, or shifted from the mean.",
        )
    is_wide = found.is_wide
    # Noise with heavier tails has the width of the likelihood's, and more rows near the middle.
    has_tails = is_wide and found.pull_width > _OF_TAILS and not found.is_calibrated
    if has_tails and not _is_of_counts(rows):
        return Problem(
            f"The 68 % intervals{name} are too wide {on}, though residuals are as large as predicted",
            _OTHER_NOISE,
            why=f"{found.text}. {_NARROW_BARS}",
        )
    return Problem(
        f"The error bars{name} are too {'wide' if is_wide else 'narrow'} {on}",
        _remedy_of_bars(rows, is_wide, found.is_calibrated),
        why=f"{found.text}. {_WIDE if is_wide else _NARROW_BARS}",
    )


def _is_of_counts(rows: RowsCheck | None) -> bool:
    return isinstance(rows, NumbersCheck) and rows.noise == "counts"


def _targets(rows: RowsCheck | None) -> tuple[TargetCheck, ...]:
    """Return the targets that have to be of order one, which does not apply to counts."""
    return rows.targets if isinstance(rows, NumbersCheck) and not _is_of_counts(rows) else ()


def _unscaled(
    what: str, columns: Iterable[TargetCheck | InputCheck], fit: FitCheck, severity: Severity
) -> Iterator[Problem]:
    """Yield inputs or targets far from mean 0 and standard deviation 1."""
    for one in columns:
        # A column without any spread is constant, which is reported elsewhere.
        is_constant = one.stddev <= ROUNDING * abs(one.mean)
        if abs(one.mean) > _FAR or one.stddev > _FAR or (one.stddev < _NEAR and not is_constant):
            yield Problem(
                f"The {what} are not scaled: {shown(one.name)} has mean {one.mean:.3g} and standard "
                f"deviation {one.stddev:.3g} where the network expects about 0 and 1"
                f"{_explained(fit.rows)}",
                Remedy(f"{'x' if what == 'inputs' else 'y'}_transform='standardize'"),
                severity,
                why="Weights of order one saturate hidden units, or do not reach such numbers.",
            )


def _remedy_of_bars(rows: RowsCheck | None, is_wide: bool, is_calibrated: bool) -> Remedy:
    if _is_of_counts(rows):
        return _LESS_SCATTER if is_wide else _SCATTER
    return _CALIBRATE if is_wide or is_calibrated else _OTHER_NOISE


def _scatter(rows: NumbersCheck) -> Iterator[Problem]:
    """Yield counts that scatter more than their likelihood allows."""
    for target in rows.targets:
        if target.pull_width**2 > 1.0 + _SCATTERED * target.chance:
            yield Problem(
                f"Counts of {shown(target.name)} scatter more than the likelihood allows: their variance "
                f"around the rates is {target.pull_width**2:.2g} times as large",
                _SCATTER,
                Severity.ERROR_BARS,
                why="Then error bars are too small.",
            )


def _wrong_noise(rows: RowsCheck | None) -> Iterator[Problem]:
    """Yield problems of noise that is given and far from the residuals."""
    if not isinstance(rows, NumbersCheck) or rows.noise == "learned":
        return
    if _is_of_counts(rows):
        yield from _scatter(rows)
        return
    given, units = _GIVEN_NOISE[rows.noise]
    for target in rows.targets:
        name = shown(target.name)
        severity = Severity.MEANS if target.r2 < 0.5 else Severity.ERROR_BARS
        # If the network follows the rows closely, the residuals are too small by its spread.
        expected = float(np.hypot(target.residual, target.spread))
        if target.residual > _NOISE_RATIO * target.noise:
            yield Problem(
                f"The noise is too small: the residuals of {name} are "
                f"{target.residual / target.noise:.2g} times {given}{pulled(target)}",
                _LEARN_NOISE,
                severity,
                why="Or the network cannot follow the rows. Either way the error bars are too small.",
            )
        elif target.noise > _NOISE_RATIO * expected:
            yield Problem(
                f"The noise is too large: {given} is {target.noise / expected:.2g} times the "
                f"residuals of {name}, R2 {target.r2:.2g}{pulled(target)}",
                Remedy(f"check noise_scale: {units}"),
                severity,
                why="The rows then have too little weight, and the network stays near its prior.",
            )


def _narrow_prior(fit: FitCheck, severity: Severity) -> Iterator[Problem]:
    prior, wanted = fit.prior, _spread_wanted(fit.rows)
    why = "The data pull the weights beyond what the prior expects."
    if prior.at_edge > _EDGE_LIMIT:
        fault = f"{percent(prior.at_edge)} of the weights lie at an edge of its range"
        severity = max(severity, Severity.ERROR_BARS)
    elif prior.in_tail > _TAIL_LIMIT:
        fault = f"{percent(prior.in_tail)} of the weights lie in its outermost 0.1 %"
    elif prior.spread < _NARROW * wanted:
        fault = (
            f"networks drawn from it vary over the inputs by {prior.spread:.2g}, the targets by "
            f"{wanted:.2g}"
        )
        why = "The network stays nearly constant, and the rest is taken for noise."
    else:
        return
    what = f"The prior is too narrow: {fault}{_explained(fit.rows)}"
    yield Problem(what, _WIDER, severity, why=why)


def _spread_wanted(rows: RowsCheck | None) -> float:
    """Return the variation over the rows that the outputs should have; 0 if none is required."""
    if rows is None or rows.explains or _is_of_counts(rows):  # rates do not scatter
        return 0.0
    # Logits of order one give probabilities that differ.
    return 1.0 if isinstance(rows, ClassesCheck) else max(t.stddev for t in rows.targets)


def _explained(rows: RowsCheck | None) -> str:
    if rows is None:
        return ""
    if isinstance(rows, ClassesCheck):
        return f" (accuracy {percent(rows.accuracy)})"
    return f" (R2 {np.fmin.reduce([target.r2 for target in rows.targets]):.2g})"


def _wrong_coverage(rows: RowsCheck | None, reason: str) -> Iterator[Problem]:
    """Yield intervals that hold another share of the training rows, or are not known, for this reason."""
    # An unknown error is not within the limit either. By chance the error of right probabilities is about
    # 0.8 / sqrt(N) (0.12, 0.076 and 0.06 with 60, 100 and 150 rows of logistic regressions), and two standard
    # deviations of the share in 68 % intervals are 0.93 / sqrt(N).
    chance = np.nan if rows is None else 1.0 / np.sqrt(rows.num_rows)
    if isinstance(rows, ClassesCheck) and not rows.calibration_error <= _COVERAGE_LIMIT + chance:
        yield Problem(
            f"Predicted probabilities are off by {100 * rows.calibration_error:.0f} percentage "
            "points on average, on the training rows",
            _JUDGE,
            why="That is the expected calibration error.",
        )
    for target in sorted(_targets(rows), key=lambda target: -target.coverage_error)[:1]:
        if np.isnan(target.coverage_error):
            yield Problem(
                f"The intervals of {shown(target.name)} cannot be judged by the training rows",
                _JUDGE,
                why=f"Reason: {reason}.",
            )
        elif target.coverage_error > _COVERAGE_LIMIT + chance:
            errors = [share - level for share, level in zip(target.coverage, LEVELS)]
            worst = int(np.argmax(np.abs(errors)))
            wide = errors[worst] > 0
            yield Problem(
                f"The intervals of {shown(target.name)} are too {'wide' if wide else 'narrow'}: those of "
                f"{percent(LEVELS[worst])} hold {percent(target.coverage[worst])} of the training "
                f"rows, each as if left out (pull width {target.pull_width:.2g})",
                _CALIBRATE if wide else _OTHER_NOISE,
                why=_WIDE if wide else _NARROW_BARS,
            )


def _little_explained(rows: RowsCheck | None) -> Iterator[Problem]:
    if isinstance(rows, ClassesCheck) and not rows.explains:
        yield Problem(
            f"{percent(rows.accuracy)} of the training rows are classified right, no more than "
            f"{percent(rows.majority)} by always saying the most frequent label",
            _JUDGE,
            Severity.NOTHING,
            why="The inputs may not tell the classes apart.",
        )
    varying = [target for target in _targets(rows) if not np.isnan(target.r2)]
    for target in sorted(varying, key=lambda target: target.r2)[:1]:
        if target.r2 < -_LITTLE:
            yield Problem(
                f"The predictions of {shown(target.name)} are worse than its mean (R2 {target.r2:.2g})",
                Remedy("another seed, or more num_burnin_steps"),
                Severity.MEANS,
                why="The chains may not have reached weights that fit the data.",
            )
        elif target.r2 < _LITTLE:
            yield Problem(
                f"The predictions of {shown(target.name)} explain next to nothing of the training rows "
                f"(R2 {target.r2:.2g})",
                _JUDGE,
                Severity.NOTHING,
                why="The inputs may not determine the target.",
            )
