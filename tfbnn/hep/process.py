"""Production processes: a fitted network with its inputs, unit, energy and other errors.

A network states its uncertainty about the function that it was fitted to, not the uncertainty of
that function itself. Known errors of the function, those of scale, parton densities and alpha_s,
are stored beside the network, as constants or as networks of their own. They are added in
quadrature only on request.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast

import numpy as np

from tfbnn.data.validation import (
    check_choice,
    check_flag,
    check_integer,
    check_number,
)
from tfbnn.fit.model import SampledNetwork
from tfbnn.hep.errors import PointError, check_errors
from tfbnn.hep.expressions import Expression
from tfbnn.hep.inputs import (
    Input,
    check_inputs,
    features_among,
    input_text,
    input_values,
    places_of,
)
from tfbnn.hep.slha import Place
from tfbnn.system.arrays import Array


@dataclass(frozen=True)
class Calculation:
    """Order, scales and parton densities of a calculation: the columns of an XSECTION line.

    The columns are those of the extension of SLHA that was proposed at Les Houches in 2013
    (https://phystev.cnrs.fr/wiki/2013:groups:tools:slha), which pyslha and SModelS read.

    Attributes:
        qcd_order: QCD order: 0 Born, 1 NLO, 2 NLO + NLL. Larger codes are written unchanged.
        ew_order: Electroweak order, with the same codes; default 0.
        scale_scheme: Central scale: 0 (default) the mean mass of the two particles, 1 fixed, 2 the
            partonic energy, 3 the transverse mass.
        kappa_f, kappa_r: Factorisation and renormalisation scale in units of the central scale,
            default 1; with scale_scheme 1 the scales themselves in GeV.
        pdf_id: LHAPDF number of the parton densities; default 0, not known.

    Raises:
        TypeError, ValueError: For values that are not integers >= 0, or scales that are not > 0.
    """

    qcd_order: int
    ew_order: int = 0
    scale_scheme: int = 0
    kappa_f: float = 1.0
    kappa_r: float = 1.0
    pdf_id: int = 0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.type is int:
                value = check_integer(one.name, value, minimum=0)
            else:
                value = check_number(one.name, value, above=0)
            object.__setattr__(self, one.name, value)

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of an XSECTION line in order, dict name -> number."""
        order = ("scale_scheme", "qcd_order", "ew_order", "kappa_f", "kappa_r", "pdf_id")
        return {name: getattr(self, name) for name in order}


T = TypeVar("T")
Pids = tuple[int, int]  # PDG codes of two particles

# Size of each unit of a target, in fb.
FB = {"fb": 1.0, "pb": 1000.0}

# In GeV: above 100, the number of TeV of the largest planned collider, and below the energies of
# all colliders that search for new particles. A smaller number is an energy in TeV by mistake.
_LEAST_ENERGY = 120.0
_DOI = re.compile(r"10\.[0-9]{4,9}/\S+")


@dataclass(frozen=True, eq=False)
class Process:
    """Production process: a fitted network of its cross section, with inputs, unit and energy.

    Attributes:
        pids: PDG codes of the two produced particles, in any order.
        model: Fitted BayesianMLP with one target, the cross section.
        unit: Unit of that target, "fb" or "pb".
        energy: Centre-of-mass energy of the cross section in GeV: 13000, not 13.
        inputs: Dict name -> SLHA place, ("MASS", 1000022) or "NMIX 1 1", or expression of SLHA
            places and other inputs, "log10(abs(MASS:1000022))" (`tfbnn.hep.expressions`). If the
            model has feature names, these must be among the inputs. Otherwise its columns are the
            inputs that no other input uses, in their order.
        include_noise: Whether errors include the noise of the targets around the network; default
            True. Use False if that noise is not part of the cross section, and after a fit with
            known noise per row, which new points do not have.
        description: Free text: generator, order, parton densities.
        calculation: `Calculation` of the targets for XSECTION blocks: order, scales, parton
            densities. None (default): not known, and no such block can be written.
        errors: Relative errors of other origin than the network, dict name -> number or (down, up):
            {"scale": 0.05, "pdf": (0.03, 0.02)}; stored as (down, up). Instead of numbers there may
            be models with one target, the relative error, and features among the inputs:
            {"pdf": pdf_model}. They are added to the network's errors, in quadrature, only on
            request.
        citation: Text or BibTeX that users of the numbers should cite.
        doi: Digital object identifier of the table, the networks or their paper: "10.1000/182".
        target: Quantity that the model was fitted to, if it is not the cross section itself: an
            expression that can be solved for the cross section, such as "NLO / LO" with an input
            LO. The one name that is not an input is the cross section.

    Raises:
        NotFittedError: For a model before its fit.
        TypeError, ValueError: For arguments of a wrong type or value, or that contradict each
            other.
    """

    pids: Pids
    model: SampledNetwork
    unit: str
    energy: float
    inputs: Mapping[str, Input]
    include_noise: bool = True
    description: str = ""
    calculation: Calculation | None = None
    errors: Mapping[str, Any] = field(default_factory=dict)
    citation: str = ""
    doi: str = ""
    target: Expression | str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, SampledNetwork):
            raise TypeError(
                f"model must be a BayesianMLP or BayesianModel, received {type(self.model).__name__}."
            )
        inputs, errors = check_inputs(self.inputs), check_errors(self.errors)
        sides = (side for sides in errors.values() for side in sides)
        for model in (self.model, *(side for side in sides if isinstance(side, SampledNetwork))):
            if own := model.spec.own_names:
                raise ValueError(
                    f"A process cannot have a model with {own[0]}, because its folder holds no code. Fit the "
                    "model with classes of tfbnn."
                )
        target = _checked_target(self.target, inputs)
        columns = features_among(inputs, filter(None, [target]))
        features = features_of("A process", self.model, inputs, columns)
        used = {*features, *(target.names if target else ())}
        used |= {
            name for one in inputs.values() if isinstance(one, Expression) for name in one.names
        }
        for name, sides in errors.items():
            for side in sides:
                if isinstance(side, SampledNetwork):
                    used |= {*features_of(f"The error {name!r}", side, inputs, features)}
        if unused := [name for name in inputs if name not in used]:
            raise ValueError(
                f"The inputs {', '.join(unused)} are used neither by the model, {list(features)}, nor by an "
                "expression. Leave them out."
            )
        if not places_of(inputs.items()):
            raise ValueError(
                "A process needs an input at an SLHA place, received expressions of constants only."
            )
        check_choice("unit", self.unit, FB)
        check_flag("include_noise", self.include_noise)
        if self.include_noise and self.model.posterior.row_noise:
            raise ValueError(
                "The model was fitted with a known noise scale per row, which new points do not "
                "have. Use include_noise=False: errors are then of the function alone."
            )
        for name in ("description", "citation", "doi"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be text, received {getattr(self, name)!r:.200}.")
        if self.doi and not _DOI.fullmatch(self.doi):
            raise ValueError(f"doi must be like '10.1000/182', received {self.doi!r:.200}.")
        if not isinstance(self.calculation, Calculation | None):
            raise TypeError(
                f"calculation must be a Calculation or None, received {self.calculation!r:.200}."
            )
        object.__setattr__(self, "pids", pid_pair(self.pids))
        object.__setattr__(self, "energy", check_energy(self.energy))
        in_order = dict.fromkeys((*features, *inputs))
        object.__setattr__(self, "inputs", {name: inputs[name] for name in in_order})
        object.__setattr__(self, "errors", errors)
        object.__setattr__(self, "target", target)

    @property
    def places(self) -> dict[str, Place]:
        """Parameters that the process needs at a point, dict name -> SLHA place."""
        of_target = [("", self.target)] if isinstance(self.target, Expression) else []
        return places_of([*self.inputs.items(), *of_target])

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the model's inputs, in the order of its columns."""
        targets = [self.target] if isinstance(self.target, Expression) else []
        return self.model.posterior.feature_names or features_among(self.inputs, targets)

    @property
    def models(self) -> list[SampledNetwork]:
        """Networks of the process: that of the cross section first, then those of the errors."""
        sides = (side for sides in self.errors.values() for side in sides)
        networks = [side for side in sides if isinstance(side, SampledNetwork)]
        return list(dict.fromkeys([self.model, *networks]))

    def values(self, parameters: Mapping[str, Array]) -> dict[str, Array]:
        """Compute the inputs of N points; return parameters and inputs, dict name -> array [N].

        Args:
            parameters: Dict name -> [N] of all `places`.

        Raises:
            PointError: For a point at which an input of a model is not finite.
        """
        found = input_values(self.inputs, parameters)
        of_errors = (model.posterior.feature_names or () for model in self.models)
        for name in dict.fromkeys([*self.features, *itertools.chain(*of_errors)]):
            one, bad = self.inputs[name], np.flatnonzero(~np.isfinite(found[name]))
            if len(bad) and isinstance(one, Expression):
                used = ", ".join(f"{part} = {found[part][bad[0]]:g}" for part in one.names)
                found_there = f"{name} = {one.text} is not finite"
                raise PointError(found_there, bad, f", where {used}. Leave such points out.")
        return found

    def cross_sections(self, predicted: Array, values: Mapping[str, Array]) -> Array:
        """Compute the cross sections in fb [Q, N] from ascending quantiles of the model's target.

        Raises:
            ValueError: For points where the target gives no finite cross section, or descending
                quantiles, as with a negative divisor.
        """
        if isinstance(self.target, Expression):
            (name,) = _unknown(self.target, self.inputs)
            predicted = self.target.solve(name, predicted, values)
            rises = np.isfinite(predicted).all(axis=0) & (np.diff(predicted, axis=0) >= 0).all(
                axis=0
            )
            if not rises.all():
                found = f"The target {self.target.text!r} gives no cross section"
                advice = ". Leave out points where what it uses is not above 0."
                raise PointError(found, np.flatnonzero(~rises), advice)
        return predicted * FB[self.unit]

    def relative_errors(self, name: str, values: Mapping[str, Array], num_points: int) -> Array:
        """Compute a relative error of other origin, down and up [N, 2].

        A network's prediction is its median, or 0 where the median is negative.
        """
        down, up = self.errors[name]
        if not isinstance(down, SampledNetwork):
            return np.broadcast_to([down, up], (num_points, 2))
        sides = [_median(one, self.features, values) for one in dict.fromkeys((down, up))]
        return np.column_stack([sides[0], sides[-1]])


def _median(model: SampledNetwork, features: Sequence[str], values: Mapping[str, Array]) -> Array:
    """Compute the median [N] of a model with one target; negative values become 0."""
    names = model.posterior.feature_names or features
    x = np.column_stack([values[name] for name in names])
    prediction = model.predict(x, include_noise=False, quantiles=[0.5])
    return np.maximum(cast(Array, prediction.columns.quantiles)[0, :, 0], 0.0)


def features_of(
    what: str, model: SampledNetwork, inputs: Mapping[str, Input], features: Sequence[str]
) -> tuple[str, ...]:
    """Return the feature names of a model with one target, in the order of its columns.

    Args:
        what: Subject of error messages, such as "A process".
        model: Model.
        inputs: The available inputs.
        features: Feature names of a model that has no names of its own.

    Raises:
        NotFittedError: For a model before its fit.
        ValueError: For a model with several targets or classes, with columns of text, or with
            features that are not among the inputs.
    """
    ensemble, spec = model.posterior, model.spec
    if spec.has_classes or spec.num_targets != 1:
        raise ValueError(
            f"{what} needs a model with one target, received {type(spec.likelihood).__name__} with "
            f"{spec.num_targets}. Fit one for each."
        )
    if ensemble.coding is not None:
        raise ValueError(
            f"{what} needs inputs that are numbers, received a model with columns of text or flags: "
            f"{', '.join(column.name for column in ensemble.coding.coded)}. Fit it without them."
        )
    names = ensemble.feature_names or tuple(features)
    if not {*names} <= inputs.keys() or len(names) != spec.num_inputs:
        raise ValueError(
            f"inputs must name the {spec.num_inputs} inputs of the model"
            f"{f', {list(names)}' if ensemble.feature_names else ''}, received {list(inputs)}."
        )
    return names


def _unknown(target: Expression, inputs: Mapping[str, Input]) -> list[str]:
    """Return the names in a target that are not inputs, such as that of the cross section."""
    return [name for name in target.names if ":" not in name and name not in inputs]


def _checked_target(target: Any, inputs: Mapping[str, Input]) -> Expression | None:
    """Check that a target can be solved for the cross section, and return it as an expression.

    Returns:
        The expression, or None where the target is the cross section itself.
    """
    if target is None:
        return None
    target = target if isinstance(target, Expression) else Expression(target)
    unknown = _unknown(target, inputs)
    if len(unknown) != 1:
        raise ValueError(
            f"target must have exactly one name that is not an input, the cross section, received "
            f"{target.text!r} with {unknown}. Add inputs for the others."
        )
    target.solve(unknown[0], np.ones(1), dict.fromkeys(target.names, 1.0))
    return None if target.names == (target.text,) else target  # the cross section itself


def check_energy(energy: Any) -> float:
    """Check a centre-of-mass energy in GeV; refuse small numbers, which can only be in TeV."""
    value = check_number("energy", energy, above=0)
    if value < _LEAST_ENERGY:
        raise ValueError(
            f"energy must be in GeV, received {value:g}, which is {value / 1000:g} TeV. For "
            f"{value:g} TeV pass {1000 * value:g}."
        )
    return value


def pid_pair(pids: Any) -> Pids:
    """Return the PDG codes of two particles as a sorted tuple: their order has no meaning."""
    codes = tuple(pids) if isinstance(pids, (tuple, list)) else ()
    if len(codes) != 2 or not all(hasattr(code, "__index__") for code in codes):
        raise TypeError(
            f"A process is named by two PDG codes, such as (1000022, 1000023), received {pids!r}."
        )
    first, second = sorted(map(int, codes))
    return first, second


def known_process(pids: Any, processes: Mapping[Pids, T]) -> T:
    """Look up a process by its particles, in any order.

    Raises:
        ValueError: When there is no such process.
    """
    pids = pid_pair(pids)
    if pids not in processes:
        known = ", ".join(map(str, processes))
        raise ValueError(f"There is no process {pids}. Known: {known}.")
    return processes[pids]


def check_together(processes: Iterable[Any]) -> None:
    """Check that no pair of particles occurs twice, and no name stands for two SLHA places.

    Args:
        processes: Objects with `pids` and `places`, each a `Process` or its table.
    """
    known: set[Pids] = set()
    places: dict[str, Place] = {}
    for process in processes:
        if process.pids in known:
            raise ValueError(f"There are two processes {process.pids}; keep one.")
        known.add(process.pids)
        for name, place in process.places.items():
            if places.setdefault(name, place) != place:
                raise ValueError(
                    f"The input {name!r} of {process.pids} is {input_text(place)}, elsewhere it is "
                    f"{input_text(places[name])}. Give inputs that differ different names."
                )
