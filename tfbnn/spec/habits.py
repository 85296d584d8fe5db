"""What users of Keras, scikit-learn and PyMC type, and what it is here: one table for all entrances.

Its sentences end errors about names that an entrance does not have, keyword arguments, attributes and
options alike. Names that are near to one that it has need none: they are suggested.
"""

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tfbnn.system.words import did_you_mean

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

# What has ended, and what stands in its place: said for one release, of options in either spelling.
FORMER = {
    "num_workers": "Chains run in threads on all cores; tfbnn.cluster.fit has several processes.",
    "WorkerError": "There are no worker processes any more; a task of tfbnn.cluster raises its own error.",
    "WorkerWarning": "There are no worker processes any more: tfbnn.cluster.fit reports on its tasks.",
    "restart": "Fit again with another seed, or start chains where others are: initial_state=. model.basins() "
    "says which share one.",
    "keep_rungs coarsening": "Fit with one likelihood_power after the other, and compare model.evaluate(x, y).",
    "networks": "Build the network with Keras; benchmarks/paper_networks.py of the repository makes those of papers.",
    "read_cifar10 read_utkface": "Read the files with NumPy, and pass the images to tfbnn.BayesianModel.",
    "plot_weight_planes": "Use ArviZ: arviz.plot_pair(model.to_arviz()).",
    "multivariate": "Use ArviZ, or tfbnn.diagnostics.statistics for one quantity at a time.",
    "SMSUBU sms_ubu": "Kernels see all rows: use kernel='hmc', or a sample of the rows.",
}
FORMER = {name: text for names, text in FORMER.items() for name in names.split()}

# What an entrance has under the first name, or another one, of a line is called by all of them elsewhere.
_SYNONYMS = (
    ("num_results", "draws", "num_samples", "n_samples", "samples"),
    ("num_burnin_steps", "tune", "warmup", "num_warmup", "burnin"),
    ("num_steps_between_results", "thin", "thinning"),
    ("seed", "random_state", "random_seed", "rng"),
    ("verbose", "progressbar", "progress_bar", "quiet", "silent"),
    ("initial_state", "initvals", "init"),
    ("max_seconds", "time_limit", "timeout", "max_time"),
    ("hidden_layer_sizes", "units", "hidden_units"),
)
_HINTS = {
    "fit": "Its posterior is sampled: run = model.fit_posterior(x, y). For epochs and batch_size see "
    "tfbnn.Pretraining.",
    "compile optimizer step sampler": "There is nothing to compile: the likelihood= and the prior= of the "
    "model are its loss, and the kernel= of fit_posterior samples it.",
    "loss": "The loss is minus the log of likelihood= and prior= of the model, such as "
    "tfbnn.likelihoods.Gaussian().",
    "metrics score": "model.evaluate(x, y) gives all scores, R2 and accuracy among them.",
    "history": "fit_posterior returns a run: run = model.fit_posterior(x, y); run.history, run.report().",
    "partial_fit train_on_batch shuffle steps_per_epoch": "Every draw sees all rows, in whatever order: "
    "model.fit_posterior(x, y).",
    "test_on_batch predict_on_batch predict_step steps": "model.predict(x) and model.evaluate(x, y) take "
    "any number of rows.",
    "predict_proba": "model.predict(x).mean are the probabilities, in the order of model.classes; of the "
    "estimators a BayesianMLPClassifier has it.",
    "predict_interval interval alpha": "model.predict(x, include_noise=True, quantiles=[0.16, 0.84]) gives "
    "intervals, and predict_quantiles(X) of a BayesianMLPRegressor.",
    "quantiles": "model.predict(x, quantiles=[0.16, 0.84]) takes them, and predict_quantiles(X) of a "
    "BayesianMLPRegressor.",
    "return_std return_cov": "mean, stddev = model.predict(x) gives both, and predict(X, return_std=True) "
    "of a BayesianMLPRegressor.",
    "feature_importances_ feature_importances coef_ coefs_": "model.relevance() says which inputs matter; "
    "an estimator has the model as model_.",
    "get_weights weights trainable_weights trainable_variables": "Every draw is a network of its own: "
    "model.posterior.draws [chains, draws, parameters].",
    "set_weights initial_state": "fit_posterior(initial_state=) starts chains from weights "
    "[chains, parameters].",
    "layers get_layer": "model.summary() shows the layers, model.spec.layer_sizes their widths.",
    "save_weights load_weights": "model.save(path) and tfbnn.load(path) write and read the fitted model.",
    "to_json": "model.get_config() describes the model, for BayesianMLP.from_config.",
    "export": "model.to_savedmodel(path) and model.to_onnx(path) export it.",
    "hidden_layer_sizes input_shape": "The first argument of a model has all widths, from inputs to "
    "outputs: BayesianMLP([5, 20, 20, 1]).",
    "kernel_regularizer bias_regularizer weight_decay kernel_initializer bias_initializer dropout": "Weights "
    "are regularised by their prior: prior=tfbnn.priors.Normal(scale=..).",
    "noise_scale noise sigma": "The noise is the likelihood's, likelihood=tfbnn.likelihoods.Gaussian("
    "noise_scale=..); known noise of rows is noise_scale= of a fit.",
    "sample_weight": "sample_weight is not supported. For rows of different precision pass noise_scale= "
    "to the fit; to count a row twice, repeat it.",
    "class_weight": "Rows count alike; to count a row twice, repeat it.",
    "epochs batch_size learning_rate learning_rate_schedule early_stopping newton_iterations num_starts "
    "validation_split search_rows largest_misfit max_iter": "It is one of the search for starts: "
    "fit_posterior(pretraining=tfbnn.Pretraining({name}=..)).",
    "step_size num_leapfrog_steps target_accept_prob preconditioner": "It is a setting of the kernel, for "
    "example kernel=tfbnn.kernels.HMC({name}=..).",
    "num_results num_burnin_steps num_steps_between_results seed verbose": "It is one of a fit: "
    "fit_posterior({name}=..).",
    "cores n_jobs workers": "Chains run in threads on all cores by themselves.",
    "max_seconds": "A limit of time is one of a fit: until=tfbnn.Until(max_seconds=60).",
}
# The same with an entry for each word.
HINTS = {word: text for words, text in _HINTS.items() for word in words.split()}
# What a setting is called where the sentence about it speaks of its own name.
_SETTINGS = {"max_iter": "epochs", "target_accept": "target_accept_prob"}


def without_former(entry: dict[str, Any]) -> dict[str, Any]:
    """Settings in a file without those that have ended, which decide no draw that is still to come."""
    return {name: value for name, value in entry.items() if name not in FORMER}


def without_former_defaults(entry: dict[str, Any]) -> dict[str, Any]:
    """Settings in a file without those that have ended and asked for nothing."""
    return {name: value for name, value in entry.items() if value or name not in FORMER}


def called(name: str, known: Collection[str]) -> str | None:
    """What an entrance that has the `known` names calls a word of other libraries, or None."""
    for names in _SYNONYMS:
        if name in names:
            return next((one for one in names if one in known), None)
    return None


def hint(name: str, known: Collection[str] = ()) -> str:
    """What to say behind an error about a name, from a blank on; "" where nothing is to be said.

    Args:
        name: What an entrance does not have.
        known: What it has.
    """
    if name in FORMER:
        return " " + FORMER[name]
    here = called(name, known)
    if here is not None:
        return f" It is called {here} here."
    first = next((names[0] for names in _SYNONYMS if name in names), name)
    setting = _SETTINGS.get(first, first)
    text = HINTS.get(first) or HINTS.get(setting)
    return did_you_mean(name, known) if text is None else " " + text.replace("{name}", setting)


def absent(module: str, name: str, known: Collection[str]) -> AttributeError:
    """The error about a name that a module does not have, with what stands in its place."""
    return AttributeError(f"module {module!r} has no attribute {name!r}.{hint(name, known)}")


def explains_keywords(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Decorator of a function whose refusal of an unknown keyword argument says what to do.

    Python says so itself from 3.13 on, of near names only.

    Raises:
        TypeError: By the decorated function, as without it.
    """
    parameters = inspect.signature(function).parameters
    known = [name for name in parameters if name != "self"]
    shown = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def explained(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        for name in kwargs:
            if name not in parameters:
                message = f"{shown}() got an unexpected keyword argument {name!r}."
                raise TypeError(message + hint(name, known))
        return function(*args, **kwargs)

    return explained


class ExplainsAttributes:
    """A class whose error about an attribute that it does not have says what there is."""

    if not TYPE_CHECKING:  # to a type checker a class with this method has every attribute

        def __getattr__(self, name: str) -> Any:
            """AttributeError for what there is not, as without; of known habits with a remedy."""
            if name in HINTS or name in FORMER:
                message = f"A {type(self).__name__} has no {name!r}.{hint(name)}"
                raise AttributeError(message, name=name, obj=self)
            # Raises again what brought us here, which of a property may be a NotFittedError.
            return super().__getattribute__(name)
