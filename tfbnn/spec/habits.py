"""Hints for unknown names: a table of former names, and one of words of other libraries.

The hints end errors about keyword arguments, attributes and options that do not exist. For other
words the nearest known name is suggested.
"""

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tfbnn.system.words import did_you_mean

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

# Removed names, and what replaces them. Names are kept here for one release; options in either
# spelling.
FORMER = {
    "plot_traces": "ArviZ draws them: az.plot_trace(model.posterior.to_arviz()).",
    "backend": "predict hands large batches to a GPU that TensorFlow sees, and computes all others with NumPy; "
    "CUDA_VISIBLE_DEVICES=-1 hides the GPU.",
    "stein": "Use method='kernel_thinning', the default, which keeps predictions better.",
    "follow": "The run prints how far it is; for a look at its draws so far call diagnose or report again.",
    "LogMetrics": "Pass a function of an event to callbacks=: docs/guide/keras.md has one for MLflow.",
    "num_workers": "Chains run in threads on all cores; for several processes call tfbnn.cluster.fit(model, x, y, "
    "client=distributed.Client(), output='run/').",
    "WorkerError": "There are no worker processes any more; chains that fail are named in a tfbnn.ChainError.",
    "WorkerWarning": "There are no worker processes any more; run.report() names tasks of tfbnn.cluster.fit that "
    "were tried again.",
    "restart": "Fit again with another seed, or pass initial_state=; model.basins() says which chains share a basin.",
    "keep_rungs coarsening": "Fit with one likelihood_power after the other, and compare model.evaluate(x, y).",
    "networks": "Build the network with Keras, as benchmarks/lib/paper_networks.py does, for tfbnn.BayesianModel.",
    "read_cifar10 read_utkface": "Read the images with NumPy, and pass them to fit_posterior of a tfbnn.BayesianModel.",
    "plot_weight_planes": "ArviZ draws pairs of weights: az.plot_pair(model.posterior.to_arviz()).",
    "multivariate": "ArviZ has R-hat and ESS of one quantity at a time: az.summary(model.posterior.to_arviz()).",
    "cluster.predict": "Predict block by block: x.map_blocks(function) of a function that loads the model; "
    "docs/guide/cluster.md has it.",
    "read_cross_sections": "Read the table with pandas.read_csv; tfbnn fit takes the path of one.",
    "unit": "Figures show the names of columns: name a column 'xsec_fb' or 'm [GeV]'.",
    "RunFolder Checkpoint LaneDraws LaneWriter": "tfbnn.load(folder) gives the model of a run folder, with the draws so far.",
    "SMSUBU sms_ubu": "Kernels see all rows: pass kernel='hmc', or fit to a sample of the rows.",
}
FORMER = {name: text for names, text in FORMER.items() for name in names.split()}

# Names of settings in other libraries, and their names here.
CALLED = {
    **dict.fromkeys(("draws", "num_samples", "n_samples"), "num_results"),
    **dict.fromkeys(("tune", "warmup", "num_warmup"), "num_burnin_steps"),
    **dict.fromkeys(("time_limit", "timeout"), "max_seconds"),
    **{"max_iter": "epochs", "quiet": "verbose", "random_state": "seed", "seed": "random_state"},
}
# Words of Keras, scikit-learn and samplers, and what to use here; {name} stands for the word.
_HINTS = {
    "fit": "Its posterior is sampled: run = model.fit_posterior(x, y).",
    "compile optimizer loss": "There is nothing to compile: the likelihood= and the prior= of the model are "
    "its loss, and the kernel= of fit_posterior samples it.",
    "history": "fit_posterior returns a run: run = model.fit_posterior(x, y); run.history, run.report().",
    "metrics score": "model.evaluate(x, y) gives all scores, R2 and accuracy among them.",
    "epochs batch_size learning_rate early_stopping validation_split": "It belongs to the search for "
    "starts: fit_posterior(pretraining=tfbnn.Pretraining({name}=..)).",
    "num_results num_burnin_steps seed verbose max_seconds": "It belongs to a fit: "
    "fit_posterior({name}=..).",
    "n_jobs cores": "Chains use all cores by themselves.",
    "step_size num_leapfrog_steps target_accept_prob": "It is a setting of the kernel, for example "
    "kernel=tfbnn.kernels.HMC({name}=..).",
    "sample_weight class_weight": "{name} is not supported. For rows of different precision pass noise_scale= "
    "to the fit; to count a row twice, repeat it, with the same label in groups=.",
    "hidden_layer_sizes": "The first argument of a model has all widths, from inputs to outputs: "
    "BayesianMLP([5, 20, 20, 1]).",
    "kernel_regularizer weight_decay dropout": "Weights are regularised by their prior: "
    "prior=tfbnn.priors.Normal(scale=..).",
    "quantiles predict_interval": "model.predict(x, quantiles=[0.16, 0.84]) gives them, and "
    "predict_quantiles(X) and predict_interval(X) of a BayesianMLPRegressor.",
    "ppf isf": "d.quantile(q) gives them.",
    "logpdf log_pdf logpmf pmf": "d.log_prob(y) and d.pdf(y) give them, of counts too.",
    "rvs": "d.sample(size, seed) draws.",
    "sf": "It is 1.0 - d.cdf(y).",
    "return_std": "mean, stddev = model.predict(x) gives both, and predict(X, return_std=True) of a "
    "BayesianMLPRegressor.",
    "predict_proba": "model.predict(x).mean are the probabilities, in the order of model.classes.",
    "feature_importances_ coef_": "model.importance(x, y) says which columns matter, model.relevance() without rows; an "
    "estimator has the model as model_.",
    "get_weights weights": "Every draw is a network of its own: model.posterior.draws [chains, draws, "
    "parameters].",
}
_TEXTS = {word: text for words, text in _HINTS.items() for word in words.split()}
HINTS = {
    name: _TEXTS[word].replace("{name}", word)
    for name, word in (CALLED | {word: word for word in _TEXTS}).items()
}


def without_former(entry: dict[str, Any]) -> dict[str, Any]:
    """Return settings from a file without removed ones, which affect no draw still to come."""
    return {name: value for name, value in entry.items() if name not in FORMER}


def hint(name: str, known: Collection[str] = ()) -> str:
    """Return the hint that ends an error about an unknown name, with a leading blank; "" for none.

    Args:
        name: The unknown name.
        known: Known names, of which the nearest is suggested.
    """
    if CALLED.get(name) in known:
        return f" Did you mean {CALLED[name]!r}?"
    text = FORMER.get(name) or HINTS.get(name)
    return did_you_mean(name, known) if text is None else f" {text}"


def refuse_unknown(shown: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise TypeError for the first of the given keyword arguments that is unknown."""
    for name in given:
        if name not in known:
            message = f"{shown}() got an unexpected keyword argument {name!r}."
            raise TypeError(message + hint(name, known))


def absent(module: str, name: str, known: Collection[str]) -> AttributeError:
    """Return the error for a name that a module does not have, with a hint."""
    return AttributeError(f"module {module!r} has no attribute {name!r}.{hint(name, known)}")


def explains_keywords(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Decorate a function so that its error for an unknown keyword argument ends with a hint.

    Raises:
        TypeError: By the decorated function, as without the decorator.
    """
    parameters = inspect.signature(function).parameters
    known = [name for name in parameters if name != "self"]
    shown = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def explained(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        refuse_unknown(shown, kwargs, known)
        return function(*args, **kwargs)

    return explained


class ExplainsAttributes:
    """A base class whose error for a missing attribute ends with a hint."""

    if not TYPE_CHECKING:  # to a type checker a class with this method has every attribute

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with a hint where there is one."""
            if name in HINTS or name in FORMER:
                message = f"A {type(self).__name__} has no {name!r}.{hint(name)}"
                raise AttributeError(message, name=name, obj=self)
            # Raise the original error again; for a property it may be a NotFittedError.
            return super().__getattribute__(name)
