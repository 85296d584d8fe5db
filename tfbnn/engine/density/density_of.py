"""Choice of the density for each kind of spec."""

from tfbnn.engine.density.infinite_width import Marginal
from tfbnn.engine.density.potential import Density, FunctionDensity, Potential
from tfbnn.spec.density_spec import DensitySpec, Sampled
from tfbnn.spec.infinite_spec import InfiniteSpec


def density_of(spec: Sampled) -> Density:
    """Return the density of theta that a spec describes."""
    if isinstance(spec, InfiniteSpec):
        return Marginal(spec)
    return FunctionDensity(spec) if isinstance(spec, DensitySpec) else Potential(spec)
