"""Registry of kernels, their JSON form, and the base of kernels that contain another kernel."""

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Self

from tfbnn.engine.kernels.base import KERNELS, Kernel
from tfbnn.engine.kernels.from_callable import CallableKernel
from tfbnn.spec.density_spec import Sampled
from tfbnn.spec.habits import hint
from tfbnn.spec.own_classes import import_name
from tfbnn.spec.settings_json import settings_from_json, settings_to_json

_CALLABLE = CallableKernel.__name__


def available() -> list[str]:
    """Return the names that `fit_posterior(kernel=...)` accepts."""
    return sorted(KERNELS)


def kernel_classes() -> dict[str, type[Kernel]]:
    """Return the settings classes by their class names, which files store."""
    return {KERNELS[name].__name__: KERNELS[name] for name in available()}


def resolve_kernel(kernel: Any) -> Kernel:
    """Turn a name, a settings object or a callable into settings that the runner can use."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) and kernel in KERNELS.values():
        return kernel()
    if isinstance(kernel, str):
        found = kernel_named(kernel)
        if found is None:
            raise ValueError(
                f"kernel must be one of {available()} in this version, received {kernel!r}."
                f"{hint(kernel, available())} Any other TFP kernel can be given as a callable "
                "target_log_prob_fn -> TransitionKernel."
            )
        return found()
    if callable(kernel):
        return CallableKernel(kernel)
    raise TypeError(
        f"kernel must be one of the names {available()}, an instance from tfbnn.kernels, or a "
        f"callable target_log_prob_fn -> TransitionKernel, received {kernel!r}."
    )


def kernel_named(name: str) -> type[Kernel] | None:
    """Find a settings class by kernel name or class name, ignoring case; None if there is none."""
    every = KERNELS | kernel_classes()
    return {_plain(known): found for known, found in every.items()}.get(_plain(name))


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def kernel_to_json(settings: Kernel) -> dict[str, Any]:
    """Convert settings to a JSON-compatible dict; a callable is stored by its qualified name only."""
    if isinstance(settings, CallableKernel):
        return {"name": _CALLABLE, "function": import_name(settings.function).replace(":", ".")}
    return settings_to_json(settings)


def kernel_from_json(entry: dict[str, Any]) -> Kernel:
    """Read the settings that `kernel_to_json` wrote; only names of registered samplers are accepted.

    Raises:
        ValueError: For any other entry, and for a kernel that the user built: a name from a file is
            never called.
        TypeError: For settings that the sampler does not have.
    """
    if isinstance(entry, dict) and entry.get("name") == _CALLABLE:
        raise ValueError(
            f"the kernel is the callable {entry.get('function')!r}, of which a file holds the name "
            "only. Go on with fit_posterior(..., output=, resume=True, kernel=that callable)."
        )
    return settings_from_json(entry, kernel_classes())


# Every public member of Kernel, delegated to the inner kernel.
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
    """Settings with an inner kernel, which provides every member that a subclass does not define.

    Attributes:
        inner: Inner kernel, by settings or by name.
    """

    inner: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner", resolve_kernel(self.inner))

    def resolve(self, spec: Sampled, num_rows: int) -> tuple[Self, str]:
        """Choose the inner preconditioner; return the settings with it, and the reason as a text."""
        inner, why = self.inner.resolve(spec, num_rows)
        instead = self.instead_of_whitening(spec)
        if instead is not None and inner.preconditioner == "gauss_newton":
            # An inner kernel that can whiten always has this setting.
            inner, why = replace(inner, preconditioner="diagonal"), instead  # type: ignore[call-arg]
        return replace(self, inner=inner), why

    def instead_of_whitening(self, spec: Sampled) -> str | None:
        """Return the reason for "diagonal" where `inner` would whiten, or None to allow whitening."""
        return None
