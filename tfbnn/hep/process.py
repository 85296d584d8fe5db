"""A cross-section process: a fitted network, and what its numbers mean."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tfbnn.data.validation import check_choice, check_flag, check_number
from tfbnn.fit.model import BayesianMLP
from tfbnn.hep.slha import Place, check_place, place_text

Pids = tuple[int, int]  # PDG codes of two particles

# How many fb one unit of a target is.
FB = {"fb": 1.0, "pb": 1000.0}


@dataclass(frozen=True, eq=False)
class Process:
    """One production process: a fitted network, and what its numbers mean.

    Attributes:
        pids: PDG codes of the two produced particles, in any order.
        model: Fitted BayesianMLP with one target, the cross section.
        unit: "fb" or "pb", the unit of that target.
        energy: Centre-of-mass energy in GeV that the cross section is at.
        inputs: Dict input name -> SLHA place, ("MASS", 1000022) or ("NMIX", 1, 1). Where the model
            has feature names these are they; else their order is that of the columns of the fit.
        include_noise: Whether errors include the noise of the targets around the network; default
            True. False where that noise is not part of the cross section, and after a fit with
            known noise per row, which new points do not have.
        description: Free text: generator, order, parton densities.

    Raises:
        NotFittedError: For a model before its fit.
        TypeError, ValueError: For anything that does not fit together.
    """

    pids: Pids
    model: BayesianMLP
    unit: str
    energy: float
    inputs: dict[str, Place]
    include_noise: bool = True
    description: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.model, BayesianMLP):
            raise TypeError(f"model must be a BayesianMLP, received {type(self.model).__name__}.")
        ensemble, spec = self.model.posterior, self.model.spec
        if spec.has_classes or spec.num_targets != 1:
            raise ValueError(
                "A process needs a model with one target, the cross section, received "
                f"{type(spec.likelihood).__name__} with {spec.num_targets}. Fit one per process."
            )
        if not isinstance(self.inputs, dict) or not all(isinstance(n, str) for n in self.inputs):
            raise TypeError(f"inputs must be a dict name -> SLHA place, received {self.inputs!r}.")
        names = ensemble.feature_names or tuple(self.inputs)
        if set(names) != set(self.inputs) or len(names) != spec.num_inputs:
            raise ValueError(
                f"inputs must name the {spec.num_inputs} inputs of the model"
                f"{f', {list(names)}' if ensemble.feature_names else ''}, received "
                f"{list(self.inputs)}."
            )
        if "energy" in names:
            raise ValueError(
                "No input can be called 'energy': that is the parameter for collisions."
            )
        check_choice("unit", self.unit, FB)
        check_flag("include_noise", self.include_noise)
        if self.include_noise and ensemble.row_noise:
            raise ValueError(
                "The model was fitted with a known noise scale per row, which new points do not "
                "have. Use include_noise=False: errors are then of the function alone."
            )
        if not isinstance(self.description, str):
            raise TypeError(f"description must be text, received {self.description!r}.")
        keep = {
            "pids": pid_pair(self.pids),
            "energy": check_number("energy", self.energy, above=0),
            "inputs": {name: check_place(self.inputs[name]) for name in names},
        }
        for name, value in keep.items():
            object.__setattr__(self, name, value)


def pid_pair(pids: Any) -> Pids:
    """PDG codes of two particles as a sorted tuple, as processes have no order."""
    codes = tuple(pids) if isinstance(pids, (tuple, list)) else ()
    if len(codes) != 2 or not all(hasattr(code, "__index__") for code in codes):
        raise TypeError(
            f"A process is named by two PDG codes, such as (1000022, 1000023), received {pids!r}."
        )
    first, second = sorted(map(int, codes))
    return first, second


def check_together(processes: Iterable[Process]) -> None:
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
