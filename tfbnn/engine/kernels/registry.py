"""Kernels by name, by class, by callable and from JSON, and kernels that have another one inside."""

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Self

from tfbnn.engine.kernels.base import KERNELS, Kernel
from tfbnn.engine.kernels.from_callable import CallableKernel
from tfbnn.spec.density_spec import Sampled
from tfbnn.spec.habits import FORMER, hint, without_former
from tfbnn.spec.own_classes import import_name
from tfbnn.spec.settings_json import settings_from_json, settings_to_json

_CALLABLE = CallableKernel.__name__


def available() -> list[str]:
    """Return the names that `fit_posterior(kernel=...)` understands."""
    return sorted(KERNELS)


def kernel_classes() -> dict[str, type[Kernel]]:
    """Return the settings' classes by their own names, as files hold them."""
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
    """Return the settings' class of a name, of a kernel or of its class, in any case; None: there is none."""
    every = KERNELS | kernel_classes()
    return {_plain(known): found for known, found in every.items()}.get(_plain(name))


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def kernel_to_json(settings: Kernel) -> dict[str, Any]:
    """Return settings as a JSON-able dict; of a kernel that the user built, its qualified name only."""
    if isinstance(settings, CallableKernel):
        return {"name": _CALLABLE, "function": import_name(settings.function).replace(":", ".")}
    return settings_to_json(settings)


def kernel_from_json(entry: dict[str, Any]) -> Kernel:
    """Return the settings that `kernel_to_json` wrote; names are looked up among the samplers only.

    Raises:
        ValueError: For anything that is none of them, and for a kernel that the user built: a name
            in a file is not called.
        TypeError: For settings that the sampler does not have.
    """
    if isinstance(entry, dict) and entry.get("name") == _CALLABLE:
        raise ValueError(
            f"the kernel is the callable {entry.get('function')!r}, of which a file holds the name "
            "only. Go on with fit_posterior(..., output=, resume=True, kernel=that callable)."
        )
    if isinstance(entry, dict):
        if entry.get("name") in FORMER:
            raise ValueError(
                f"the kernel {entry['name']} was removed. {FORMER[entry['name']]} tfbnn.load still reads "
                "the draws so far."
            )
        entry = without_former(entry)
    return settings_from_json(entry, kernel_classes())


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
        """Return these settings with a definite preconditioner inside, and a line on why that one."""
        inner, why = self.inner.resolve(spec, num_rows)
        instead = self.instead_of_whitening(spec)
        if instead is not None and inner.preconditioner == "gauss_newton":
            # Whoever would whiten has the setting.
            inner, why = replace(inner, preconditioner="diagonal"), instead  # type: ignore[call-arg]
        return replace(self, inner=inner), why

    def instead_of_whitening(self, spec: Sampled) -> str | None:
        """Return the line on the diagonal that stands in where `inner` would whiten; None: let it."""
        return None
