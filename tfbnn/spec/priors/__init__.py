"""Priors on weights and on positive scales: settings and draws, in NumPy.

Their log densities, in TensorFlow, are in `tfbnn.engine.density.densities`, registered for each class
(see `tfbnn.spec.required`); tests hold the two together.
Scale priors are densities of a positive scale s; s is sampled as log(s), and the density of log(s)
includes the Jacobian.
"""

from tfbnn.spec.priors.base import REGISTRY as REGISTRY
from tfbnn.spec.priors.base import SCALE_PRIORS as SCALE_PRIORS
from tfbnn.spec.priors.base import WEIGHT_PRIORS as WEIGHT_PRIORS
from tfbnn.spec.priors.base import ScalePrior as ScalePrior
from tfbnn.spec.priors.base import WeightPrior as WeightPrior
from tfbnn.spec.priors.base import check_scale_prior as check_scale_prior
from tfbnn.spec.priors.earlier import EarlierRows as EarlierRows
from tfbnn.spec.priors.layers import LayerPrior as LayerPrior
from tfbnn.spec.priors.layers import check_shapes as check_shapes
from tfbnn.spec.priors.layers import prior_per_input as prior_per_input
from tfbnn.spec.priors.layers import resolve_priors as resolve_priors
from tfbnn.spec.priors.scales import HalfCauchy as HalfCauchy
from tfbnn.spec.priors.scales import HalfNormal as HalfNormal
from tfbnn.spec.priors.scales import InverseGamma as InverseGamma
from tfbnn.spec.priors.scales import LogNormal as LogNormal
from tfbnn.spec.priors.weights import ARD as ARD
from tfbnn.spec.priors.weights import HierarchicalNormal as HierarchicalNormal
from tfbnn.spec.priors.weights import Laplace as Laplace
from tfbnn.spec.priors.weights import Normal as Normal
from tfbnn.spec.priors.weights import Uniform as Uniform
