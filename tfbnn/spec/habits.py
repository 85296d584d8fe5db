"""What users of Keras, scikit-learn and PyMC type, and what it is here.

Sentences that end an error. Names that are near to those here need none: they are suggested.
"""

from collections.abc import Iterator
from dataclasses import fields

from tfbnn.spec.settings_json import Pretraining

_FIT = "Its posterior is sampled: run = model.fit_posterior(x, y)."
_NO_COMPILE = (
    "There is nothing to compile: the likelihood= and the prior= of the model are its loss, and the "
    "kernel= of fit_posterior samples it."
)
_ALL_ROWS = "Every draw sees all rows: model.fit_posterior(x, y)."
_DRAWS = "Every draw is a network of its own: model.posterior.draws [chains, draws, parameters]."
_LAYERS = "model.summary() shows the layers, model.spec.layer_sizes their widths."
_AT_ONCE = "model.predict(x) takes any number of rows."
_FILES = "model.save(path) and tfbnn.load(path) write and read the fitted model."
_RUN = "fit_posterior returns a run: run = model.fit_posterior(x, y); run.history, run.report()."

# Methods and attributes of models.
ATTRIBUTES = {
    "fit": f"{_FIT} For epochs and batch_size see tfbnn.Pretraining.",
    "compile": _NO_COMPILE,
    "optimizer": _NO_COMPILE,
    "loss": _NO_COMPILE,
    "metrics": "model.evaluate(x, y) gives all scores.",
    "score": "model.evaluate(x, y) gives all scores, R2 and accuracy among them.",
    "history": _RUN,
    "partial_fit": _ALL_ROWS,
    "train_on_batch": _ALL_ROWS,
    "test_on_batch": "model.evaluate(x, y) takes any number of rows.",
    "predict_on_batch": _AT_ONCE,
    "predict_step": _AT_ONCE,
    "predict_proba": "model.predict(x).mean are the probabilities, in the order of model.classes.",
    "get_weights": _DRAWS,
    "set_weights": "fit_posterior(initial_state=) starts chains from weights [chains, parameters].",
    "weights": _DRAWS,
    "trainable_weights": _DRAWS,
    "trainable_variables": _DRAWS,
    "layers": _LAYERS,
    "get_layer": _LAYERS,
    "save_weights": _FILES,
    "load_weights": _FILES,
    "to_json": "model.get_config() describes the model, for BayesianMLP.from_config.",
    "export": "model.to_savedmodel(path) and model.to_onnx(path) export it.",
}

_REGULARISED = "Weights are regularised by their prior: prior=tfbnn.priors.Normal(scale=..)."
_NOISE = "The noise is the likelihood's: likelihood=tfbnn.likelihoods.Gaussian(noise_scale=..)."
_SIZES = "The first argument has all widths, from inputs to outputs: BayesianMLP([5, 20, 20, 1])."
_LOSS = "The loss is minus the log of the likelihood: likelihood=tfbnn.likelihoods.Gaussian()."

# Keyword arguments of a model.
OF_MODEL = {
    **dict.fromkeys(("hidden_layer_sizes", "units", "hidden_units", "input_shape"), _SIZES),
    **dict.fromkeys(
        ("kernel_regularizer", "bias_regularizer", "weight_decay", "alpha"), _REGULARISED
    ),
    **dict.fromkeys(("kernel_initializer", "bias_initializer", "dropout"), _REGULARISED),
    **dict.fromkeys(("noise_scale", "noise", "sigma"), _NOISE),
    "loss": _LOSS,
    "optimizer": "How it is fitted is said in fit_posterior(kernel=, pretraining=).",
    **dict.fromkeys(("seed", "random_state"), "The seed is one of fit_posterior(seed=)."),
}


def _of_pretraining() -> Iterator[tuple[str, str]]:
    for field in fields(Pretraining):
        text = (
            f"It is one of the search for starts: pretraining=tfbnn.Pretraining({field.name}=..)."
        )
        yield field.name, text


_KERNEL = "It is a setting of the kernel, for example kernel=tfbnn.kernels.HMC({}=..)."

# Arguments of a fit, and options of the command, by the names that they have elsewhere.
RENAMED = {
    **dict.fromkeys(("draws", "num_samples", "n_samples", "samples"), "num_results"),
    **dict.fromkeys(("tune", "warmup", "num_warmup", "burnin"), "num_burnin_steps"),
    **dict.fromkeys(("thin", "thinning"), "num_steps_between_results"),
    **dict.fromkeys(("cores", "n_jobs", "workers"), "num_workers"),
    **dict.fromkeys(("random_seed", "random_state", "rng"), "seed"),
    **dict.fromkeys(("progressbar", "progress_bar", "quiet", "silent"), "verbose"),
    **dict.fromkeys(("initvals", "init"), "initial_state"),
}

# Keyword arguments of a fit.
OF_FIT = {
    **dict(_of_pretraining()),
    **{name: f"It is called {here} here." for name, here in RENAMED.items()},
    **dict.fromkeys(("step", "sampler", "optimizer"), "What samples is the kernel=."),
    **dict.fromkeys(("loss", "metrics"), "The loss is the model's likelihood= and prior=."),
    **{
        name: _KERNEL.format(name)
        for name in ("step_size", "num_leapfrog_steps", "target_accept_prob", "preconditioner")
    },
    "target_accept": _KERNEL.format("target_accept_prob"),
    "max_seconds": "It is a limit of until=tfbnn.Until(max_seconds=..).",
    "sample_weight": "Rows count alike; noise_scale= takes the known standard deviation of each.",
    "class_weight": "Rows count alike.",
    "shuffle": "The order of the rows does not matter.",
    "steps_per_epoch": "Every draw sees all rows.",
}
