"""Kernels that have another one inside."""

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Self

from tfbnn.engine.kernels.base import Kernel
from tfbnn.engine.kernels.registry import resolve_kernel
from tfbnn.spec.density_spec import Sampled

# Every public member of Kernel, taken from the kernel inside.
_OfInner = type(
    "_OfInner",
    (),
    {
        name: property(attrgetter(f"inner.{name}"), doc=f"`{name}` of the inner kernel.")
        for name in vars(Kernel)
        if not name.startswith("_")
    },
)


@dataclass(frozen=True)
class ComposedKernel(_OfInner, Kernel):  # type: ignore[misc, valid-type]
    """Settings with others inside: all that a subclass does not say itself is as `inner` says.

    Attributes:
        inner: The kernel inside, by settings or by name.
    """

    inner: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner", resolve_kernel(self.inner))

    def resolve(self, spec: Sampled, num_rows: int) -> tuple[Self, str]:
        """These settings with a definite preconditioner inside, and a line on why that one."""
        inner, why = self.inner.resolve(spec, num_rows)
        instead = self.instead_of_whitening(spec)
        if instead is not None and inner.preconditioner == "gauss_newton":
            # Whoever would whiten has the setting.
            inner, why = replace(inner, preconditioner="diagonal"), instead  # type: ignore[call-arg]
        return replace(self, inner=inner), why

    def instead_of_whitening(self, spec: Sampled) -> str | None:
        """The line on the diagonal that stands in where `inner` would whiten; None: let it."""
        return None
