"""What samplers ask of what they sample: the posterior of a model, or a log density of one's own."""

from typing import Any, Protocol

from tfbnn.spec.network_spec import NetworkSpec


class Sampled(Protocol):
    """The description of a density of P numbers.

    Attributes:
        dtype: "float32" or "float64", of positions and gradients; sums are float64 in any case.
        num_parameters: P.
        num_products: Products that a row takes, about: one per weight, more where weights are shared.
        num_units, num_outputs, widest: Numbers that the network computes of each row: in all its
            layers, in the last, and in the widest; one each where there are no rows.
        is_smooth: Whether the gradient is continuous.
        gauss_newton_obstacle: Why there is no Gauss-Newton matrix to whiten coordinates by; None where
            there is one.
        own_names: Names of the functions or classes that its user defined, "module:name" each.
    """

    @property
    def dtype(self) -> str: ...
    @property
    def num_parameters(self) -> int: ...
    @property
    def num_products(self) -> int: ...
    @property
    def num_units(self) -> int: ...
    @property
    def num_outputs(self) -> int: ...
    @property
    def widest(self) -> int: ...
    @property
    def is_smooth(self) -> bool: ...
    @property
    def gauss_newton_obstacle(self) -> str | None: ...
    @property
    def own_names(self) -> tuple[str, ...]: ...
    def parameter_name(self, index: int) -> str:
        """A readable name of one of the numbers, for messages."""

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers."""


def model_of(spec: Sampled, what: str) -> NetworkSpec:
    """The spec, which has to be that of a model, of `what` there is no other kind.

    Raises:
        ValueError: For a log density.
    """
    if isinstance(spec, NetworkSpec):
        return spec
    raise ValueError(
        f"{what} is about networks, received a log density. Use one of kernel='nuts', 'hmc', 'mala'."
    )
