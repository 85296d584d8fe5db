"""Hints for unknown names, among them words of other libraries.

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

# Names of settings in other libraries, and their names here.
CALLED = {
    **dict.fromkeys(("draws", "num_draws", "num_samples", "n_samples"), "num_results"),
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


def hint(name: str, known: Collection[str] = ()) -> str:
    """Return the hint that ends an error about an unknown name, with a leading blank; "" for none.

    Args:
        name: The unknown name.
        known: Known names, of which the nearest is suggested.
    """
    if CALLED.get(name) in known:
        return f" Did you mean {CALLED[name]!r}?"
    text = HINTS.get(name)
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
            if name in HINTS:
                message = f"A {type(self).__name__} has no {name!r}.{hint(name)}"
                raise AttributeError(message, name=name, obj=self)
            # Raise the original error again; for a property it may be a NotFittedError.
            return super().__getattribute__(name)
