"""Rows, specs and ensembles for tests, without TensorFlow."""

import numpy as np

from tfbnn.data.training_inputs import summarise_inputs
from tfbnn.data.transforms import fit_pipeline
from tfbnn.likelihoods import Gaussian
from tfbnn.posterior.arviz_data import Posterior
from tfbnn.posterior.provenance import Provenance
from tfbnn.priors import Normal
from tfbnn.run.config import FitConfig
from tfbnn.run.options import Sampling
from tfbnn.spec.model_spec import make_spec
from tfbnn.spec.rows import Rows


def make_rows(num_rows, num_inputs, num_targets, seed=0):
    """Inputs with unlike columns, and positive targets over about a decade."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(num_rows, num_inputs)) * 3.0 ** np.arange(num_inputs) + 2.0
    y = np.exp(0.7 * generator.normal(size=(num_rows, num_targets)) + 1.0)
    return x, y


def plain_spec(layer_sizes, **settings):
    """A ModelSpec on untransformed rows, in float64 where the settings say nothing else."""
    defaults = dict(
        activation="tanh",
        prior=Normal(1.0),
        likelihood=Gaussian("learned"),
        parameterization="standard",
        x_transform=None,
        y_transform=None,
        dtype="float64",
    )
    return make_spec(list(layer_sizes), **(defaults | settings))


def make_ensemble(spec, draws, x, y, statistics, **fields):
    """An Ensemble of draws [C, S, P] of a model that has seen x [N, K] and y [N, D].

    Args:
        spec: The model.
        draws: Its networks.
        x, y: Rows that the transforms are fitted to; the first ten are the reference.
        statistics: The sample statistics.
        **fields: Further ones of the Ensemble.
    """
    x_pipeline = fit_pipeline(spec.x_transform, x, "x")
    made = dict(
        spec=spec,
        x_pipeline=x_pipeline,
        y_pipeline=fit_pipeline(spec.y_transform, y, "y"),
        draws=draws,
        sample_stats=statistics,
        chain_weights=np.full(len(draws), 1.0 / len(draws)),
        x_reference=x[:10].copy(),
        training_inputs=summarise_inputs(x_pipeline.forward(x)),
    )
    return Posterior(**(made | fields))


def random_statistics(shape, generator):
    """Sample statistics [C, S] of a run that went well."""
    return {
        "lp": generator.normal(-100.0, 2.0, size=shape),
        "acceptance_rate": generator.uniform(0.6, 1.0, size=shape).astype(np.float32),
        "step_size": np.full(shape, 0.1, np.float32),
        "n_steps": np.full(shape, 8, np.int32),
        "diverging": generator.uniform(size=shape) < 0.1,
        "energy": generator.normal(size=shape),
    }


def synthetic_ensemble(
    layer_sizes=(2, 5, 1),
    *,
    num_chains=2,
    num_results=15,
    chain_weights=None,
    feature_names=None,
    row_noise=False,
    classes=None,
    vector_target=False,
    provenance=None,
    seed=0,
    **settings,
):
    """An Ensemble of random networks, for any model; `settings` are those of `plain_spec`."""
    defaults = dict(prior=Normal(0.8), x_transform="standardize", y_transform="auto")
    spec = plain_spec(layer_sizes, **(defaults | settings))
    spec = spec.closed(("standardize",), "most tests are about these units")
    generator = np.random.default_rng([seed, 1])
    shape, layout = (num_chains, num_results), spec.layout
    draws = generator.normal(size=(*shape, layout.num_parameters))
    draws[..., layout.num_weights :] *= 0.3
    # Learned noise around 0.3 standard deviations of the targets.
    draws[..., layout.log_noise_scale] -= 1.2
    fields = {} if chain_weights is None else {"chain_weights": np.array(chain_weights, float)}
    if classes is None and spec.has_classes:
        classes = tuple(range(spec.num_classes))
    return make_ensemble(
        spec,
        draws.astype(spec.dtype),
        *make_rows(50, spec.num_inputs, spec.num_targets, seed),
        random_statistics(shape, generator),
        feature_names=feature_names,
        row_noise=row_noise,
        classes=classes,
        vector_target=vector_target,
        provenance=Provenance.from_json(provenance or {}),
        **fields,
    )


def config_of_run(spec, x, y, temperatures=(1.0,), **sampling):
    """The FitConfig of a run on rows, as far as its draws depend on it from given starts on."""
    rows = Rows(x, y, None, None)
    sampling = Sampling(**sampling)
    return FitConfig(
        spec=spec,
        rows=rows,
        validation=None,
        kernel={},
        pretraining=None,
        sampling=sampling,
        environment={},
        temperatures=temperatures,
        provenance=Provenance(),
    )
