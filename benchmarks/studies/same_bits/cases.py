"""The cases of benchmarks/studies/same_bits/run.py: tiny fits, by the public interface alone."""

from dataclasses import dataclass, field

import numpy as np

import tfbnn
from tfbnn import kernels, likelihoods, priors

# Enough for kernels to whiten 18 parameters by themselves.
NUM_TRAINING = 80
# The windows of warm-up renew the preconditioner once; the sampling phase takes two blocks.
FIT = {
    "num_chains": 2,
    "num_results": 67,
    "num_burnin_steps": 60,
    "pretraining": None,
    "seed": 3,
    "verbose": 0,
}
# For kernels that would refuse nearly all proposals otherwise; two blocks again.
LONGER = {"num_results": 261, "num_burnin_steps": 250}
ADAM = tfbnn.Pretraining(epochs=10, newton_iterations=0)
NEWTON = tfbnn.Pretraining(epochs=10, newton_iterations=15)
LADDER = kernels.PowerPosterior("hmc", num_temperatures=4)
COLLAPSED = kernels.Repriorised("hmc", collapse_readout=True)


@dataclass(frozen=True)
class Case:
    """One fit and what is done with it.

    Attributes:
        fit: Arguments of `fit_posterior` that differ from FIT.
        model: Arguments of `BayesianMLP` besides the layer sizes.
        layers: The layer sizes.
        targets: Key of TARGETS.
        known_noise: Whether the noise of every row is known.
        output: Whether draws stream to a run folder, which is compared too.
        stop: The phase in which the fit is stopped in its run folder, to be resumed from there
            besides the one that nothing interrupts; None for no such thing.
        then: What is done with the fitted model: "stack", "compress", "export", or None.
        cluster: Whether `tfbnn.cluster.fit` makes the fit, on two worker processes of Dask.
    """

    fit: dict = field(default_factory=dict)
    model: dict = field(default_factory=dict)
    layers: tuple = (2, 4, 1)
    targets: str = "smooth"
    known_noise: bool = False
    output: bool = False
    stop: str | None = None
    then: str | None = None
    cluster: bool = False

    def rows(self):
        """(x [90, 2], y, noise): the first NUM_TRAINING are fitted, the others held out."""
        generator = np.random.default_rng(7)
        x = generator.uniform(0.5, 2.0, size=(90, 2))
        y = TARGETS[self.targets](x, generator)
        return x, y, 0.1 + 0.1 * x[:, 0] if self.known_noise else None


def walk(target_log_prob_fn):
    """A kernel that a user builds."""
    import tensorflow_probability as tfp

    return tfp.mcmc.HamiltonianMonteCarlo(
        target_log_prob_fn, step_size=np.float32(0.02), num_leapfrog_steps=4
    )


def _smooth(x, generator):
    return np.sin(3 * x[:, 0]) * x[:, 1] + 0.3 * generator.normal(size=len(x))


def _two(x, generator):
    return np.stack([_smooth(x, generator), _smooth(x[:, ::-1], generator)], axis=1)


TARGETS = {
    "smooth": _smooth,
    "two": _two,
    "positive": lambda x, generator: 10.0 ** _smooth(x, generator),
    "yes or no": lambda x, generator: (_smooth(x, generator) > 0).astype(int),
    "labels": lambda x, generator: np.array(["a", "b", "c"])[
        np.digitize(_smooth(x, generator), [-0.5, 0.5])
    ],
}


def _likelihood(likelihood, **settings):
    return Case({"pretraining": ADAM, "kernel": "hmc"}, {"likelihood": likelihood}, **settings)


# Every kernel by its name, stopped and resumed.
BY_KERNEL = {
    name: Case({"kernel": name} | more, stop="sampling")
    for name, more in {
        "chees_hmc": {},
        "hmc": {},
        "mala": LONGER,
        "microcanonical": {},
        "nuts": {},
        "pcn": LONGER,
        "pcnl": LONGER,
        "power_posterior": {},
        "random_walk_metropolis": LONGER,
        "repriorised": {},
        "smmala": {},
        "underdamped_langevin": {},
    }.items()
} | {
    "truncated_mala": Case(
        {"kernel": "truncated_mala"}, {"prior": priors.Uniform(-2.0, 2.0)}, stop="warmup"
    ),
}
_KERNELS = {
    "callable": Case({"kernel": walk}, stop="sampling"),
    "underdamped_unadjusted": Case({"kernel": kernels.UnderdampedLangevin(adjusted=False)}),
    "microcanonical_unadjusted": Case({"kernel": kernels.Microcanonical(adjusted=False)}),
    "smmala_gauss_newton": Case({"kernel": kernels.SMMALA(metric="gauss_newton")}),
    "hmc_diagonal": Case({"kernel": kernels.HMC(preconditioner="diagonal")}),
    "hmc_fixed_step": Case({"kernel": kernels.HMC(step_size=0.01, preconditioner="identity")}),
    "hmc_given_step": Case({"kernel": kernels.HMC(step_size=0.01, adapt_step_size=True)}),
    "evidence": Case({"kernel": LADDER, "pretraining": ADAM}, output=True, stop="warmup"),
    "collapsed": Case({"kernel": COLLAPSED, "pretraining": ADAM}, output=True, stop="sampling"),
    "collapsed_two_targets": Case({"kernel": COLLAPSED}, layers=(2, 4, 2), targets="two"),
}
_STARTS = {
    "defaults": Case({"kernel": "nuts", "pretraining": tfbnn.Pretraining()}),
    "newton": Case({"kernel": kernels.HMC(preconditioner="gauss_newton"), "pretraining": NEWTON}),
    "newton_rows": Case(
        {"pretraining": tfbnn.Pretraining(epochs=2, newton_iterations=3), "kernel": "mala"},
        layers=(2, 150, 1),
    ),
    "starts": Case(
        {
            "pretraining": tfbnn.Pretraining(
                epochs=10,
                batch_size=None,
                learning_rate_schedule="cosine",
                newton_iterations=0,
                num_starts=3,
            ),
            "kernel": "mala",
        }
    ),
    "early_stopping": Case(
        {
            "pretraining": tfbnn.Pretraining(epochs=20, early_stopping=2),
            "kernel": "mala",
            "validation_data": Case().rows()[:2],
        }
    ),
}
_MODELS = {
    "float64": Case({"pretraining": NEWTON, "kernel": "hmc"}, {"dtype": "float64"}),
    "hierarchical_ntk": Case(
        {"pretraining": ADAM},
        {
            "prior": priors.HierarchicalNormal(),
            "parameterization": "ntk",
            "activation": ["relu", "gelu"],
        },
        layers=(2, 3, 3, 1),
    ),
    "laplace": Case({"kernel": "hmc"}, {"prior": {"kernel": priors.Laplace(), "bias": priors.Normal(2.0)}}),
    "row_noise": _likelihood(likelihoods.Gaussian(), known_noise=True),
    "row_noise_fixed": _likelihood(likelihoods.Gaussian(0.1), known_noise=True, output=True),
    "heteroscedastic": _likelihood(likelihoods.HeteroscedasticGaussian(), layers=(2, 4, 2)),
    "student_t": _likelihood(likelihoods.StudentT(df=5.0), layers=(2, 4, 2), targets="two"),
    "bernoulli": _likelihood(likelihoods.Bernoulli(), targets="yes or no"),
    "categorical": _likelihood(
        likelihoods.Categorical(), layers=(2, 4, 3), targets="labels", output=True
    ),
    "log10": Case(
        {"pretraining": ADAM, "kernel": "hmc"},
        {"x_transform": ["log10", "standardize"], "y_transform": ["log10", "standardize"]},
        targets="positive",
        then="export",
    ),
}  # fmt: skip
_RUNS = {
    "streamed": Case({"pretraining": ADAM}, output=True, stop="warmup"),
    "streamed_thinned": Case(
        {"kernel": "hmc", "num_steps_between_results": 1}, output=True, stop="sampling"
    ),
    "dask": Case({"kernel": "hmc"}, output=True, cluster=True),
    "eight_chains": Case(
        {"kernel": "mala", "num_chains": 8} | LONGER, layers=(2, 2, 1), output=True, stop="sampling"
    ),
    "without_xla": Case({"kernel": "hmc", "jit_compile": False}),
    "stack": Case({"kernel": "mala", "pretraining": ADAM}, then="stack"),
    "compress": Case({"kernel": "mala", "pretraining": ADAM}, then="compress"),
}
CASES = BY_KERNEL | _KERNELS | _STARTS | _MODELS | _RUNS
