"""Write and read the description of a run: its JSON and its arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from tfbnn.data.coding import Coding
from tfbnn.data.transforms import Pipeline
from tfbnn.exceptions import RunFolderError
from tfbnn.posterior.provenance import Provenance
from tfbnn.run.config import (
    Beginning,
    FitConfig,
    GroupLayout,
    RunConfig,
    Starts,
)
from tfbnn.run.counters import Seconds
from tfbnn.run.options import Sampling
from tfbnn.run.until import Until
from tfbnn.spec.density_spec import DensitySpec
from tfbnn.spec.keras_spec import spec_from_json
from tfbnn.spec.own_classes import OwnClassError
from tfbnn.spec.rows import Rows, array_hash, data_hash
from tfbnn.spec.settings_json import Pretraining, settings_from_json, settings_to_json
from tfbnn.system.arrays import Array

if TYPE_CHECKING:
    from tfbnn.storage.run.folder import RunFolder

_REMOVED = ("num_workers", "restart", "keep_rungs", "keep_readout_factor")
# Name of the array of given starts.
INITIAL_STATE = "initial state"


def config_to_json(config: RunConfig) -> dict[str, Any]:
    """Return the JSON of a configuration. It contains hashes or names in place of arrays."""
    sampling, given = config.sampling, config.initial_state
    about: dict[str, Any] = {}
    fixed: dict[str, Any] = {}
    if isinstance(config, FitConfig):
        rows, held_out, pretraining = config.rows, config.validation, config.pretraining
        about = {
            "feature_names": rows.feature_names and list(rows.feature_names),
            "vector_target": rows.vector_target,
            "calibrate": config.calibrate,
            "effort": config.effort,
            "provenance": config.provenance.to_json(),
        }
        fixed = {
            "training rows": data_hash(rows),
            "validation rows": None if held_out is None else data_hash(held_out),
            "classes": rows.classes and list(rows.classes),
            "coding": rows.coding and rows.coding.to_json(),
            "transforms": rows.transforms and [step.to_json() for step in rows.transforms],
            "groups of rows": None if rows.groups is None else array_hash(rows.groups),
            "pretraining": pretraining and settings_to_json(pretraining),
        }
    return {
        **_extent(sampling),
        "temperatures": list(config.temperatures),
        "initial_state": None if given is None else given.text,
        **about,
        "fixed": {
            "spec": config.spec.to_json(),
            "kernel": config.kernel,
            "initial_state": None if given is None else array_hash(given.theta),
            "numbers": sampling.numbers,
            "environment": config.environment,
            **fixed,
        },
    }


def _kept(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without those of earlier releases on which no draw depends."""
    return {name: value for name, value in dict(settings).items() if name not in _REMOVED}


def config_to_arrays(config: RunConfig) -> dict[str, Array]:
    """Return a dict name -> array of the rows, and of the given starts."""
    arrays: dict[str, Array] = {}
    if isinstance(config, FitConfig):
        arrays |= _row_arrays("training", config.rows)
        if config.validation is not None:
            arrays |= _row_arrays("validation", config.validation)
    if config.initial_state is not None:
        arrays[INITIAL_STATE] = config.initial_state.theta
    return arrays


def read_config(folder: RunFolder, custom: Sequence[Any] = ()) -> RunConfig:
    """Read the RunConfig of the run in a folder, of a model or a log density.

    The functions of a log density are missing: functions that a file names are never called.

    Args:
        folder: RunFolder.
        custom: User-defined classes that a model may have, see `with_custom`.

    Raises:
        RunFolderError: When `make_run` cannot have written the folder, or for a class that is not in
            `custom`.
    """
    description = folder.description
    try:
        fixed = dict(description["fixed"])
        given = description.get("initial_state")  # missing in earlier releases
        common = dict(
            kernel=_kept(fixed["kernel"]),
            sampling=Sampling(
                **_kept(fixed["numbers"]),
                num_results=int(description["num_results"]),
                # Missing in earlier releases.
                until=Until.from_json(description.get("until")),
            ),
            environment=fixed["environment"],
            temperatures=tuple(description["temperatures"]),
            initial_state=None
            if given is None
            else Starts(folder.arrays[INITIAL_STATE], str(given)),
        )
        if DensitySpec.describes(fixed["spec"]):
            return RunConfig(spec=DensitySpec.from_json(fixed["spec"]), **common)
        spec = spec_from_json(fixed["spec"], custom)
        return FitConfig(spec=spec, **common, **_read_fit(description, fixed, folder.arrays))
    except OwnClassError as error:
        raise RunFolderError(f"{folder.path!r}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise RunFolderError(
            f"{folder.path!r} does not describe a run that this release knows "
            f"({type(error).__name__}: {error}). Start a new run in another folder."
        ) from error


def read_fit_config(folder: RunFolder, custom: Sequence[Any] = ()) -> FitConfig:
    """Read the FitConfig of a run of a model; arguments as in `read_config`.

    Raises:
        RunFolderError: As `read_config`, and for a log density.
    """
    config = read_config(folder, custom)
    if isinstance(config, FitConfig):
        return config
    raise RunFolderError(
        f"{folder.path!r} holds draws of a log density, and no model. To read or continue it, call "
        "tfbnn.sample with the same log_prob, this folder as output=, and resume=True."
    )


def _read_fit(
    description: dict[str, Any], fixed: dict[str, Any], arrays: Mapping[str, Array]
) -> dict[str, Any]:
    """Read the fields that only a FitConfig has, except its spec."""
    names, classes = description["feature_names"], fixed["classes"]
    pretraining = fixed["pretraining"]
    # Missing in earlier releases.
    coding, transforms = fixed.get("coding"), fixed.get("transforms")

    def rows(name: str) -> Rows:
        return Rows(
            arrays[f"{name} x"],
            arrays[f"{name} y"],
            arrays.get(f"{name} noise"),
            names and tuple(names),
            classes and tuple(classes),
            # Missing in the first format, whose models predict [N, K].
            bool(description.get("vector_target", False)),
            coding=None if coding is None else Coding.from_json(coding),
            groups=arrays.get(f"{name} groups"),
        )

    training = rows("training")
    if transforms is not None:
        x_pipeline, y_pipeline = map(Pipeline.from_json, transforms)
        training = replace(training, transforms=(x_pipeline, y_pipeline))
    return {
        "rows": training,
        "validation": rows("validation") if fixed["validation rows"] else None,
        "pretraining": pretraining
        and settings_from_json(pretraining, {"Pretraining": Pretraining}),
        "provenance": Provenance.from_json(dict(description["provenance"])),
        # Missing in earlier releases, which calibrated no run.
        "calibrate": bool(description.get("calibrate", False)),
        "effort": float(description.get("effort", 1.0)),
    }


def said_end(folder: RunFolder) -> str | None:
    """Return the recorded reason why an open run has ended; None if it has not ended."""
    text = folder.description.get("ended")
    return None if text is None else str(text)


def take_down_end(folder: RunFolder, text: str) -> None:
    """Record the reason that `said_end` returns. `extend_run` removes it."""
    folder.replace_description(folder.description | {"ended": text})


def make_run(make: Callable[..., RunFolder], config: RunConfig, beginning: Beginning) -> RunFolder:
    """Make the folder of a new run. `make` is the function that `RunFolder.reserved` yields."""
    starts, log_prob, layout, in_workers = beginning
    seconds = {name: value for name, value in asdict(starts.seconds).items() if value}
    content = config_to_json(config) | {
        "start": {"text": starts.text, "seconds": seconds},
        "plan": layout._asdict(),
        "in_workers": in_workers,
    }
    arrays = {"theta": starts.theta, "start_log_prob": log_prob}
    if starts.superchains is not None:
        arrays["superchains"] = starts.superchains
    return make(content, arrays | config_to_arrays(config), len(layout.groups))


def read_beginning(folder: RunFolder) -> Beginning:
    """Read the Beginning that was passed to `make_run`."""
    entry, arrays = folder.description, folder.arrays
    start = entry["start"]
    return Beginning(
        Starts(
            arrays["theta"],
            start["text"],
            Seconds(**start["seconds"]),
            superchains=arrays.get("superchains"),
        ),
        arrays["start_log_prob"],
        GroupLayout(**entry["plan"]),
        bool(entry["in_workers"]),
    )


def extend_run(folder: RunFolder, sampling: Sampling) -> None:
    """Record a new number of draws and a new stopping rule of a run."""
    if not has_extent(folder, sampling):
        kept = {name: entry for name, entry in folder.description.items() if name != "ended"}
        folder.replace_description(kept | _extent(sampling))


def has_extent(folder: RunFolder, sampling: Sampling) -> bool:
    """Return whether the recorded number of draws and stopping rule are those of `sampling`."""
    return all(folder.description.get(key) == entry for key, entry in _extent(sampling).items())


def check_same_run(folder: RunFolder, config: RunConfig) -> None:
    """Check that a run can be resumed with a configuration.

    Raises:
        RunFolderError: Names the differences.
    """
    fixed = config_to_json(config)["fixed"]
    refuse_differences(folder, *map(_completed, (folder.description["fixed"], fixed)))
    asked = config.sampling.num_results
    # For a run with a stopping rule, `num_results` is only a maximum, so only committed draws count.
    was_open = folder.description.get("until") is not None
    committed = [folder.checkpoint(group) for group in range(folder.num_groups)]
    most = max(0 if found is None else found.num_draws for found in committed)
    least = most if was_open else int(folder.description["num_results"])
    if config.sampling.until is None and asked < least:
        there = "; tfbnn.load takes what is there" if isinstance(config, FitConfig) else ""
        raise RunFolderError(
            f"The run in {folder.path!r} has num_results={least}, received {asked}. It can "
            f"have more, not fewer{there}."
        )


def _completed(fixed: dict[str, Any]) -> dict[str, Any]:
    """Return the fixed part of a description, with the power that specs omit."""
    return fixed | {"spec": {"likelihood_power": 1.0} | fixed["spec"]}


def _extent(sampling: Sampling) -> dict[str, Any]:
    """Return the part of a description that a resumed run may change."""
    until = sampling.until
    return {"num_results": sampling.num_results, "until": None if until is None else vars(until)}


def _row_arrays(name: str, rows: Rows) -> dict[str, Array]:
    arrays = {f"{name} {part}": getattr(rows, part) for part in ("x", "y", "noise", "groups")}
    return {key: array for key, array in arrays.items() if array is not None}


def refuse_differences(folder: RunFolder, there: Any, here: Any) -> None:
    """Refuse to resume a run whose settings differ.

    Args:
        folder: RunFolder.
        there, here: The same JSON-able part of the recorded settings, and of the present ones.

    Raises:
        RunFolderError: Names the differences.
    """
    differences = list(_differences(there, here, ""))
    if differences:
        raise RunFolderError(
            f"The run in {folder.path!r} cannot be continued with other arguments: "
            f"{'; '.join(differences[:3])}. Use the same ones, or start a new run in another folder."
        )


def _differences(there: Any, here: Any, path: str) -> Iterator[str]:
    """Yield the differences between two JSON-able values, each with its key path."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in dict.fromkeys([*there, *here]):
            yield from _differences(there.get(key), here.get(key), f"{path}.{key}".lstrip("."))
    elif there != here:
        if path.endswith("rows"):
            yield f"the {path} differ"
        else:
            yield f"{path} is {there!r:.80} there and {here!r:.80} here"
