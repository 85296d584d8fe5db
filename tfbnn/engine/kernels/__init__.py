"""The samplers, one file each. A new one adds its file, its import and its entry here."""

from tfbnn.engine.kernels.chees import ChEESHMC
from tfbnn.engine.kernels.from_callable import CallableKernel
from tfbnn.engine.kernels.hmc import HMC
from tfbnn.engine.kernels.mala import MALA
from tfbnn.engine.kernels.microcanonical import Microcanonical
from tfbnn.engine.kernels.nuts import NUTS
from tfbnn.engine.kernels.power_posterior import PowerPosterior
from tfbnn.engine.kernels.random_walk import RandomWalkMetropolis
from tfbnn.engine.kernels.repriorised import Repriorised
from tfbnn.engine.kernels.smmala import SMMALA
from tfbnn.engine.kernels.truncated_mala import TruncatedMALA
from tfbnn.engine.kernels.underdamped import UnderdampedLangevin
from tfbnn.spec.settings_json import settings_from_json, settings_to_json

__all__ = [
    "ChEESHMC",
    "HMC",
    "MALA",
    "Microcanonical",
    "NUTS",
    "PowerPosterior",
    "RandomWalkMetropolis",
    "Repriorised",
    "SMMALA",
    "TruncatedMALA",
    "UnderdampedLangevin",
    "available",
]

_KERNELS = {
    "chees_hmc": ChEESHMC,
    "hmc": HMC,
    "mala": MALA,
    "microcanonical": Microcanonical,
    "nuts": NUTS,
    "power_posterior": PowerPosterior,
    "random_walk_metropolis": RandomWalkMetropolis,
    "repriorised": Repriorised,
    "smmala": SMMALA,
    "truncated_mala": TruncatedMALA,
    "underdamped_langevin": UnderdampedLangevin,
}
# Class names are understood too, in any case.
_BY_PLAIN_NAME = {name.replace("_", ""): kernel for name, kernel in _KERNELS.items()}

_BY_CLASS_NAME = {kernel.__name__: kernel for kernel in _KERNELS.values()}
_CALLABLE = "CallableKernel"


def available():
    """The names that `fit_posterior(kernel=...)` understands."""
    return sorted(_KERNELS)


def resolve_kernel(kernel):
    """Turns a name, a settings object or a callable into settings that the runner can use."""
    if isinstance(kernel, tuple(_KERNELS.values())):
        return kernel
    if isinstance(kernel, type) and kernel in _KERNELS.values():
        return kernel()
    if isinstance(kernel, str):
        plain = kernel.lower().replace("_", "")
        if plain not in _BY_PLAIN_NAME:
            raise ValueError(
                f"kernel must be one of {available()} in this version, received {kernel!r}. "
                "Any other TFP kernel can be given as a callable "
                "target_log_prob_fn -> TransitionKernel."
            )
        return _BY_PLAIN_NAME[plain]()
    if callable(kernel):
        return CallableKernel(kernel)
    raise TypeError(
        f"kernel must be one of the names {available()}, an instance from tfbnn.kernels, or a "
        f"callable target_log_prob_fn -> TransitionKernel, received {kernel!r}."
    )


def kernel_to_json(settings):
    """Settings as a JSON-able dict; of a kernel that the user built, its qualified name only."""
    if isinstance(settings, CallableKernel):
        return {"name": _CALLABLE, "function": _qualified_name(settings.function)}
    return settings_to_json(settings)


def kernel_from_json(entry):
    """The settings that `kernel_to_json` wrote; names are looked up among the samplers only.

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
    return settings_from_json(entry, _BY_CLASS_NAME)


def _qualified_name(function):
    place = function if hasattr(function, "__qualname__") else type(function)
    return f"{place.__module__}.{place.__qualname__}"
