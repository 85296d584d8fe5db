"""Settings of synthetic ensembles that cover what predictions differ by."""

from tfbnn.likelihoods import HeteroscedasticGaussian, StudentT

LOG = ["log10", "standardize"]
CONFIGURATIONS = {
    "plain": {},
    "logarithm": {"y_transform": LOG},
    "no transform": {"y_transform": None},
    "two targets": {"layer_sizes": (2, 5, 2), "y_transform": LOG},
    "Student-t": {"likelihood": StudentT(3.5, 0.3)},
    "heteroscedastic": {"likelihood": HeteroscedasticGaussian(), "layer_sizes": (2, 5, 4)},
    "weighted chains": {"num_chains": 3, "chain_weights": [0.2, 0.7, 0.1]},
}
