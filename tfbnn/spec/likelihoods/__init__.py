"""All likelihoods; importing this registers them."""

from tfbnn.spec.likelihoods.base import OPTIONS as OPTIONS
from tfbnn.spec.likelihoods.base import REGISTRY as REGISTRY
from tfbnn.spec.likelihoods.base import Likelihood as Likelihood
from tfbnn.spec.likelihoods.classes import Bernoulli as Bernoulli
from tfbnn.spec.likelihoods.classes import Categorical as Categorical
from tfbnn.spec.likelihoods.classes import ClassLikelihood as ClassLikelihood
from tfbnn.spec.likelihoods.regression import LEARNED as LEARNED
from tfbnn.spec.likelihoods.regression import Gaussian as Gaussian
from tfbnn.spec.likelihoods.regression import HeteroscedasticGaussian as HeteroscedasticGaussian
from tfbnn.spec.likelihoods.regression import LocationScale as LocationScale
from tfbnn.spec.likelihoods.regression import Regression as Regression
from tfbnn.spec.likelihoods.regression import StudentT as StudentT
