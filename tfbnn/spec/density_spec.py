"""Descriptions of what is sampled: the posterior of a model, or a user's own log density."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from tfbnn.spec.network_parts import NetworkFacts
from tfbnn.spec.network_spec import NetworkSpec

# Batch of positions, tensor [C, P] -> log densities, tensor [C].
Function = Callable[[Any], Any]

_KEYS = ("log_density", "num_parameters", "dtype")


@dataclass(frozen=True)
class DensitySpec:
    """A log density of P numbers: one function, or a log prior and a log likelihood.

    Attributes:
        own_names: Where the functions are defined, each as "module:name", for messages and files.
        num_parameters: P.
        dtype: "float32" or "float64".
        functions: The functions themselves. A spec that was read from a file has none, because a
            file never says what to call.
        identity: An object that is new in every call that brings functions, because the values that
            they captured may differ. Compiled programs are kept for it.
    """

    own_names: tuple[str, ...]
    num_parameters: int
    dtype: str
    functions: tuple[Function, ...] = field(default=(), compare=False)
    identity: object = field(default=None, repr=False)

    num_outputs: ClassVar[int] = 1
    num_earlier: ClassVar[int] = 0
    likelihood_power: ClassVar[float] = 1.0
    gains_from_xla: ClassVar[bool] = True

    @property
    def network(self) -> NetworkFacts:
        """Facts as if every number were a weight."""
        ones = dict.fromkeys(("num_outputs", "num_units", "widest"), 1)
        obstacle, products = "a log density has no Gauss-Newton matrix", self.num_parameters
        return NetworkFacts(
            **ones, input_shape=(1,), num_products=products, is_smooth=True, no_jacobian=obstacle
        )

    def parameter_name(self, index: int) -> str:
        return f"coordinate {index}"

    def to_json(self) -> dict[str, Any]:
        return dict(zip(_KEYS, (list(self.own_names), self.num_parameters, self.dtype)))

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> DensitySpec:
        """Rebuild a spec that `to_json` wrote, without functions."""
        names, num_parameters, dtype = (entry[key] for key in _KEYS)
        return cls(tuple(map(str, names)), int(num_parameters), str(dtype))

    @staticmethod
    def describes(entry: dict[str, Any]) -> bool:
        """Check whether an entry is that of a log density, not that of a model."""
        return _KEYS[0] in entry


# The description of a density of P numbers. Both classes have `dtype`, `num_parameters`, `num_outputs`,
# `num_earlier`, `likelihood_power`, `gains_from_xla`, `network`, `own_names`, `parameter_name` and `to_json`; see
# `NetworkSpec`.
Sampled: TypeAlias = NetworkSpec | DensitySpec


def model_of(spec: Sampled, what: str) -> NetworkSpec:
    """Return the spec if it describes a model; `what` is the feature that needs one.

    Raises:
        ValueError: For a log density.
    """
    if isinstance(spec, NetworkSpec):
        return spec
    raise ValueError(
        f"{what} is about networks, received a log density. Use one of kernel='nuts', 'hmc', 'mala'."
    )
