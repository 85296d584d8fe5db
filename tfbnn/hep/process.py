"""Processes: a fitted network, what its numbers mean, and how wrong they may be besides.

A network knows how uncertain it is about the function that it was fitted to, and nothing of how
uncertain that function is. What is known of that, errors of scale, parton densities and alpha_s, is kept
beside it, and added in quadrature only where somebody asks for it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from tfbnn.data.validation import (
    as_float_array,
    check_choice,
    check_flag,
    check_integer,
    check_number,
)
from tfbnn.fit.model import SampledNetwork
from tfbnn.hep.slha import Place, check_place, place_text
from tfbnn.system.arrays import Array


@dataclass(frozen=True)
class Calculation:
    """Calculation of the targets of a process: the columns of an XSECTION line.

    They are those of the extension of SLHA that was proposed at Les Houches in 2013
    (https://phystev.cnrs.fr/wiki/2013:groups:tools:slha), which pyslha and SModelS read.

    Attributes:
        qcd_order: 0 Born, 1 NLO, 2 NLO + NLL; larger codes are written as they are.
        ew_order: The same of electroweak corrections; default 0.
        scale_scheme: What the central scale is: 0 (default) the mean mass of the two particles, 1
            fixed, 2 the partonic energy, 3 the transverse mass.
        kappa_f, kappa_r: Factorisation and renormalisation scale in units of the central one,
            default 1; with scale_scheme 1 the scales themselves in GeV.
        pdf_id: LHAPDF number of the parton densities; default 0, not known.

    Raises:
        TypeError, ValueError: For anything but such numbers.
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
        """Name -> number, in the order of the line."""
        order = ("scale_scheme", "qcd_order", "ew_order", "kappa_f", "kappa_r", "pdf_id")
        return {name: getattr(self, name) for name in order}


T = TypeVar("T")
# (down, up), relative to the central value, both >= 0.
Sides = tuple[float, float]


def check_errors(errors: Any, num_points: int | None = None) -> dict[str, Any]:
    """Check relative errors, a dict name -> number or (down, up), or an array of one for each point.

    Args:
        errors: What the user passed; None for none.
        num_points: N of arrays [N] or [N, 2]; None (default): errors are constant.

    Returns:
        Dict name -> (down, up), or array [N, 2].

    Raises:
        TypeError, ValueError: For anything but names and numbers >= 0 of these shapes.
    """
    errors = {} if errors is None else errors
    if not isinstance(errors, Mapping) or not all(isinstance(name, str) for name in errors):
        raise TypeError(
            "errors must be a dict name -> relative error or (down, up), such as "
            f"{{'scale': 0.05, 'pdf': (0.03, 0.02)}}, received {errors!r:.200}."
        )
    found: dict[str, Any] = {}
    for name, value in errors.items():
        is_constant = num_points is None or np.ndim(value) == 0 or isinstance(value, tuple)
        found[name] = _sides(name, value) if is_constant else _of_points(name, value, num_points)
    return found


def _sides(name: str, value: Any) -> Sides:
    parts = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(parts) != 2:
        raise ValueError(
            f"The error {name!r} must be one number or two, (down, up), received {value!r:.200}."
        )
    down, up = (check_number(f"the error {name!r}", part, minimum=0) for part in parts)
    return down, up


def _of_points(name: str, value: Any, num_points: int | None) -> Array:
    array = as_float_array(value, f"the error {name!r}")
    if array.shape == (num_points,):
        array = np.column_stack([array, array])
    if array.shape != (num_points, 2):
        raise ValueError(
            f"The error {name!r} must have shape [{num_points}] or [{num_points}, 2], one row per "
            f"point, received {list(array.shape)}."
        )
    bad = np.flatnonzero(~((array >= 0) & np.isfinite(array)).all(axis=1))
    if len(bad):
        raise ValueError(
            f"The error {name!r} must be >= 0 and finite, received {array[bad[0]].tolist()} at "
            f"point {bad[0]} (the first is 0). It is relative: 0.05 for 5 %."
        )
    return array


def in_quadrature(errors: Iterable[Array | Sides], num_points: int) -> Array:
    """Relative errors down and up [2, N] of some that are independent of each other."""
    total = sum(map(np.square, errors), start=np.zeros((num_points, 2)))
    return np.sqrt(total).T


Pids = tuple[int, int]  # PDG codes of two particles

# How many fb one unit of a target is.
FB = {"fb": 1.0, "pb": 1000.0}

# In GeV: above what the largest collider in sight, of 100 TeV, would be called in TeV, and below
# all that search for new particles.
_LEAST_ENERGY = 120.0
_DOI = re.compile(r"10\.[0-9]{4,9}/\S+")


@dataclass(frozen=True, eq=False)
class Process:
    """One production process: a fitted network, and what its numbers mean.

    Attributes:
        pids: PDG codes of the two produced particles, in any order.
        model: Fitted BayesianMLP with one target, the cross section.
        unit: "fb" or "pb", the unit of that target.
        energy: Centre-of-mass energy in GeV that the cross section is at: 13000, not 13.
        inputs: Dict input name -> SLHA place, ("MASS", 1000022) or ("NMIX", 1, 1). Where the model
            has feature names these are they; else their order is that of the columns of the fit.
        include_noise: Whether errors include the noise of the targets around the network; default
            True. False where that noise is not part of the cross section, and after a fit with
            known noise per row, which new points do not have.
        description: Free text: generator, order, parton densities.
        calculation: `Calculation`, what XSECTION blocks say of the targets: order, scales, parton
            densities; None (default) where it is not known, and no such block can be written.
        errors: Relative errors of other origin than the network, dict name -> number or (down, up):
            {"scale": 0.05, "pdf": (0.03, 0.02)}; kept as (down, up). They are added to the network's, in quadrature,
            only where that is asked for.
        citation: What whoever uses the numbers should cite: text or BibTeX.
        doi: Digital object identifier of the table, the networks or their paper: "10.1000/182".

    Raises:
        NotFittedError: For a model before its fit.
        TypeError, ValueError: For anything that does not fit together.
    """

    pids: Pids
    model: SampledNetwork
    unit: str
    energy: float
    inputs: dict[str, Place]
    include_noise: bool = True
    description: str = ""
    calculation: Calculation | None = None
    errors: Mapping[str, Any] = field(default_factory=dict)
    citation: str = ""
    doi: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.model, SampledNetwork):
            raise TypeError(
                f"model must be a BayesianMLP or BayesianModel, received {type(self.model).__name__}."
            )
        ensemble, spec = self.model.posterior, self.model.spec
        if spec.has_classes or spec.num_targets != 1:
            raise ValueError(
                "A process needs a model with one target, the cross section, received "
                f"{type(spec.likelihood).__name__} with {spec.num_targets}. Fit one per process."
            )
        inputs = check_inputs(self.inputs)
        if ensemble.coding is not None:
            raise ValueError(
                "A process takes numbers out of SLHA files, received a model with columns of text or "
                f"flags: {', '.join(column.name for column in ensemble.coding.coded)}. Fit without."
            )
        names = ensemble.feature_names or tuple(self.inputs)
        if set(names) != set(self.inputs) or len(names) != spec.num_inputs:
            raise ValueError(
                f"inputs must name the {spec.num_inputs} inputs of the model"
                f"{f', {list(names)}' if ensemble.feature_names else ''}, received "
                f"{list(self.inputs)}."
            )
        check_choice("unit", self.unit, FB)
        check_flag("include_noise", self.include_noise)
        if self.include_noise and ensemble.row_noise:
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
        object.__setattr__(self, "inputs", {name: inputs[name] for name in names})
        object.__setattr__(self, "errors", check_errors(self.errors))


def check_inputs(inputs: Any) -> dict[str, Place]:
    """A dict name -> SLHA place, with places as `check_place` gives them."""
    if not isinstance(inputs, dict) or not all(isinstance(name, str) for name in inputs):
        raise TypeError(f"inputs must be a dict name -> SLHA place, received {inputs!r}.")
    if "energy" in inputs:
        raise ValueError("No input can be called 'energy': that is the parameter for collisions.")
    return {name: check_place(place) for name, place in inputs.items()}


def check_energy(energy: Any) -> float:
    """A centre-of-mass energy in GeV as float; refuses what can only be one in TeV."""
    value = check_number("energy", energy, above=0)
    if value < _LEAST_ENERGY:
        raise ValueError(
            f"energy must be in GeV, received {value:g}, which is {value / 1000:g} TeV. For "
            f"{value:g} TeV pass {1000 * value:g}."
        )
    return value


def pid_pair(pids: Any) -> Pids:
    """PDG codes of two particles as a sorted tuple, as processes have no order."""
    codes = tuple(pids) if isinstance(pids, (tuple, list)) else ()
    if len(codes) != 2 or not all(hasattr(code, "__index__") for code in codes):
        raise TypeError(
            f"A process is named by two PDG codes, such as (1000022, 1000023), received {pids!r}."
        )
    first, second = sorted(map(int, codes))
    return first, second


def known_process(pids: Any, processes: Mapping[Pids, T]) -> T:
    """Return what there is of the process with these particles, in any order. Raises ValueError for none."""
    pids = pid_pair(pids)
    if pids not in processes:
        known = ", ".join(map(str, processes))
        raise ValueError(f"There is no process {pids}. Known: {known}.")
    return processes[pids]


def check_together(processes: Iterable[Process]) -> None:
    """Refuse particles that occur twice, and one name for two places."""
    known: set[Pids] = set()
    places: dict[str, Place] = {}
    for process in processes:
        if process.pids in known:
            raise ValueError(f"There are two processes {process.pids}; keep one.")
        known.add(process.pids)
        for name, place in process.inputs.items():
            if places.setdefault(name, place) != place:
                raise ValueError(
                    f"The input {name!r} of {process.pids} is {place_text(place)}, elsewhere it is "
                    f"{place_text(places[name])}. Give inputs that differ different names."
                )
