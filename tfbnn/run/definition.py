"""What decides the draws of a run, as its folder holds it: to go on, nothing else is needed."""

from dataclasses import dataclass

from tfbnn.data.rows import Rows, data_hash
from tfbnn.exceptions import RunFolderError
from tfbnn.posterior.provenance import Provenance
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.settings_json import Pretraining, settings_from_json, settings_to_json


@dataclass(frozen=True)
class RunDefinition:
    """What a caller chooses, and what the run was made with: all that decides its draws.

    Attributes:
        spec: ModelSpec.
        rows, validation: Rows; the latter may be None.
        kernel: Kernel settings as JSON (`tfbnn.engine.kernels.kernel_to_json`).
        pretraining: Pretraining, or None.
        numbers: Dict of the plain arguments of `fit_posterior`: seed, num_chains,
            num_burnin_steps, num_steps_between_results, jit_compile.
        num_results: Draws per chain asked for, which may grow.
        environment: As `tfbnn.engine.basis.environment.describe_environment` says it.
        temperatures: Powers of the likelihood of a chain's rungs.
        provenance: What the ensemble is to say of its origin, as far as no draw is needed.
    """

    spec: ModelSpec
    rows: Rows
    validation: Rows | None
    kernel: dict
    pretraining: Pretraining | None
    numbers: dict
    num_results: int
    environment: dict
    temperatures: tuple
    provenance: Provenance

    @property
    def num_transitions(self):
        """Transitions of a chain, warm-up included."""
        stride = self.numbers["num_steps_between_results"] + 1
        return self.numbers["num_burnin_steps"] + self.num_results * stride

    def to_json(self):
        """JSON-able description of everything but the rows, of which it has hashes and names."""
        return {
            "num_results": self.num_results,
            "feature_names": _listed(self.rows.feature_names),
            "temperatures": list(self.temperatures),
            "provenance": self.provenance.to_json(),
            "fixed": {
                "spec": self.spec.to_json(),
                "training rows": data_hash(self.rows),
                "validation rows": None if self.validation is None else data_hash(self.validation),
                "classes": _listed(self.rows.classes),
                "kernel": self.kernel,
                "pretraining": self.pretraining and settings_to_json(self.pretraining),
                "numbers": self.numbers,
                "environment": self.environment,
            },
        }

    def to_arrays(self):
        """Dict name -> array of the rows."""
        arrays = _row_arrays("training", self.rows)
        return arrays | (
            {} if self.validation is None else _row_arrays("validation", self.validation)
        )

    @classmethod
    def read(cls, folder):
        """The definition of the run in a RunFolder.

        Raises:
            RunFolderError: When it is not one that `to_json` and `to_arrays` can have written.
        """
        description = folder.description
        try:
            fixed, arrays = dict(description["fixed"]), folder.arrays
            names, classes = description["feature_names"], fixed["classes"]
            pretraining = fixed["pretraining"]
            return cls(
                spec=ModelSpec.from_json(fixed["spec"]),
                rows=_read_rows("training", arrays, names, classes),
                validation=_read_rows("validation", arrays, names, classes)
                if fixed["validation rows"]
                else None,
                kernel=fixed["kernel"],
                pretraining=pretraining
                and settings_from_json(pretraining, {"Pretraining": Pretraining}),
                numbers=fixed["numbers"],
                num_results=description["num_results"],
                environment=fixed["environment"],
                temperatures=tuple(description["temperatures"]),
                provenance=Provenance.from_json(dict(description["provenance"])),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RunFolderError(
                f"{folder.path!r} does not describe a run that this release knows "
                f"({type(error).__name__}: {error}). Start a new run in another folder."
            ) from error


def _row_arrays(name, rows):
    arrays = {f"{name} x": rows.x, f"{name} y": rows.y, f"{name} noise": rows.noise}
    return {key: array for key, array in arrays.items() if array is not None}


def _read_rows(name, arrays, feature_names, classes):
    return Rows(
        arrays[f"{name} x"],
        arrays[f"{name} y"],
        arrays.get(f"{name} noise"),
        feature_names and tuple(feature_names),
        classes and tuple(classes),
    )


def _listed(names):
    return None if names is None else list(names)


def check_same_run(folder, definition):
    """Refuses to go on with a run as another one.

    Raises:
        RunFolderError: Names what differs.
    """
    _refuse_differences(folder, folder.description["fixed"], definition.to_json()["fixed"])
    began_with = folder.description["num_results"]
    if definition.num_results < began_with:
        raise RunFolderError(
            f"The run in {folder.path!r} has num_results={began_with}, received "
            f"{definition.num_results}. It can have more, not fewer; tfbnn.load takes what is there."
        )


def check_environment(folder, definition, here):
    """Refuses to go on under other versions, or on another kind of device.

    Args:
        folder: RunFolder.
        definition: The RunDefinition in it.
        here: What `tfbnn.engine.basis.environment.describe_environment` says.

    Raises:
        RunFolderError: Names what differs.
    """
    _refuse_differences(folder, definition.environment, here)


def _refuse_differences(folder, there, here):
    differences = list(_differences(there, here, ""))
    if differences:
        raise RunFolderError(
            f"The run in {folder.path!r} cannot go on as another one: {'; '.join(differences[:3])}. "
            "Use what it was begun with, or start a new run in another folder."
        )


def _differences(there, here, place):
    """Yields what differs between two JSON-able values, each with its place."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in dict.fromkeys([*there, *here]):
            yield from _differences(there.get(key), here.get(key), f"{place}.{key}".lstrip("."))
    elif there != here:
        if place.endswith("rows"):
            yield f"the {place} differ"
        else:
            yield f"{place} is {there!r:.80} there and {here!r:.80} here"
