"""The draws as ArviZ data: named variables, and their predictions at rows, in the groups of ArviZ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfbnn.data.labels import label_array
from tfbnn.data.validation import check_integer
from tfbnn.exceptions import NotFittedError
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.spec.infinite_spec import InfiniteSpec
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.model_spec import perceptron
from tfbnn.spec.rows import Rows, known_of_rows, num_known
from tfbnn.system.arrays import Array
from tfbnn.system.version import __version__
from tfbnn.system.words import required, warn

if TYPE_CHECKING:
    from tfbnn.posterior.at_rows import Points

_NEED = "to_arviz needs ArviZ", "arviz"
_ROW = "row"
# The first two dimensions of a variable with one value per draw.
SAMPLE = ("chain", "draw")
# As xarray takes them: (names of the dimensions, values, attributes).
Variable = tuple[tuple[str, ...], Array, dict[str, str]]
Variables = dict[str, Variable]
Group = tuple[Variables, dict[str, Any]]  # variables, and attributes of the group
Groups = dict[str, Group]


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Ensemble):
    """The ensemble that users get as `model.posterior`, with its conversion to ArviZ."""

    @classmethod
    def of(cls, ensemble: Ensemble) -> Posterior:
        """Convert an ensemble to a Posterior."""
        return ensemble if isinstance(ensemble, cls) else cls(**ensemble.__getstate__())

    def to_arviz(
        self,
        x: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        *,
        noise_scale: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
        seed: int = 0,
    ) -> Any:
        """Convert the draws to ArviZ data with named variables; needs the extra `arviz`.

        The group `posterior` has, per layer, `dense_1_kernel` [chain, draw, feature, dense_1_unit]
        and `dense_1_bias`, with the names of the targets in the last layer. It also has
        `noise_scale` and sampled prior scales such as `dense_1_kernel_scale` as positive numbers,
        and `theta` [chain, draw, param], all parameters as they were sampled, with scales as
        logarithms. `sample_stats` has the statistics of the kernel. Attributes record the origin of
        the draws. Draws of warm-up are not kept.

        With rows, `posterior` also has the function at these rows, original units: `f`
        [chain, draw, row], for classes `probability`. Judge chains by its R-hat and ESS. With x and
        y there are the groups `log_likelihood`, `posterior_predictive`, `observed_data` and
        `constant_data`, which `az.loo` and `az.plot_ppc` use. With x alone, for rows with unknown
        targets, there are `predictions` and `predictions_constant_data`. With two or more targets
        all of them have a dimension `target`. Class labels are given by their numbers.

        `log_likelihood` is the log density of all targets of a row together, in original units,
        with the Jacobian of the target transform, so that models with other transforms can be
        compared. For the rows of the fit it is the input of `az.loo`. It is left out, with a
        warning, for a coarsened posterior and for networks that are not sampled. New observations
        are draws of the posterior predictive distribution, without any calibration.

        Args:
            x: Inputs [N, D] as in `predict`, or None.
            y: Targets [N] or [N, K] as in `evaluate`, or None.
            offset: For counts, logarithms of the exposures of the rows.
            noise_scale: Known standard deviations of the rows in the units of y; required with rows
                after a fit that had them.
            seed: Non-negative integer, for the noise in new observations, default 0.

        Returns:
            `arviz.InferenceData`.

        Raises:
            ImportError: If ArviZ is not installed.
            TypeError, ValueError: For unusable rows, for rows whose values of all draws would take
                more than 4 GB, and for draws of `fit_laplace`, which the tools for a posterior
                would misread.

        Warns:
            UserWarning: If rows took no part in the fit, so that `az.loo` cannot leave them out,
                and if chains have unequal weights, which ArviZ does not know.

        Example:
            data = model.posterior.to_arviz(x, y)
            print(az.summary(data, var_names=["noise_scale", "f"]), az.loo(data))
        """
        from tfbnn.posterior.at_rows import Points
        from tfbnn.posterior.stacking import weighting_note

        self.require_networks("to_arviz")
        required("arviz", *_NEED)  # before anything is computed
        if self.num_draws == 0:
            raise NotFittedError("There are no draws to hand over to ArviZ.")
        seed = check_integer("seed", seed, minimum=0)
        for name, value in (("y", y), ("noise_scale", noise_scale), ("offset", offset)):
            if x is None and value is not None:
                raise ValueError(
                    f"{name} belongs to rows, received x=None. Pass their inputs as x."
                )
        note = weighting_note(self)
        groups: Groups = {"posterior": (parameter_variables(self), _origin(self, note))}
        statistics = {name: variable(SAMPLE, v) for name, v in self.sample_stats.items()}
        groups["sample_stats"] = statistics, {}
        if x is not None:
            known = known_of_rows(self.spec, noise_scale, offset)
            add_rows(groups, self, Points.checked(self, x, y, known), seed)
        if note is not None:
            warn(
                f"ArviZ gives all chains the same weight, but these are {note}. Use "
                "model.compress(...).posterior.to_arviz(...) for draws that need no weights."
            )
        return arviz_object(groups, coordinates(self))


def arviz_object(groups: Groups, names: dict[str, Array]) -> Any:
    """Convert groups to an object of ArviZ.

    Args:
        groups: Dict name -> Group.
        names: Dict dimension -> its coordinates; other dimensions are numbered.

    Raises:
        ImportError: If ArviZ is not installed.
    """
    arviz, xarray = required("arviz", *_NEED), required("xarray", *_NEED)
    datasets = {name: _dataset(xarray, group, names) for name, group in groups.items()}
    return arviz.InferenceData(**datasets)


def _has_density(ensemble: Ensemble, rows: Rows) -> bool:
    """Check whether importance sampling can leave rows out of these draws; warn if it cannot."""
    reason = ensemble.provenance.not_sampled or ensemble.spec.coarsening_note
    if reason is not None:
        warn(
            f"log_likelihood is left out, as az.loo needs draws of the posterior, received {reason}. "
            "Score held-out rows with model.evaluate."
        )
        return False
    known = num_known(ensemble.row_digests, rows)
    if len(ensemble.row_digests) and known is not None and known < len(rows.x):
        warn(
            f"{len(rows.x) - known} of {len(rows.x)} rows took no part in the fit, which az.loo cannot leave out. "
            "Score them with model.evaluate, or pass rows of the fit."
        )
    return True


def _dataset(xarray: Any, group: Group, names: dict[str, Array]) -> Any:
    """Return the Dataset of a group, with coordinates for all its dimensions."""
    variables, attributes = group
    sizes = {dim: size for one in variables.values() for dim, size in zip(one[0], one[1].shape)}
    coords = {dim: names.get(dim, range(size)) for dim, size in sizes.items()}
    library = {"inference_library": "tfbnn", "inference_library_version": __version__}
    return xarray.Dataset(variables, coords, library | attributes)


def variable(dims: tuple[str, ...], values: Array, description: str = "") -> Variable:
    """Return a variable of ArviZ data."""
    return dims, values, {"description": description} if description else {}


def add_rows(groups: Groups, ensemble: Ensemble, points: Points, seed: int) -> None:
    """Add rows, and the predictions of the draws for them, under the names that ArviZ uses.

    Args:
        groups: Groups of the draws; their posterior gains the function at the rows.
        ensemble: Ensemble.
        points: The rows.
        seed: Seed of the noise.
    """
    from tfbnn.posterior.at_rows import at_rows

    with_density = points.rows is not None and _has_density(ensemble, points.rows)
    functions, found, log_likelihood = at_rows(ensemble, points, with_density, seed)
    name, what, unit = "f", "prediction without noise, original units", "original units"
    if ensemble.spec.has_classes:
        name, what, unit = "probability", "of the second label or of each class", "class numbers"
    groups["posterior"][0][name] = _of_columns(functions, prediction_side(ensemble), what)
    what = f"{', '.join(ensemble.target_names)}: {unit}"
    observations = _of_columns(found, "target", what)
    calibrated = "no"
    if ensemble.calibration is not None:
        calibrated += f", but predict(include_noise=True) is: {ensemble.calibration.in_short}"
    noisy: Group = {"y": observations}, {"calibrated": calibrated}
    constants = {"x": variable((_ROW, "feature"), points.x, "inputs")}
    if points.noise is not None:
        name, told = "noise_scale", "known standard deviations"
        if ensemble.spec.has_counts:
            name, told = "offset", "logarithms of exposures"
        constants[name] = _of_columns(points.noise, "target", told, sample=())
    if points.rows is None:
        groups |= {"predictions": noisy, "predictions_constant_data": (constants, {})}
        return
    groups["posterior_predictive"] = noisy
    if log_likelihood is not None:
        density = "log density of the targets of each row together, original units"
        values = variable((*SAMPLE, _ROW), log_likelihood, density)
        groups["log_likelihood"] = {"y": values}, {}
    y = points.rows.y.astype(int) if ensemble.spec.has_classes else points.rows.y
    labels = {"classes": list(map(str, ensemble.classes))} if ensemble.classes else {}
    groups["observed_data"] = {"y": _of_columns(y, "target", what, sample=())}, labels
    groups["constant_data"] = constants, {}


def _of_columns(
    values: Array, side: str, description: str, sample: tuple[str, ...] = SAMPLE
) -> Variable:
    """Return a variable of values [..., N, columns], without a dimension for a single column."""
    if values.shape[-1] == 1:
        return variable((*sample, _ROW), values[..., 0], description)
    return variable((*sample, _ROW, side), values, description)


def _origin(ensemble: Ensemble, weighting: str | None) -> dict[str, Any]:
    """Return the origin of the draws as attributes that a netCDF file can hold."""
    said = ensemble.provenance.to_json() | {
        "warmup": "its draws are not kept",
        "coarsened": ensemble.spec.coarsening_note,
        "calibration": None if ensemble.calibration is None else ensemble.calibration.in_short,
        "weighting": weighting,
        "model": ensemble.spec.to_json(),
    }
    plain = {
        name: value if type(value) in (str, int, float) else json.dumps(value)
        for name, value in said.items()
        if value is not None
    }
    return plain | {"chain_weights": ensemble.chain_weights.tolist()}


def parameter_variables(ensemble: Ensemble) -> Variables:
    """Return scales as positive numbers, then kernels and biases layer by layer, then theta as sampled.

    The latter two are views of the draws and take no memory.
    """
    what = "all parameters in the coordinates they are sampled in, scales as their logarithms"
    theta = variable((*SAMPLE, "param"), ensemble.draws, what)
    return dict(_scales(ensemble)) | dict(_weights(ensemble)) | {"theta": theta}


def coordinates(ensemble: Ensemble) -> dict[str, Array]:
    """Return the coordinates of every dimension: names where the model knows some, else numbers."""
    sides = {
        side: np.arange(size)
        for (_, dims), slot in zip(_named_slots(ensemble), ensemble.spec.layout.slots)
        for side, size in zip(dims, slot.shape)
    }
    targets = ensemble.target_names
    if prediction_side(ensemble) == "class":
        sides["class"] = label_array(ensemble.classes or ())
    if "output" in sides:  # first those of the targets, then those of their noise
        further = range(len(targets), len(sides["output"]))
        sides["output"] = np.array([*targets, *(f"output {number + 1}" for number in further)])
    sides |= {
        "feature": np.array(ensemble.input_names),
        "target": np.array(targets),
        "noise": np.arange(ensemble.spec.layout.num_noise),
    }
    return sides | {"param": np.array(list(_parameter_names(ensemble, sides)))}


def prediction_side(ensemble: Ensemble) -> str:
    """Return the name of the dimension of prediction columns.

    It is "class" if a target has several columns, else "target".
    """
    return "target" if ensemble.spec.num_predicted == ensemble.spec.num_targets else "class"


def _named_slots(ensemble: Ensemble) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name and the dimensions of each kernel, bias or other variable, in the order of theta."""
    if isinstance(ensemble.spec, KerasSpec):
        for one in ensemble.spec.sampled:
            name = one.path.replace("/", "_")
            yield name, tuple(f"{name}_axis_{axis}" for axis in range(len(one.shape)))
        return
    spec = ensemble.spec
    if not isinstance(spec, InfiniteSpec):  # infinite width has the same layers, without weights
        spec = perceptron(spec, "to_arviz")
    hidden = [f"dense_{number}_unit" for number in range(1, len(spec.layer_sizes) - 1)]
    last = prediction_side(ensemble) if spec.num_outputs == spec.num_predicted else "output"
    for number, sides in enumerate(pairwise(("feature", *hidden, last)), start=1):
        yield f"dense_{number}_kernel", sides
        yield f"dense_{number}_bias", sides[1:]


def _weights(ensemble: Ensemble) -> Iterator[tuple[str, Variable]]:
    draws, note = ensemble.draws, ""
    if ensemble.spec.is_ntk:
        note = ", which the network multiplies with prior scales and a width"
    if not ensemble.spec.layout.num_weights:
        return
    for (name, dims), slot in zip(_named_slots(ensemble), ensemble.spec.layout.slots):
        values = draws[..., slot.weights].reshape(*draws.shape[:2], *slot.shape)
        yield name, variable((*SAMPLE, *dims), values, f"{slot.name}{note}")


def _scales(ensemble: Ensemble) -> Iterator[tuple[str, Variable]]:
    layout, theta = ensemble.spec.layout, ensemble.draws
    if layout.num_noise:
        side = "target" if layout.num_noise == ensemble.spec.num_targets else "noise"
        what = "standard deviation of the noise, after the transform of the targets"
        if ensemble.spec.has_counts:
            what = "standard deviation of the rates of rows, relative to their mean"
        values = _positive(theta[..., layout.log_noise_scale])
        yield "noise_scale", variable((*SAMPLE, side), values, what)
    for (group, _), (prior, _, span) in zip(_named_slots(ensemble), ensemble.spec.weight_groups()):
        if span.stop == span.start:
            continue
        name = f"{group}_scale"
        values, what = _positive(theta[..., span]), "sampled scale of a prior"
        if prior.per_input:
            yield name, variable((*SAMPLE, "feature"), values, f"{what}, one per input")
        else:
            yield name, variable(SAMPLE, values[..., 0], what)


def _positive(logarithms: Array) -> Array:
    return np.exp(logarithms.astype(np.float64))


def _parameter_names(ensemble: Ensemble, sides: dict[str, Array]) -> Iterator[str]:
    """Yield the names of the entries of theta, such as "dense_1_kernel[mass, 0]"."""
    named = (("", _weights(ensemble)), ("log ", _scales(ensemble)))  # in the order of theta
    for prefix, variables in named:
        for name, (dims, *_) in variables:
            for entry in product(*(map(str, sides[side]) for side in dims[2:])):
                yield f"{prefix}{name}[{', '.join(entry)}]" if entry else f"{prefix}{name}"
