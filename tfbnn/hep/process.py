"""A cross-section process: a fitted network, and what its numbers mean."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tfbnn.data.validation import check_choice, check_flag, check_number
from tfbnn.fit.model import SampledNetwork
from tfbnn.hep.calculation import Calculation
from tfbnn.hep.other_errors import check_errors
from tfbnn.hep.slha import Place, check_place, place_text

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
            check_text(name, getattr(self, name))
        if not isinstance(self.calculation, Calculation | None):
            raise TypeError(
                f"calculation must be a Calculation or None, received {self.calculation!r:.200}."
            )
        keep = {
            "pids": pid_pair(self.pids),
            "energy": check_energy(self.energy),
            "inputs": {name: inputs[name] for name in names},
            "errors": check_errors(self.errors),
        }
        for name, value in keep.items():
            object.__setattr__(self, name, value)


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


def check_text(name: str, value: Any) -> str:
    """A description, citation or doi; a doi is empty or one, without what stands before "10."."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, received {value!r:.200}.")
    if name == "doi" and value and not _DOI.fullmatch(value):
        raise ValueError(f"doi must be like '10.1000/182', received {value!r:.200}.")
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


class _Named(Protocol):
    """A process, or what is to become one."""

    @property
    def pids(self) -> Pids: ...

    @property
    def inputs(self) -> dict[str, Place]: ...


def check_together(processes: Iterable[_Named]) -> None:
    """Refuses particles that occur twice, and one name for two places."""
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
