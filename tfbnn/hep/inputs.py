"""Inputs of a process: numbers at SLHA places, and expressions of them.

    {"N13": "NMIX 1 3", "N14": "NMIX 1 4", "log_m": "log10(abs(MASS:1000022))", "z": "N13**2 - N14**2"}

The numbers at SLHA places are the parameters of a point. All expressions are computed from them. An
input that another input uses, such as N13 and N14, is not a feature of the network; all other
inputs are features.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from tfbnn.hep.expressions import Expression
from tfbnn.hep.slha import Place, check_place, place_text
from tfbnn.system.arrays import Array
from tfbnn.system.words import did_you_mean

Input: TypeAlias = Place | Expression
# More than a physical process has. Finding their order takes time quadratic in their number.
_MOST_INPUTS = 200
_PLACE = re.compile(r"[A-Za-z]\w*(\s+-?[0-9]+)*", re.ASCII)


def check_inputs(inputs: Any) -> dict[str, Input]:
    """Check the inputs of a process, a dict name -> SLHA place or expression.

    Returns:
        The dict with parsed SLHA places (see `check_place`) and parsed expressions.

    Raises:
        TypeError, ValueError: For other inputs, and for expressions that use unknown names or
            depend on themselves.
    """
    if not isinstance(inputs, dict) or not all(isinstance(name, str) for name in inputs):
        raise TypeError(
            "inputs must be a table (dict) of names and SLHA places or expressions, such as {'m_chi10_GeV': "
            f"'MASS 1000022', 'N11': 'NMIX 1 1'}}, received {inputs!r:.200}."
        )
    if "energy" in inputs:
        raise ValueError("An input cannot be called 'energy', the name of the collision energy.")
    if odd := [name for name in inputs if ":" in name or not name.isprintable()]:
        raise ValueError(f"Names of inputs must be printable without ':', received {odd[0]!r:.80}.")
    if len(inputs) > _MOST_INPUTS:
        raise ValueError(f"There can be at most {_MOST_INPUTS} inputs, received {len(inputs)}.")
    found = {name: _checked(name, one, inputs) for name, one in inputs.items()}
    for name, one in found.items():
        for part in _names_of(one) - found.keys():
            raise ValueError(
                f"The input {name!r}, {input_text(one)}, uses {part!r}, which is no input."
                f"{did_you_mean(part, found)} Places are written as MASS:1000022."
            )
    list(_in_order(found))
    return found


def _in_order(inputs: Mapping[str, Input]) -> Iterator[tuple[str, Input]]:
    """Yield inputs, each after those that it uses.

    Raises:
        ValueError: When there is no such order.
    """
    pending = dict(inputs)
    while pending:
        ready = [name for name, one in pending.items() if not _names_of(one) & pending.keys()]
        if not ready:
            raise ValueError(f"The inputs {', '.join(pending)} are made of each other.")
        yield from ((name, pending.pop(name)) for name in ready)


def _checked(name: str, given: Any, names: Collection[str]) -> Input:
    if isinstance(given, Expression):
        return given
    if not isinstance(given, str) or (given not in names and _PLACE.fullmatch(given.strip())):
        return check_place(given)
    try:
        return Expression(given)
    except ValueError as error:
        raise ValueError(
            f"The input {name!r} is neither an SLHA place, such as 'MASS 1000022', nor an expression: {error}"
        ) from error


def _names_of(one: Input) -> set[str]:
    """Return the names that an input uses, without SLHA places."""
    return {name for name in one.names if ":" not in name} if isinstance(one, Expression) else set()


def features_among(
    inputs: Mapping[str, Input], targets: Iterable[Expression] = ()
) -> tuple[str, ...]:
    """Return the names of a network's features: inputs that no other input and no target uses."""
    used = {name for one in (*inputs.values(), *targets) for name in _names_of(one)}
    return tuple(name for name in inputs if name not in used)


def places_of(inputs: Iterable[tuple[str, Input]]) -> dict[str, Place]:
    """Return the parameters that inputs depend on, dict name -> SLHA place.

    An SLHA place in an expression has the name used there, such as MASS:1000022.
    """
    found: dict[str, Place] = {}
    for name, one in inputs:
        if isinstance(one, Expression):
            used = (place for place in one.names if ":" in place)
            found |= {place: check_place(place.replace(":", " ")) for place in used}
        else:
            found[name] = one
    return found


def columns_of(available: Collection[str], places: Mapping[str, Place]) -> dict[str, str]:
    """Match parameters with available column names: dict parameter name -> column name.

    A column matches by the parameter's own name, another name of the same SLHA place, or the form
    used in expressions, MASS:1000022. Without a match, the parameter's own name is returned.
    """
    known = {":".join(map(str, place)): place for place in places.values()} | dict(places)
    others = {known[name]: name for name in available if name in known}
    return {
        name: name if name in available else others.get(place, name)
        for name, place in places.items()
    }


def input_text(one: Input) -> str:
    """Return an input in the notation of descriptions."""
    return one.text if isinstance(one, Expression) else place_text(one)


def unit_of(one: Input) -> str:
    """Return "GeV" for a mass, and an empty text for other inputs, which have no unit in SLHA."""
    return "GeV" if not isinstance(one, Expression) and one[0] == "MASS" else ""


def input_values(inputs: Mapping[str, Input], parameters: Mapping[str, Array]) -> dict[str, Array]:
    """Compute all inputs of N points; return them with the parameters, dict name -> [N].

    Args:
        inputs: Inputs as returned by `check_inputs`.
        parameters: Dict name -> [N] of all `places_of` the inputs.
    """
    found = dict(parameters)
    for name, one in _in_order(inputs):
        if isinstance(one, Expression):
            num_points = len(next(iter(parameters.values())))
            found[name] = np.broadcast_to(one(found), (num_points,))
    return found
