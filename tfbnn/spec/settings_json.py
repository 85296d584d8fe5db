"""Frozen settings objects and their JSON form, and the settings of pretraining.

Priors, likelihoods, kernels and `Pretraining` are all frozen dataclasses of numbers, names and
other settings, so one pair of functions writes and reads them.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from tfbnn.data.validation import check_choice, check_integer, check_number

# Schedules of the learning rate.
Schedule: TypeAlias = Literal["constant", "cosine"]


# Metadata of a field that was added after files held its class. Files omit it at its default, so
# that settings of older files are written as they were.
ADDED: Mapping[str, Any] = {"added": True}


def said(settings: Any) -> dict[str, Any]:
    """Return names and values of the fields that files and messages show."""
    return {
        one.name: getattr(settings, one.name)
        for one in fields(settings)
        if not (one.metadata == ADDED and getattr(settings, one.name) == one.default)
    }


def settings_to_json(settings: Any) -> dict[str, Any]:
    """Turn a settings object into {"name": class name, field: value, ...}, recursively."""
    entry: dict[str, Any] = {"name": type(settings).__name__}
    return entry | {name: _to_json(value) for name, value in said(settings).items()}


def _to_json(value: Any) -> Any:
    if is_dataclass(value):
        return settings_to_json(value)
    if isinstance(value, tuple):
        return [_to_json(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def describe_settings(settings: Any) -> str:
    """Return the constructor call of a settings object, with the values that are not defaults."""
    parts = []
    for one in fields(settings):
        value = getattr(settings, one.name)
        if one.default is MISSING or value != one.default:
            text = describe_settings(value) if is_dataclass(value) else repr(value)
            parts.append(f"{one.name}={text}")
    return f"{type(settings).__name__}({', '.join(parts)})"


def settings_from_json(entry: Any, registry: Mapping[str, type]) -> Any:
    """Rebuild what `settings_to_json` wrote; class names are looked up in `registry` only.

    Raises:
        ValueError: For names that are not in the registry.
        TypeError: For fields that the class does not have.
    """
    name = entry.get("name") if isinstance(entry, dict) else None
    try:
        kind = registry[name if isinstance(name, str) else ""]
    except KeyError:
        raise ValueError(f"expected one of {sorted(registry)}, received {entry!r:.200}") from None
    return kind(
        **{key: from_json(value, registry) for key, value in entry.items() if key != "name"}
    )


def from_json(value: Any, registry: Mapping[str, type]) -> Any:
    """Convert a value of an entry: a dict to settings, a list to a tuple, others unchanged."""
    if isinstance(value, dict):
        return settings_from_json(value, registry)
    return tuple(from_json(one, registry) for one in value) if isinstance(value, list) else value


_LEAST = {
    "epochs": 0,
    "batch_size": 1,
    "early_stopping": 1,
    "newton_iterations": 0,
    "num_starts": 1,
    "search_rows": 1,
    "num_particles": 2,
}


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """Settings of pretraining: ADAM, then Levenberg-Marquardt, on the density that is sampled.

    Every chain is optimised by itself, from its own draw of the prior. A mini-batch of B out of N
    rows minimises -((N / B) log likelihood + log prior).

    Attributes:
        epochs: Passes over the training rows, default 500.
        batch_size: Rows per step, default 32; None uses all rows in one step. If N is not a
            multiple of it, the N mod batch_size rows left over differ from epoch to epoch.
        learning_rate: Step size of ADAM, default 0.001.
        learning_rate_schedule: "constant" (default), or "cosine", which decays to zero.
        early_stopping: Epochs without improvement of the validation log likelihood after which a
            chain stops and goes back to its best point; needs validation rows, given or held
            out. None (default): all epochs are run.
        newton_iterations: The largest number of Levenberg-Marquardt iterations after ADAM, which
            end earlier when ten of them gain less than one unit of log density. One iteration takes
            0.2 s for 12 000 rows and 562 parameters on two cores, in float64 and for one chain. For
            more parameters, an N x N matrix replaces the P x P matrix if it costs less. If there is
            room for neither, above some 15 000 of both, no iterations are run. "auto" (default): as
            many as half a minute per chain allows, up to 200; none if that is fewer than 25, or
            with `early_stopping` and without `validation_split`. Without held-out rows to judge
            them, starts that gain less than P units stay where ADAM left them, at the level of the
            posterior. The report shows the choice and the reason.
        num_starts: Number of independent starts to try; those with the highest log density, or
            with the highest score on held-out rows, become the chains, and all are reported. None
            (default): one per chain.
        validation_split: Share of the training rows that is held out during the search for starts
            and scores them, from 0 to below 1; validation rows that are given replace them. The held-out
            rows stop ADAM (`early_stopping`), decide where Levenberg-Marquardt is best and whether
            it is kept, rank the starts, and set their noise scales: none is below half of what
            held-out rows show. All rows are sampled. 0 (default): the log density ranks the starts,
            which is misleading for small noisy tables. Fewer than four held-out rows count as none.
        search_rows: Number of rows on which starts are searched, drawn with the seed of the run;
            each stands for its share of all rows. `epochs` are passes over these rows. At the end,
            up to five iterations of Levenberg-Marquardt use all rows, as many as half a minute per
            chain allows. None (default): all rows. With no more rows than this, all are used as
            well.
        largest_misfit: Largest allowed misfit of ADAM's starts on the rows it used, in standard
            deviations of the targets; if fewer starts than chains keep to it, two populations
            replace them, if these fit the rows better. The populations are cooled as with
            `num_particles`, each of eight particles or of half as many as chains. This is skipped
            if it takes more than about two minutes, or if the model has no Gauss-Newton matrix. It
            is meant for functions that go up and down within the range of the inputs, which ADAM
            does not begin to follow. None (default): no limit. With class labels it has no effect.
        num_particles: Number of particles of each of two populations that are cooled from the
            prior, in place of ADAM: at least half as many as chains, 16 for most models. Half of
            the chains start from each. They find the posterior where it is narrow, as with little
            noise. Settings of ADAM and held-out rows then have no effect. None (default): ADAM.

    References:
        Kingma and Ba 2015, arXiv:1412.6980. Marquardt 1963, J. SIAM 11, 431.
    """

    epochs: int = 500
    batch_size: int | None = 32
    learning_rate: float = 1e-3
    learning_rate_schedule: Schedule = "constant"
    early_stopping: int | None = None
    newton_iterations: int | str = "auto"
    num_starts: int | None = None
    validation_split: float = 0.0
    search_rows: int | None = field(default=None, metadata=ADDED)
    largest_misfit: float | None = field(default=None, metadata=ADDED)
    num_particles: int | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        for name, minimum in _LEAST.items():
            value = getattr(self, name)
            is_open = value == "auto" if name == "newton_iterations" else value is None
            if name == "epochs" or not is_open:
                # Plain integers: NumPy ones would decide dtypes in the compiled program.
                object.__setattr__(self, name, check_integer(name, value, minimum=minimum))
        check_number("learning_rate", self.learning_rate, above=0)
        check_choice("learning_rate_schedule", self.learning_rate_schedule, get_args(Schedule))
        check_number("validation_split", self.validation_split, minimum=0, below=1)
        if self.largest_misfit is not None:
            check_number("largest_misfit", self.largest_misfit, above=0)
