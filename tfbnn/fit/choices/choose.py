"""Settle all open settings of a model and a fit, or take them from the run that is resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from tfbnn.data.bad_rows import BadRowError
from tfbnn.engine.density.data import known_noise
from tfbnn.engine.density.densities import check_own_densities
from tfbnn.engine.kernels.registry import kernel_from_json, resolve_kernel
from tfbnn.engine.starts.cooling import cooling_obstacle
from tfbnn.fit.choices import by_clock, rules
from tfbnn.fit.choices.compare_networks import choose_network
from tfbnn.fit.choices.infinite import options_of_infinite
from tfbnn.fit.choices.pilot import failed_rows, misfits_of, pilot_noise, y_transform
from tfbnn.fit.choices.rules import FitSizes
from tfbnn.fit.handing_on import refuse_other_network
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.run.config import FitConfig
from tfbnn.run.deadline import Deadline
from tfbnn.run.description import read_fit_config
from tfbnn.run.options import FitOptions
from tfbnn.spec.choices import Choice, is_auto
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.network_spec import OPEN, NetworkSpec
from tfbnn.spec.rows import NetworkRows, Rows, TransformedRows, learn_transforms
from tfbnn.spec.settings_json import Pretraining, describe_settings
from tfbnn.system.arrays import Array
from tfbnn.system.threads import num_cores

# Options whose choices depend on a clock.
_BY_CLOCK = {"kernel", "num_burnin_steps", "num_steps_between_results", "pretraining"}


class Chosen(NamedTuple):
    """A fit with all settings settled.

    Attributes:
        spec: NetworkSpec.
        options: FitOptions.
        transformed: The rows on the scale the network sees.
        choices: The choices made for open settings of model and options.
        is_begun: Whether the settings are those of a run that is resumed.
    """

    spec: NetworkSpec
    options: FitOptions
    transformed: TransformedRows
    choices: tuple[Choice, ...]
    is_begun: bool


def choose(
    spec: NetworkSpec,
    options: FitOptions,
    rows: Rows,
    validation: Rows | None,
    *,
    is_sampled: bool = True,
) -> Chosen:
    """Settle all open settings. A resumed run keeps the settings of its folder.

    Args:
        spec: NetworkSpec as requested by the user. Its likelihood power is replaced by that of the
            options.
        options: FitOptions.
        rows, validation: Rows; the latter may be None.
        is_sampled: Whether chains follow the search for starts. If so, the starts may be draws.

    Raises:
        TypeError, ValueError: For rows to which the transforms cannot be applied, for early stopping
            without validation rows, and for user-defined classes that cannot be sampled.
        RunFolderError: When the folder does not describe a run.
    """
    asked = options.pretraining
    if validation is None and isinstance(asked, Pretraining) and asked.early_stopping:
        if not asked.validation_split:
            raise ValueError(
                "Pretraining.early_stopping needs validation rows, received validation_data=None. "
                "Pass validation_data=(x, y), or give validation_split."
            )
    check_own_densities(spec)
    spec = _each(spec, lambda one: replace(one, likelihood_power=options.likelihood_power))
    begun = _begun_run(spec, options)
    if begun is not None:
        spec, options = as_begun(spec, options, begun)
    if isinstance(spec, ModelSpec) and isinstance(options.initial_state, Ensemble):
        spec = _network_of_draws(spec, options.initial_state.spec)
    spec = close_spec(spec, rows, validation)
    transformed = learn_transforms(spec, rows, validation)
    if isinstance(spec, ModelSpec) and spec.others:
        spec = choose_network(spec, transformed, options)
    if isinstance(spec, InfiniteSpec):
        options = options_of_infinite(spec, options, len(rows.x))
    sizes = sizes_of(spec, len(rows.x), options)
    sizes = sizes._replace(can_cool=is_sampled and sizes.can_cool)
    options, choices = settle_options(options, sizes, partial(pilot_of, spec, transformed.train))
    options, of_bars = settle_calibration(options, spec, len(rows.x))
    if begun is None:
        choices = (*spec.choices, *choices, *of_bars)
    else:  # the recorded choices: nothing is open any more in a run that is resumed
        choices = begun.provenance.choices or ()
    return Chosen(spec, options, transformed, choices, begun is not None)


def plan(chosen: Chosen, has_clock: bool) -> Chosen:
    """Return a new fit planned by its time limit or its budget; others are returned unchanged.

    Args:
        chosen: Chosen.
        has_clock: Whether gradients are computed in this process, so that their speed can be measured.
    """
    spec, options, transformed, choices, is_begun = chosen
    sizes = sizes_of(spec, len(transformed.train.x), options)
    budget = rules.budget(sizes, options.is_short)
    if is_begun:
        return chosen
    if options.limit is not None:
        deadline = Deadline(options.limit, options.began)
        why = f"max_seconds={options.limit:g} leaves"
    elif budget is not None:
        seconds = sizes.effort * budget.seconds
        deadline = Deadline(seconds, 0.0, clock=lambda: 0.0, search=budget.search)
        why = f"a budget of about {seconds:.0f} s leaves"
    else:
        return chosen
    if options.limit is not None and has_clock:
        speed = by_clock.measured_seconds(spec, transformed.train, options), num_cores()
    else:
        speed = by_clock.estimated_seconds_of_all(spec, sizes), rules.BUDGET_CORES
    planned = by_clock.plan_by_clock(options, choices, sizes, spec, *speed, deadline, why)
    return chosen._replace(options=planned[0], choices=planned[1])


def close_spec(spec: NetworkSpec, rows: Rows, validation: Rows | None) -> NetworkSpec:
    """Return the spec with an open target transform replaced by one that is defined for all rows."""
    if not spec.is_open and rows.transforms is None:
        return spec
    if rows.transforms is not None:
        # Also a choice that settings alone have made becomes that of the earlier model.
        return _each(spec, _reopened).closed(
            rows.transforms[1].names, "as in the model that the chains start from"
        )
    targets = rows.y if validation is None else np.concatenate([rows.y, validation.y])
    chosen = y_transform(targets, partial(misfits_of, rows.x, rows.y))
    failed = failed_rows(targets)
    if failed.any() and not failed[: len(rows.y)].all():
        good = ~failed[: len(rows.y)]
        names, _ = y_transform(targets[~failed], partial(misfits_of, rows.x[good], rows.y[good]))
        if "log10" in names:
            _refuse_failed(targets, failed, len(rows.y))
    return spec.closed(*chosen)


def _each(spec: NetworkSpec, change: Callable[[NetworkSpec], NetworkSpec]) -> NetworkSpec:
    """Return a spec with a change of it and of the other candidates."""
    return replace(change(spec), others=tuple(map(change, spec.others)))


def _reopened(spec: NetworkSpec) -> NetworkSpec:
    """Return a spec whose transform of targets is open if it was chosen."""
    rest = tuple(choice for choice in spec.choices if choice.what != "y_transform")
    if len(rest) == len(spec.choices):
        return spec
    return replace(spec, y_transform=OPEN, choices=rest)


def _refuse_failed(targets: Array, failed: Array, num_training: int) -> None:
    """Refuse rows that are the only reason not to model the targets [N, K] by their logarithms."""
    row = int(np.argmax(failed))
    column, is_training = int(np.argmin(targets[row])), row < num_training
    name = "y" if is_training else "validation y"
    found = (
        f"{name} must not have 0 or a code such as -1 among positive targets that span decades, which "
        f"{failed.sum()} of {len(targets)} rows have, the first ({targets[row, column]:g})"
    )
    advice = (
        "Drop these rows if the calculation failed there; or, if they are right, give y_transform, such "
        "as 'standardize'."
    )
    index = row if is_training else row - num_training
    raise BadRowError(name, found, advice, index, column if targets.shape[1] > 1 else None)


def settle_options(
    options: FitOptions, sizes: FitSizes, fly: Callable[[], Array | None] = lambda: None
) -> tuple[FitOptions, tuple[Choice, ...]]:
    """Return (options with all settings settled, the choices made).

    Args:
        options: FitOptions.
        sizes: Sizes of the fit.
        fly: Function that returns the noise found by a pilot, called if a setting is open. The default
            returns None, as for classes, which is enough for an estimate.
    """
    if not any(map(is_auto, (options.kernel, options.num_burnin_steps, options.pretraining))):
        return options, ()
    pilot = fly()
    settled: dict[str, Any] = {}
    choices = []

    def settle(what: str, setting: Any, why: str) -> None:
        settled[what] = setting
        text = setting if isinstance(setting, int) else describe_settings(setting)
        choices.append(Choice(what, f"{text}", why))

    if is_auto(options.kernel):
        settle("kernel", *rules.kernel(sizes, pilot))
    if is_auto(options.num_burnin_steps):
        gradients = resolve_kernel(settled.get("kernel", options.kernel)).gradients_per_transition
        settle("num_burnin_steps", *rules.num_burnin_steps(sizes, gradients))
    if is_auto(options.pretraining):
        settle("pretraining", *rules.pretraining(sizes, pilot))
    return replace(options, **settled), tuple(choices)


def settle_calibration(
    options: FitOptions, spec: NetworkSpec, num_rows: int
) -> tuple[FitOptions, tuple[Choice, ...]]:
    """Return (options with `calibrate` settled, the choice made).

    Raises:
        ValueError: When a calibration is requested for class labels or counts.
    """
    if not spec.has_additive_noise:
        if options.calibrate is True:
            raise ValueError(
                "calibrate=True is about noise around the outputs, received "
                f"{type(spec.likelihood).__name__}. Leave it out; evaluate says how far the "
                "probabilities hold."
            )
        return replace(options, calibrate=False), ()
    if not is_auto(options.calibrate):
        return options, ()
    wanted, why = rules.calibrate(spec.regression_likelihood.learns_noise, num_rows)
    choice = Choice("calibrate", "leave-one-out" if wanted else "no", why)
    return replace(options, calibrate=wanted), (choice,)


def sizes_of(spec: NetworkSpec, num_rows: int, options: FitOptions) -> FitSizes:
    """Return the sizes of a fit to `num_rows` rows."""
    return FitSizes(
        num_rows=spec.num_rows_of_chains(num_rows) + spec.num_earlier,
        num_parameters=spec.layout.num_parameters,
        num_chains=options.num_chains,
        effort=options.effort,
        is_infinite=isinstance(spec, InfiniteSpec),
        can_cool=cooling_obstacle(spec) is None,
    )


def pilot_of(spec: NetworkSpec, rows: NetworkRows) -> Array | None:
    """Return the noise [K] that a pilot finds in training rows, or the known noise if it is smaller.

    The noise is in standard deviations of the targets. None for class labels and counts.
    """
    if not spec.has_additive_noise:
        return None
    found = pilot_noise(rows)
    if spec.regression_likelihood.learns_noise:
        return found
    known = np.sqrt(np.mean(known_noise(spec, rows.noise, rows.y) ** 2, axis=0))
    return np.minimum(found, known / np.maximum(rows.y.std(axis=0), np.finfo(float).tiny))


def as_begun(
    spec: NetworkSpec, options: FitOptions, begun: FitConfig
) -> tuple[NetworkSpec, FitOptions]:
    """Return model and options with open settings taken from the run that is resumed.

    These are the settings that depend on the clock or on a pilot. All others follow from sizes and
    other settings, and are chosen again. Settings that the user gave to the run stay open here, and are
    compared with the choices made here.
    """
    chosen = {choice.what for choice in begun.provenance.choices or ()}
    there = begun.spec
    if spec.others and "network" in chosen:
        known: list[NetworkSpec] = [spec, *spec.others]
        alike = [one for one in known if _same_network(one, there)]
        spec = replace(
            alike[0] if alike else there, others=(), likelihood_power=spec.likelihood_power
        )
    if "y_transform" in chosen:
        spec = spec.closed(there.y_transform, "")
    recorded, names = vars(begun) | begun.sampling.numbers, chosen & _BY_CLOCK
    settled = {name: recorded[name] for name in names if is_auto(getattr(options, name))}
    if "kernel" in settled:
        settled["kernel"] = kernel_from_json(begun.kernel)
    return spec, replace(options, **settled)


def _network_of_draws(spec: ModelSpec, there: NetworkSpec) -> ModelSpec:
    """Return the one of several networks whose draws are the starts.

    Raises:
        ValueError: If it is none of them, or its parameters have another meaning.
    """
    alike = [one for one in (spec, *spec.others) if _same_network(one, there)]
    if not alike:
        raise ValueError(
            f"initial_state must be one of the networks that this model may have, received "
            f"{there.architecture_text}, {there.likelihood_name}. Give its layer_sizes and likelihood."
        )
    refuse_other_network("initial_state", alike[0], there)
    return replace(cast(ModelSpec, alike[0]), others=())


def _same_network(spec: NetworkSpec, there: NetworkSpec) -> bool:
    same = spec.architecture_text == there.architecture_text
    return same and spec.likelihood_name == there.likelihood_name


def _begun_run(spec: NetworkSpec, options: FitOptions) -> FitConfig | None:
    """Return the FitConfig of the run to resume, or None for a new run."""
    from tfbnn.storage.run.folder import RunFolder

    if not options.resume or options.output is None:
        return None
    folder = RunFolder.find(options.output)
    return None if folder is None else read_fit_config(folder, spec.own_classes)
