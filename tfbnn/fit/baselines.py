"""Baselines in the same model, without sampling, to compare the posterior with.

All begin with the search that finds the starts of chains. They differ from a fit only by the missing
sampling.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from tfbnn.diagnostics.diagnosis import rows_texts
from tfbnn.diagnostics.fit_check import RowsCheck
from tfbnn.diagnostics.verdict import NO_CHAINS, NOT_SAMPLED, Chains, Predictions
from tfbnn.diagnostics.wording import counted, label_lines, labelled, span, text_width
from tfbnn.exceptions import StartError
from tfbnn.fit.assemble import define, without_chains
from tfbnn.fit.choices.choose import choose
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.fit_checking import check_rows
from tfbnn.run.config import FitConfig, Starts
from tfbnn.run.counters import Seconds
from tfbnn.run.events import Columns
from tfbnn.run.options import FitOptions
from tfbnn.run.progress import Notifier
from tfbnn.run.report import seconds_text
from tfbnn.run.result import nothing_sampled
from tfbnn.spec.choices import is_auto
from tfbnn.spec.infinite_spec import require_weights
from tfbnn.spec.model_spec import perceptron
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import Rows
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array
from tfbnn.system.threads import awaited, single_threaded_blas
from tfbnn.system.words import folded, warn

MAP, ENSEMBLE, LAPLACE = "fit_map", "fit_ensemble", "fit_laplace"
# Labels that every use of the model shows.
_NETWORKS = {MAP: "one optimised network", ENSEMBLE: "{} networks from starts of their own"}
_NORMAL = "fit_laplace: a normal distribution around one optimised network, linearised there"
# The Gauss-Newton matrix and its factor take up to six times 8 P^2 bytes: 3 GB at this P.
MOST_PARAMETERS = 8000


_WORTH = {
    MAP: "one network knows nothing of its own error, its standard deviation is 0",
    ENSEMBLE: "the spread of optimised networks is no error bar of a posterior",
    LAPLACE: "error bars hold as far as the posterior is normal around one network",
}

# Levenberg-Marquardt iterations in which a network learns noise by the inputs, and the share of rows that
# judges them where the search has none.
_NOISE_ITERATIONS, _HELD_OUT = 30, 0.15


@dataclass(frozen=True, eq=False)
class Baseline:
    """The record of a fit that sampled nothing.

    Attributes:
        name: "fit_map", "fit_ensemble" or "fit_laplace".
        label: Description of the model, shown by every use of it.
        num_draws: Number of networks, or draws of the normal distribution, that predictions average over.
        start: One line on how the networks were found.
        log_prob: Their log densities [C].
        seconds: Dict of wall-clock seconds: startup, compile, pretraining, rest.
        rows: Agreement with the training rows; None if the fit was interrupted before.
        stopped: Whether it was stopped before its end.
        history: Recorded events, as in a `Run`; its phases are "pretraining" and "newton".
    """

    name: str
    label: str
    num_draws: int
    start: str
    log_prob: Array
    seconds: dict[str, float]
    rows: RowsCheck | None
    stopped: bool
    history: dict[str, Columns] = field(default_factory=dict)

    verdict: ClassVar[str] = NOT_SAMPLED
    chains: ClassVar[Chains] = NO_CHAINS
    predictions: ClassVar[Predictions] = Predictions()

    def __repr__(self) -> str:
        return f"Baseline: {self.verdict}, {self.label}\nprint(baseline.report()) says more"

    def _repr_html_(self) -> str:
        """Return the text of `repr`, and the report as a part to unfold, for a notebook."""
        return folded(repr(self), self.report(width=100))

    def report(self, *, width: int | None = None) -> str:
        """Return the report as text.

        Args:
            width: Line width in columns. Default: the width of the terminal, or 100 without one.
        """
        return "\n".join(label_lines(self._lines(), width or text_width()))

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "Verdict", f"{self.verdict}: {_WORTH[self.name]}"
        yield "Baseline", self.label
        yield "Start", f"{self.start}; log density there {span(self.log_prob)}"
        yield "Time", seconds_text(self.seconds)
        if self.rows is not None:
            yield from labelled("Rows", rows_texts(self.rows))
        yield "Next", "compare model.evaluate on held-out rows with that of fit_posterior"


def _check(spec: NetworkSpec, name: str, options: FitOptions) -> None:
    """Refuse settings with which no baseline can be fitted, before anything is computed.

    Raises:
        ValueError: Names the setting.
    """
    require_weights(spec, name)
    size, pretraining = spec.layout.num_parameters, options.pretraining
    if name == LAPLACE and size > MOST_PARAMETERS:
        raise ValueError(
            f"fit_laplace takes at most {MOST_PARAMETERS} parameters, as it factorises a P x P matrix, "
            f"this model has {size}. Use narrower layers, or fit_ensemble."
        )
    if name == LAPLACE:
        perceptron(spec, LAPLACE)
    if pretraining is None or (
        isinstance(pretraining, Pretraining)
        and not (pretraining.epochs or pretraining.newton_iterations)
    ):
        raise ValueError(
            f"{name} gives what pretraining finds, received pretraining={pretraining!r}. Leave it "
            "out, or give epochs or newton_iterations."
        )


def fit_baseline(
    spec: NetworkSpec, rows: Rows, validation: Rows | None, name: str, options: FitOptions
) -> tuple[Baseline, Ensemble, bool]:
    """Fit one of the baselines.

    Args:
        spec: NetworkSpec.
        rows, validation: Rows; the latter may be None.
        name: MAP, ENSEMBLE or LAPLACE.
        options: FitOptions, with num_chains networks to find, and num_results draws of a normal
            distribution. Its settings of kernels, warm-up and folders are not used.

    Returns:
        (Record, ensemble, whether the user asked to stop by a signal). If the fit was stopped, the
        ensemble has the networks as they were then.

    Raises:
        TypeError, ValueError: When model and options do not go together.
        StartError: When the density is not finite at a network that was found.
        KeyboardInterrupt: When interrupted before a network is better than a draw of the prior.
    """
    began = time.perf_counter()
    config = _settle(spec, rows, validation, name, options)
    seconds = Seconds(startup=time.perf_counter() - began)
    found, ensemble, agreement, interrupted = None, None, None, False
    try:
        with single_threaded_blas():  # or the last bits would depend on the number of cores
            found = _search(config, options)
        stopped = found.stopped or found.starts.interrupted
        ensemble = _networks(config, name, found, stopped)
        if name == LAPLACE and not stopped:
            ensemble = _normal(config, found)
        agreement = check_rows(ensemble, config.transformed.train)
    except KeyboardInterrupt:
        if found is None or ensemble is None:
            raise
        interrupted = True
    seconds += found.starts.seconds
    spent = {one: getattr(seconds, one) for one in ("startup", "compile", "pretraining")}
    rest = time.perf_counter() - began - sum(spent.values())
    record = Baseline(
        name=name,
        label=str(ensemble.provenance.not_sampled),
        num_draws=ensemble.num_draws,
        start=found.starts.text,
        log_prob=found.log_prob,
        seconds=spent | {"rest": max(rest, 0.0)},
        rows=agreement,
        stopped=stopped or (name == LAPLACE and ensemble.mode is None),
        history=found.history,
    )
    return record, ensemble, interrupted or found.starts.interrupted


class _Found(NamedTuple):
    """Result of the search.

    Attributes:
        data: Data of the training rows.
        starts: Starts, which are the networks here.
        log_prob: Their log densities [C].
        stopped: Whether a callback ended the search.
        history: Recorded events.
    """

    data: Any
    starts: Starts
    log_prob: Array
    stopped: bool
    history: dict[str, Columns]


def _search(config: FitConfig, options: FitOptions) -> _Found:
    from tfbnn.engine.density.data import make_data
    from tfbnn.engine.running.driver import starts_of
    from tfbnn.engine.starts.find import log_prob_of
    from tfbnn.engine.starts.noise_by_inputs import one_noise

    spec, notify = config.spec, Notifier(options.verbose, options.callbacks)
    data = make_data(*config.transformed.train, spec.dtype)
    try:
        starts = starts_of(config, data, notify)
        if one_noise(spec) is not None and not (starts.interrupted or notify.stopped):
            starts = _with_noise_by_inputs(config, data, starts, notify)
    finally:
        notify.close()
    log_prob = log_prob_of(spec, data, starts.theta)
    if not np.isfinite(log_prob).all():
        raise StartError(
            f"The log density is {log_prob[~np.isfinite(log_prob)][0]} at a network that was found. "
            "Use dtype='float64', a narrower prior, or Pretraining with a lower learning_rate and a "
            "validation_split."
        )
    return _Found(data, starts, log_prob, notify.stopped, notify.history)


def _with_noise_by_inputs(config: FitConfig, data: Any, starts: Starts, notify: Notifier) -> Starts:
    """Let networks of one noise scale learn noise by the inputs, where held-out rows gain by it.

    On its own rows such a network is the better the closer it fits them, and its noise goes to zero.
    """
    from tfbnn.engine.starts.find import ground_of
    from tfbnn.engine.starts.newton_plan import plan_newton
    from tfbnn.engine.starts.polishing import polish_all

    spec, settings = config.spec, cast(Pretraining, config.pretraining)
    share = settings.validation_split or _HELD_OUT
    settings = replace(settings, validation_split=share, newton_iterations="auto")
    ground, _ = ground_of(spec, config.transformed, data, settings, config.sampling.seed)
    plan = plan_newton(spec, int(ground.sought_on.num_rows), settings)
    plan = plan._replace(num_iterations=min(plan.num_iterations, _NOISE_ITERATIONS))
    if ground.holdout is None or not plan.num_iterations:
        why = plan.reason if ground.holdout else "too few rows to hold some out"
        warn(
            f"The noise of these networks does not depend on the inputs ({why}). Use fit_posterior, or "
            "narrower layers."
        )
        return starts._replace(text=f"{starts.text}; the noise is one scale: {why}")
    began, text = time.perf_counter(), f"{starts.text}; then noise by the inputs"
    starts = starts._replace(text=text)
    found, _ = polish_all(spec, ground, starts, plan, -np.inf, notify)
    spent = Seconds(pretraining=time.perf_counter() - began)
    return found._replace(seconds=found.seconds + spent)


def _settle(
    spec: NetworkSpec, rows: Rows, validation: Rows | None, name: str, options: FitOptions
) -> FitConfig:
    """Return the FitConfig of a run without a kernel."""
    _check(spec, name, options)
    chosen = choose(spec, options, rows, validation, is_sampled=False)
    found = chosen.options.settled_pretraining
    if name == ENSEMBLE and found is not None and is_auto(options.pretraining):
        # Starts that populations replace would be draws of one population.
        found = replace(found, largest_misfit=None)
        chosen = chosen._replace(options=replace(chosen.options, pretraining=found))
    from tfbnn.engine.basis.seeds import describe_environment

    return define(
        chosen,
        rows,
        validation,
        chosen.options.sampling(budget=1),
        describe_environment(),
        {},
        kernel={},
        temperatures=(1.0,),
    )


def _networks(config: FitConfig, name: str, found: _Found, stopped: bool) -> Ensemble:
    """Return the Ensemble of the networks of the search, one chain each, so that all have equal weight."""
    theta = found.starts.theta
    if stopped or name == LAPLACE:
        label = f"{name}, stopped early: {counted(len(theta), 'optimised network')}"
    else:
        label = f"{name}: {_NETWORKS[name].format(len(theta))}"
    result = replace(nothing_sampled(found.log_prob, interrupted=False), draws=theta[:, None])
    return without_chains(config, result, found.log_prob[:, None], label)


def _normal(config: FitConfig, found: _Found) -> Ensemble:
    """Return the Ensemble of the normal distribution around the network: draws [1, S, P]."""
    from tfbnn.engine.density.laplace import laplace_draws

    spec, sampling, mode = config.spec, config.sampling, found.starts.theta[0]
    count = sampling.num_results
    draws = awaited(laplace_draws, spec, mode, found.data, count, sampling.seed)
    unknown = np.full((1, count), np.nan)
    nothing = nothing_sampled(found.log_prob, interrupted=False)
    result = replace(nothing, draws=draws.astype(spec.dtype)[None])
    return without_chains(config, result, unknown, _NORMAL, mode)
