"""Whether a dtype can compute with the sizes that priors are about."""

from collections.abc import Iterator

import numpy as np

from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.priors import ScalePrior, WeightPrior

# Room, in powers of two, between the largest size and the largest number with a square: for draws
# that are larger than their scale, and for sums of them.
_ROOM = 4


def check_prior_sizes(spec: NetworkSpec) -> None:
    """Refuses priors whose scales the dtype of the model cannot square, either way.

    Densities and curvatures hold (w / s)^2 and 1 / s^2, which would be nothing, infinite or NaN.
    It is asked of new models only: files are read whatever they say.

    Raises:
        ValueError: Naming the prior, and the sizes that the dtype can do with.
    """
    limit = 2.0 ** (np.finfo(spec.dtype).maxexp // 2 - _ROOM)
    for prior in _priors(spec):
        bad = [size for size in prior.sizes if not 1.0 / limit <= size <= limit]
        if bad:
            raise ValueError(
                f"The sizes of a prior must lie between {1.0 / limit:.1g} and {limit:.1g} for "
                f"{spec.dtype}, received {bad[0]:.3g} of {prior!r}. Rescale inputs or targets, or "
                "use dtype='float64'."
            )


def _priors(spec: NetworkSpec) -> Iterator[WeightPrior | ScalePrior]:
    for prior, _, _ in spec.weight_groups():
        yield prior
    noise = getattr(spec.likelihood, "scale_prior", None)
    if noise is not None:
        yield noise
