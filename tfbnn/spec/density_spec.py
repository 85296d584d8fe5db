"""The description of a log density of one's own: the functions that compute it, and their names."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar

# Batches of positions, tensors [C, P], -> log density, tensor [C].
Function = Callable[[Any], Any]

_KEYS = ("log_density", "num_parameters", "dtype")


@dataclass(frozen=True)
class DensitySpec:
    """A log density on P numbers: one function, or a log prior and a log likelihood.

    Attributes:
        names: Where the functions are defined, "module:name" each, as messages and files have them.
        num_parameters: P.
        dtype: "float32" or "float64".
        functions: The functions themselves; none of a spec that was read from a file, which never
            says what is to be called.
        identity: Of every call that brings functions another one, as what they have captured may be
            another: programs are compiled and kept for it.
    """

    names: tuple[str, ...]
    num_parameters: int
    dtype: str
    functions: tuple[Function, ...] = field(default=(), compare=False)
    identity: object = field(default=None, repr=False)

    num_units: ClassVar[int] = 1
    num_outputs: ClassVar[int] = 1
    widest: ClassVar[int] = 1
    is_smooth: ClassVar[bool] = True
    gauss_newton_obstacle: ClassVar[str] = "a log density has no Gauss-Newton matrix"

    @property
    def num_products(self) -> int:
        """P, as if every number were a weight."""
        return self.num_parameters

    def parameter_name(self, index: int) -> str:
        return f"coordinate {index}"

    def to_json(self) -> dict[str, Any]:
        return dict(zip(_KEYS, (list(self.names), self.num_parameters, self.dtype)))

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> DensitySpec:
        """What `to_json` wrote, without functions."""
        names, num_parameters, dtype = (entry[key] for key in _KEYS)
        return cls(tuple(map(str, names)), int(num_parameters), str(dtype))

    @staticmethod
    def describes(entry: dict[str, Any]) -> bool:
        """Whether this is what `to_json` of such a spec writes, and not that of a model."""
        return _KEYS[0] in entry

    def imported(self, names: Sequence[str]) -> DensitySpec:
        """The same with its functions, which the caller names because it trusts them.

        Raises:
            ValueError: When the spec has others.
            ImportError, AttributeError: When they are not there.
        """
        if tuple(names) != self.names:
            raise ValueError(f"The log density is {self.names}, received {tuple(names)}.")
        return replace(self, functions=tuple(map(_imported, names)), identity=object())

    @property
    def import_obstacle(self) -> str | None:
        """Why another process cannot import the functions, or None."""
        for name, function in zip(self.names, self.functions):
            module = name.partition(":")[0]
            if module == "__main__":
                return f"{name} is in a script or notebook, which other processes do not import"
            try:
                found = _imported(name)
            except (ImportError, AttributeError):
                found = None
            if found is not function:
                return (
                    f"{name} is no module-level function, as a lambda or one in a function is not"
                )
        return None


def name_of(function: Function) -> str:
    """Where a function is defined, "module:name"; of another callable its class."""
    place = function if hasattr(function, "__qualname__") else type(function)
    return f"{place.__module__}:{place.__qualname__}"


def _imported(name: str) -> Function:
    module, _, path = name.partition(":")
    found: Function = attrgetter(path)(importlib.import_module(module))
    return found
