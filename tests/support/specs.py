"""Models of every likelihood, prior and parameterisation, with rows and weights to try them on."""

import numpy as np

from tests.support.builders import plain_spec
from tfbnn import likelihoods, priors
from tfbnn.engine.density.data import make_data

ARD = {"kernel": priors.ARD(priors.HalfNormal(1.5)), "bias": priors.HierarchicalNormal()}

MODELS = {
    "gaussian_fixed": dict(likelihood=likelihoods.Gaussian(0.3)),
    "gaussian_learned": dict(likelihood=likelihoods.Gaussian("learned")),
    "gaussian_per_output": dict(
        layer_sizes=[2, 4, 3], likelihood=likelihoods.Gaussian([0.1, 1, 2])
    ),
    "gaussian_two_learned": dict(
        layer_sizes=[2, 4, 2],
        likelihood=likelihoods.Gaussian("learned", scale_prior=priors.InverseGamma(2.0, 0.5)),
    ),
    "student_t": dict(
        likelihood=likelihoods.StudentT(3.5, "learned", scale_prior=priors.LogNormal(-1.0, 0.7))
    ),
    "student_t_fixed": dict(likelihood=likelihoods.StudentT(5.0, 0.4)),
    "heteroscedastic": dict(
        layer_sizes=[2, 4, 4], likelihood=likelihoods.HeteroscedasticGaussian()
    ),
    "bernoulli": dict(likelihood=likelihoods.Bernoulli()),
    "bernoulli_two": dict(layer_sizes=[2, 4, 2], likelihood=likelihoods.Bernoulli()),
    "categorical": dict(layer_sizes=[2, 4, 3], likelihood=likelihoods.Categorical()),
    "categorical_ntk": dict(
        layer_sizes=[2, 4, 4],
        likelihood=likelihoods.Categorical(),
        prior=priors.HierarchicalNormal(),
        parameterization="ntk",
    ),
    "laplace": dict(prior=priors.Laplace(0.7), activation="gelu"),
    "located": dict(
        layer_sizes=[2, 3, 1],
        prior=[
            {
                "kernel": priors.Normal([[0.5, 1, 2], [0.1, 3, 1]], loc=[[1, -1, 0], [0, 2, 0.5]]),
                "bias": priors.Normal([0.2, 1, 0.7]),
            },
            {"kernel": priors.Normal(0.8, loc=[[1], [0], [-2]]), "bias": priors.Normal(2, loc=-1)},
        ],
    ),
    "uniform": dict(prior=priors.Uniform(-4.0, 5.0), activation="relu"),
    "mixed_priors": dict(
        prior=[
            {"kernel": priors.Normal(2.0), "bias": priors.Laplace(0.5)},
            {
                "kernel": priors.HierarchicalNormal(priors.HalfNormal(2.0)),
                "bias": priors.Normal(3.0),
            },
        ]
    ),
    "hierarchical": dict(prior=priors.HierarchicalNormal()),
    "hierarchical_ntk": dict(
        prior=priors.HierarchicalNormal(priors.InverseGamma(1.5, 2.0)), parameterization="ntk"
    ),
    "ard": dict(layer_sizes=[3, 4, 1], prior=[ARD, priors.Laplace(0.8)]),
    "ard_ntk": dict(
        layer_sizes=[3, 2, 2],
        prior=[ARD, priors.HierarchicalNormal(priors.LogNormal(-0.5, 0.6))],
        parameterization="ntk",
    ),
    "ntk": dict(
        layer_sizes=[2, 5, 4, 1],
        activation=["sigmoid", "tanh"],
        prior={"kernel": priors.Normal(1.5), "bias": priors.Laplace(0.5)},
        parameterization="ntk",
    ),
    "linear": dict(layer_sizes=[2, 1]),
}
CLASSES = [name for name in MODELS if name.startswith(("bernoulli", "categorical"))]
# With and without a known noise scale per row, which classes do not have.
CASES = [
    (name, noise) for name in MODELS for noise in (False, True) if not (noise and name in CLASSES)
]
# Models unlike each other, of which the default run takes what costs much.
CONTRASTING = ["gaussian_learned", "student_t", "categorical", "mixed_priors", "ard_ntk"]
CONTRASTING_CASES = [(name, noise) for name, noise in CASES if name in CONTRASTING]


def build(name, dtype="float64"):
    settings = dict(MODELS[name])
    return plain_spec(settings.pop("layer_sizes", [2, 4, 1]), dtype=dtype, **settings)


def random_rows(spec, generator, count=11):
    x = generator.normal(size=(count, spec.num_inputs))
    if spec.has_classes:
        y = generator.integers(spec.num_classes, size=(count, spec.num_targets)).astype(float)
        return x, y, None
    y = generator.normal(size=(count, spec.num_targets))
    return x, y, generator.uniform(0.05, 0.5, size=y.shape)


def setting(name, with_row_noise=False, rows=11):
    spec, generator = build(name), np.random.default_rng(21)
    x, y, noise = random_rows(spec, generator, rows)
    data = make_data(x, y, noise if with_row_noise else None, spec.dtype)
    return spec, data, 0.7 * generator.normal(size=spec.layout.num_parameters)
