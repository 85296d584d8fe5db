"""What draws are judged by: their coordinates, or what the caller makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfbnn.diagnostics.agreement import Agreement
from tfbnn.system.arrays import Array

# What the draws themselves and their dimensions are called.
_RESERVED = {"theta", "param", "chain", "draw"}

Quantities = dict[str, Array]
OfDraws = Callable[[Array], Any]


def quantities_of(draws: Array, function: OfDraws | None) -> Quantities:
    """What the draws [C, S, P] are judged by: dict name -> [C, S, ...].

    Raises:
        TypeError, ValueError: For a function that makes something else of them.
    """
    if function is None:
        return {"theta": draws}
    found = function(draws)
    parts = dict(found) if isinstance(found, dict) else {"quantity": found}
    arrays = {str(name): np.asarray(part) for name, part in parts.items()}
    reserved = sorted(_RESERVED & set(arrays))
    if reserved:
        raise ValueError(
            f"quantities must have names but {sorted(_RESERVED)}, received {reserved}."
        )
    for name, array in arrays.items():
        if array.shape[:2] != draws.shape[:2] or array.dtype.kind not in "fiub":
            raise ValueError(
                f"quantities must make arrays of numbers {list(draws.shape[:2])} + [...] of draws "
                f"{list(draws.shape)}, or a dict of them, received {array.dtype} "
                f"{list(array.shape)} for {name!r}."
            )
    return {name: array.astype(np.float64, copy=False) for name, array in arrays.items()}


def agreement_of(quantities: Quantities, log_prob: Array) -> Agreement:
    """Whether chains agree on quantities and on their log density [C, S]."""
    _, values = columns(quantities)
    return Agreement.measure(values[..., None], log_prob)


def columns(quantities: Quantities) -> tuple[Sequence[str], Array]:
    """(Names, values [C, S, Q]) of all entries of all quantities."""
    names: list[str] = []
    for name, array in quantities.items():
        if array.ndim == 2:
            names.append(name)
        else:
            places = np.ndindex(*array.shape[2:])
            names.extend(f"{name}[{', '.join(map(str, place))}]" for place in places)
    flat = [array.reshape(*array.shape[:2], -1) for array in quantities.values()]
    return names, np.concatenate(flat, axis=2)
