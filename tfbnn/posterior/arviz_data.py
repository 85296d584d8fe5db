"""The draws as ArviZ data: named variables, and what they say of rows, in its groups."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tfbnn.data.labels import label_array
from tfbnn.data.validation import check_integer
from tfbnn.exceptions import NotFittedError
from tfbnn.posterior.at_rows import AtRows, Points, at_rows
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.stacking import weighting_note
from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.model_spec import perceptron
from tfbnn.spec.network_parts import SampledVariable
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import Rows, num_known
from tfbnn.system.arrays import Array
from tfbnn.system.version import __version__
from tfbnn.system.words import required, warn

_NEED = "to_arviz needs ArviZ", "arviz"
_ROW = "row"
# The first two dimensions of whatever there is one of per draw.
SAMPLE = ("chain", "draw")


def to_arviz(ensemble: Ensemble, x: Any, y: Any, noise_scale: Any, seed: int) -> Any:
    """See `Ensemble.to_arviz`."""
    ensemble.require_networks("to_arviz")
    for module in ("arviz", "xarray"):
        required(module, *_NEED)  # before anything is computed
    if ensemble.num_draws == 0:
        raise NotFittedError("There are no draws to hand over to ArviZ.")
    seed = check_integer("seed", seed, minimum=0)
    for name, value in (("y", y), ("noise_scale", noise_scale)):
        if x is None and value is not None:
            raise ValueError(f"{name} belongs to rows, received x=None. Pass their inputs as x.")
    groups = groups_of_draws(ensemble)
    if x is not None:
        points = Points.checked(ensemble, x, y, noise_scale)
        with_density = points.rows is not None and _has_density(ensemble, points.rows)
        add_rows(groups, ensemble, points, at_rows(ensemble, points, with_density, seed))
    _warn_of_weights(ensemble)
    return arviz_object(groups, coordinates(ensemble))


def arviz_object(groups: Groups, names: dict[str, Array]) -> Any:
    """Groups as ArviZ works with them.

    Args:
        groups: Dict name -> Group.
        names: Dict dimension -> its coordinates; others are numbered.

    Raises:
        ImportError: Without ArviZ.
    """
    arviz, xarray = required("arviz", *_NEED), required("xarray", *_NEED)
    datasets = {name: _dataset(xarray, group, names) for name, group in groups.items()}
    return arviz.InferenceData(**datasets)


def _has_density(ensemble: Ensemble, rows: Rows) -> bool:
    """Whether rows can be left out of these draws by importance sampling; says why not."""
    power, origin = ensemble.spec.likelihood_power, ensemble.provenance
    reason = None
    if origin.not_sampled is not None:
        reason = "draws of the posterior, which this model has none of"
    elif power < 1.0:
        reason = f"rows that count as a whole, received likelihood_power={power!r}"
    if reason is not None:
        warn(
            f"log_likelihood is left out: az.loo would need {reason}. Score held-out rows with "
            "model.evaluate.",
        )
        return False
    known = num_known(ensemble.row_digests, rows)
    if len(ensemble.row_digests) and known < len(rows.x):
        warn(
            f"{len(rows.x) - known} of {len(rows.x)} rows took no part in the fit, so that az.loo, "
            "which leaves out rows of the fit, says nothing of them. Score them with "
            "model.evaluate, or pass rows of the fit.",
        )
    return True


def _warn_of_weights(ensemble: Ensemble) -> None:
    note = weighting_note(ensemble)
    if note is not None:
        warn(
            f"ArviZ gives all chains the same weight, but these are {note}. Use "
            "model.compress(...).posterior.to_arviz(...) for draws that need no weights.",
        )


def _dataset(xarray: Any, group: Group, names: dict[str, Array]) -> Any:
    """The Dataset of a group, with those of the named coordinates that it has a dimension for."""
    variables = {
        name: (one.dims, one.values, {"description": one.description} if one.description else {})
        for name, one in group.variables.items()
    }
    sizes = {
        dim: size
        for one in group.variables.values()
        for dim, size in zip(one.dims, one.values.shape)
    }
    coords = {dim: names.get(dim, range(size)) for dim, size in sizes.items()}
    attributes = {"inference_library": "tfbnn", "inference_library_version": __version__}
    return xarray.Dataset(variables, coords, attributes | group.attributes)


@dataclass
class Group:
    """Variables, and what is said of all of them."""

    variables: Variables
    attributes: dict[str, Any] = field(default_factory=dict)


Groups = dict[str, Group]


def groups_of_draws(ensemble: Ensemble) -> Groups:
    """posterior, and sample_stats where there are some: not of draws that were chosen."""
    groups = {"posterior": Group(parameter_variables(ensemble), _origin(ensemble))}
    statistics = {
        name: Variable(SAMPLE, values, "") for name, values in ensemble.sample_stats.items()
    }
    return groups | ({"sample_stats": Group(statistics)} if statistics else {})


def add_rows(groups: Groups, ensemble: Ensemble, points: Points, found: AtRows) -> None:
    """Adds rows, and what the draws say of them, under the names that ArviZ has for it.

    Args:
        groups: Those of the draws; their posterior gains the function at the rows.
        ensemble: Ensemble.
        points: The rows.
        found: What was found there.
    """
    side = prediction_side(ensemble)
    name, what = "f", "prediction without noise, original units"
    if ensemble.spec.has_classes:
        name, what = "probability", "of the second label or of each class"
    groups["posterior"].variables[name] = _of_columns(found.function, side, what)
    what = "class numbers" if ensemble.spec.has_classes else "original units"
    what = f"{', '.join(ensemble.target_names)}: {what}"
    observations = _of_columns(found.observations, "target", what)
    noisy = Group({"y": observations}, {"calibrated": _calibration_text(ensemble)})
    constants = {"x": Variable((_ROW, "feature"), points.x, "inputs")}
    if points.noise is not None:
        scale = _of_columns(points.noise, "target", "known standard deviations", sample=())
        constants["noise_scale"] = scale
    if points.rows is None:
        groups |= {"predictions": noisy, "predictions_constant_data": Group(constants)}
        return
    groups["posterior_predictive"] = noisy
    if found.log_likelihood is not None:
        density = "log density of the targets of each row together, original units"
        variable = Variable((*SAMPLE, _ROW), found.log_likelihood, density)
        groups["log_likelihood"] = Group({"y": variable})
    y = points.rows.y.astype(int) if ensemble.spec.has_classes else points.rows.y
    groups["observed_data"] = Group({"y": _of_columns(y, "target", what, sample=())})
    if ensemble.classes is not None:
        groups["observed_data"].attributes["classes"] = list(map(str, ensemble.classes))
    groups["constant_data"] = Group(constants)


def _of_columns(
    values: Array, side: str, description: str, sample: tuple[str, ...] = SAMPLE
) -> Variable:
    """A variable of values [..., N, columns]; a single column needs no dimension."""
    if values.shape[-1] == 1:
        return Variable((*sample, _ROW), values[..., 0], description)
    return Variable((*sample, _ROW, side), values, description)


def _calibration_text(ensemble: Ensemble) -> str:
    if ensemble.calibration is None:
        return "no: the model has no calibration"
    return (
        "no: draws of the posterior predictive distribution as it is. Those of "
        f"predict(include_noise=True) are calibrated: {ensemble.calibration.in_short}"
    )


def _origin(ensemble: Ensemble) -> dict[str, Any]:
    """Where the draws come from, as attributes that a netCDF file can hold."""
    said = ensemble.provenance.to_json() | {
        "warmup": "its draws are not kept",
        "coarsened": ensemble.spec.coarsening_note,
        "calibration": None if ensemble.calibration is None else ensemble.calibration.in_short,
        "weighting": weighting_note(ensemble),
        "model": ensemble.spec.to_json(),
    }
    plain = {
        name: value if type(value) in (str, int, float) else json.dumps(value)
        for name, value in said.items()
        if value is not None
    }
    return plain | {"chain_weights": ensemble.chain_weights.tolist()}


class Variable(NamedTuple):
    """A variable of ArviZ data.

    Attributes:
        dims: Names of all its dimensions.
        values: Of that many dimensions.
        description: What it is, in words.
    """

    dims: tuple[str, ...]
    values: Array
    description: str


Variables = dict[str, Variable]


def parameter_variables(ensemble: Ensemble) -> Variables:
    """Scales as positive numbers, then kernels and biases layer by layer, then theta as it is.

    The latter two are views of the draws, which takes no memory.
    """
    what = "all parameters in the coordinates they are sampled in, scales as their logarithms"
    theta = Variable((*SAMPLE, "param"), ensemble.draws, what)
    return dict(_scales(ensemble)) | dict(_weights(ensemble)) | {"theta": theta}


def coordinates(ensemble: Ensemble) -> dict[str, Array]:
    """Of every dimension of the variables: names where the model knows some, else numbers."""
    sides = _names_of_sides(ensemble)
    return sides | {"param": np.array(list(_parameter_names(ensemble, sides)))}


def layer_sides(ensemble: Ensemble) -> tuple[str, ...]:
    """Names of the dimensions between the layers, from the inputs to the outputs."""
    spec = perceptron(ensemble.spec, "to_arviz")
    hidden = [f"dense_{number}_unit" for number in range(1, len(spec.layer_sizes) - 1)]
    last = prediction_side(ensemble) if spec.layer_sizes[-1] == spec.num_predicted else "output"
    return ("feature", *hidden, last)


def prediction_side(ensemble: Ensemble) -> str:
    """Name of the dimension of a prediction's columns: "target", or "class" where one has several."""
    return "target" if ensemble.spec.num_predicted == ensemble.spec.num_targets else "class"


def _names_of_sides(ensemble: Ensemble) -> dict[str, Array]:
    spec = ensemble.spec
    common = {
        "feature": np.array(ensemble.input_names),
        "target": np.array(ensemble.target_names),
        "noise": np.arange(spec.layout.num_noise),
    }
    if isinstance(spec, KerasSpec):
        axes = [side for one in spec.sampled for side in zip(_axes(one), one.shape)]
        return common | {name: np.arange(size) for name, size in axes}
    sizes, sides = perceptron(spec, "to_arviz").layer_sizes, layer_sides(ensemble)
    targets, last = ensemble.target_names, np.arange(sizes[-1])
    if sides[-1] == "class":
        last = label_array(ensemble.classes or ())
    elif sides[-1] == "output":  # the first are of the targets, the others make their noise
        further = range(len(targets), sizes[-1])
        last = np.array([*targets, *(f"output {number + 1}" for number in further)])
    return {
        **{name: np.arange(size) for name, size in zip(sides[1:-1], sizes[1:-1])},
        sides[-1]: last,
        **common,
    }


def _weights(ensemble: Ensemble) -> Iterator[tuple[str, Variable]]:
    if isinstance(ensemble.spec, KerasSpec):
        yield from _keras_weights(ensemble.spec, ensemble.draws)
        return
    spec, sides = perceptron(ensemble.spec, "to_arviz"), layer_sides(ensemble)
    layers = spec.layout.kernels_and_biases(ensemble.draws)
    note = _note(spec)
    for index, (kernel, bias) in enumerate(layers):
        name, dims = f"dense_{index + 1}", (*SAMPLE, *sides[index : index + 2])
        yield f"{name}_kernel", Variable(dims, kernel, f"weights of layer {index + 1}{note}")
        dims = (*SAMPLE, sides[index + 1])
        yield f"{name}_bias", Variable(dims, bias, f"biases of layer {index + 1}{note}")


def _keras_weights(spec: KerasSpec, draws: Array) -> Iterator[tuple[str, Variable]]:
    for one, slot in spec.slots:
        values = draws[..., slot.weights].reshape(*draws.shape[:2], *one.shape)
        yield _name(one), Variable((*SAMPLE, *_axes(one)), values, f"{one.path}{_note(spec)}")


def _name(variable: SampledVariable) -> str:
    """Of a variable of a Keras model."""
    return variable.path.replace("/", "_")


def _axes(variable: SampledVariable) -> list[str]:
    """Names of its dimensions."""
    return [f"{_name(variable)}_axis_{axis}" for axis in range(len(variable.shape))]


def _note(spec: NetworkSpec) -> str:
    return ", which the network multiplies with prior scales and a width" if spec.is_ntk else ""


def _group_names(spec: NetworkSpec) -> list[str]:
    """Names of the weights of every prior."""
    if isinstance(spec, KerasSpec):
        return [_name(one) for one in spec.sampled]
    layers = range(1, len(perceptron(spec, "to_arviz").priors) + 1)
    return [f"dense_{layer}_{kind}" for layer in layers for kind in ("kernel", "bias")]


def _scales(ensemble: Ensemble) -> Iterator[tuple[str, Variable]]:
    layout, theta = ensemble.spec.layout, ensemble.draws
    if layout.num_noise:
        side = "target" if layout.num_noise == ensemble.spec.num_targets else "noise"
        what = "standard deviation of the noise, after the transform of the targets"
        values = _positive(theta[..., layout.log_noise_scale])
        yield "noise_scale", Variable((*SAMPLE, side), values, what)
    names = _group_names(ensemble.spec)
    for group, (prior, _, place) in zip(names, ensemble.spec.weight_groups()):
        if place.stop == place.start:
            continue
        name = f"{group}_scale"
        values, what = _positive(theta[..., place]), "sampled scale of a prior"
        if prior.per_input:
            yield name, Variable((*SAMPLE, "feature"), values, f"{what}, one per input")
        else:
            yield name, Variable(SAMPLE, values[..., 0], what)


def _positive(logarithms: Array) -> Array:
    return np.exp(logarithms.astype(np.float64))


def _parameter_names(ensemble: Ensemble, sides: dict[str, Array]) -> Iterator[str]:
    """Of the entries of theta, by the variables that they are in: "dense_1_kernel[mass, 0]"."""
    named = (("", _weights(ensemble)), ("log ", _scales(ensemble)))  # in the order of theta
    for prefix, variables in named:
        for name, variable in variables:
            for entry in product(*(map(str, sides[side]) for side in variable.dims[2:])):
                yield f"{prefix}{name}[{', '.join(entry)}]" if entry else f"{prefix}{name}"
