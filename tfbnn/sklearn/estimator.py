"""Base class of the estimators: settings, checks of the rows, and sampling of the posterior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from inspect import signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning as AnyConvergenceWarning
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from tfbnn.data.bad_rows import positions_named
from tfbnn.data.coding import as_inputs
from tfbnn.data.frames import column_names_of, refuse_foreign_table, refuse_other_order
from tfbnn.data.learn_coding import REFUSE, Missing, learn_coding
from tfbnn.data.table import Table
from tfbnn.data.validation import (
    as_float_array,
    as_matrix,
    check_choice,
    refuse_units,
)
from tfbnn.diagnostics.verdict import CALIBRATED, USABLE
from tfbnn.exceptions import ConvergenceWarning, VerdictWarning
from tfbnn.fit.model import BayesianMLP
from tfbnn.spec.choices import AUTO, is_auto
from tfbnn.spec.habits import ExplainsAttributes, explains_keywords
from tfbnn.spec.likelihoods import Likelihood
from tfbnn.spec.network_spec import check_likelihood
from tfbnn.system.arrays import Array
from tfbnn.system.words import warn, without_warnings

if TYPE_CHECKING:
    from tfbnn.run.report import Run

Estimator = TypeVar("Estimator", bound=type)
L = TypeVar("L", bound=Likelihood)


class UnconvergedWarning(VerdictWarning, AnyConvergenceWarning):  # type: ignore[misc]
    """Warning issued once after a fit whose draws are not usable for error bars yet.

    It is a ConvergenceWarning of both tfbnn and scikit-learn, so that filters for either apply.
    """


# Estimators are mainly used in searches, and three settings in five folds are sixteen fits. With 21
# rows without noise, one fit took 45 s of processor time at full effort and 7 s at a tenth: 1200
# ADAM steps, 100 warm-up steps, at most 640 draws.
_EFFORT = 0.1


# Fields instead of an `__init__` per estimator: scikit-learn reads settings from its signature.
@dataclass(eq=False, repr=False)
class SampledEstimator(ExplainsAttributes, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Settings of both estimators, stored unchanged by the constructor and checked by `fit`."""

    hidden_layer_sizes: int | Sequence[int] | str = AUTO
    _: KW_ONLY
    activation: str | Sequence[str] = "tanh"
    prior: Any = AUTO
    likelihood: Likelihood | str = AUTO
    parameterization: str = AUTO
    x_transform: str | Sequence[str] | None = "standardize"
    dtype: npt.DTypeLike = "float32"
    missing: Missing = REFUSE
    kernel: Any = AUTO
    num_chains: int = 4
    num_results: int | str = AUTO
    until: Any = AUTO
    max_seconds: float | None = None
    num_burnin_steps: int | str = AUTO
    num_steps_between_results: int | str = AUTO
    pretraining: Any = AUTO
    likelihood_power: float = 1.0
    effort: float = _EFFORT
    jit_compile: bool = True
    random_state: Any = None
    verbose: int | str = 0

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        for name, method in list(vars(cls).items()):
            if name == "fit" or name.startswith("predict"):
                setattr(cls, name, explains_keywords(method))

    def set_params(self, **params: Any) -> Self:
        """Set settings by name; a settings object can only be replaced as a whole.

        Raises:
            ValueError: For unknown names, including parts of a settings object (kernel__step_size).
        """
        for name in params:
            own, _, part = name.partition("__")
            if part and own in self.get_params(deep=False):
                raise ValueError(
                    f"{own} is set as a whole, received {name}. Pass set_params({own}=..) a new one, such "
                    "as kernel=tfbnn.kernels.HMC(step_size=..)."
                )
        return super().set_params(**params)

    def _rows(
        self, X: Any, y: Any, beside: Mapping[str, Any], **checks: Any
    ) -> tuple[Any, int, Array]:
        """Check the rows of a fit; return (inputs for `fit_posterior`, number of inputs, targets).

        A frame with text columns stays a frame, so that the model learns their coding. Arguments in
        `beside` must have the same row order as X, whose index may be lost here.
        """
        check_choice("missing", self.missing, get_args(Missing))
        for what, value in {"y": y, **beside}.items():
            refuse_other_order(X, value, what, "X")
        refuse_units(y, "y")
        refuse_foreign_table(y, "y")
        _refuse_dates(X)
        with positions_named(X):
            coding = learn_coding(X, "X", self.missing)
            numbers = X
            if coding is not None:
                numbers = as_inputs(X, "X", coding.num_inputs, coding).values
        # Inputs and targets are standardised by their spread, which one row does not have.
        checks |= {"ensure_all_finite": "allow-nan", "ensure_min_samples": 2}
        inputs, targets = validate_data(self, numbers, y, dtype=np.float64, **checks)
        if coding is not None:
            validate_data(self, X, skip_check_array=True)  # the features are the frame's columns
            return X, coding.num_inputs, targets
        names = getattr(self, "feature_names_in_", None)
        with positions_named(names=names):
            inputs = as_matrix(inputs, "X", names=names)
        named = inputs if names is None else Table(tuple(map(str, names)), inputs)
        return named, inputs.shape[1], targets

    @staticmethod
    def _counted(
        X: Any, y: Any, sample_weight: Any, beside: dict[str, Any]
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Return (X, y, beside) with each row repeated as `sample_weight` says.

        Copies of a row stay in one group.
        """
        if sample_weight is None:
            return X, y, beside
        refuse_other_order(X, sample_weight, "sample_weight", "X")
        counts = as_float_array(sample_weight, "sample_weight")
        if counts.shape != (num_rows := _num_samples(y),):
            raise ValueError(
                f"sample_weight must have shape [{num_rows}], received {list(counts.shape)}."
            )
        is_count = (counts >= 0) & (counts == np.floor(counts)) & (counts < np.inf)
        bad = counts[~is_count]
        if len(bad):
            raise ValueError(
                f"sample_weight must hold whole numbers, 0 or more, received {bad[0]:g}. It is how often "
                "a row counts; for rows of different precision pass noise_scale=."
            )
        if not counts.any():
            raise ValueError("sample_weight must not be zero for all rows.")
        if np.all(counts == 1):
            return X, y, beside
        indices = np.repeat(np.arange(num_rows), counts.astype(int))
        given = {"groups": np.arange(num_rows)} | {
            name: value for name, value in beside.items() if value is not None
        }
        check_consistent_length(X, y, *given.values())
        taken = {name: _safe_indexing(value, indices) for name, value in given.items()}
        return _safe_indexing(X, indices), _safe_indexing(y, indices), beside | taken

    def _sample(
        self,
        X: Any,
        num_inputs: int,
        y: Any,
        likelihood: Likelihood | str,
        num_outputs: int,
        beside: Mapping[str, Any],
    ) -> None:
        """Build a model, sample its posterior, and set `model_` and `run_`.

        Args:
            X, num_inputs: As returned by `_rows`.
            y: Targets in the form that `fit_posterior` takes.
            likelihood: Likelihood, or "auto" when the hidden layers are chosen automatically.
            num_outputs: Number of network outputs; with likelihood "auto", number of targets.
            beside: Arguments of `fit_posterior` that are not settings.
        """
        of_fit = {item.name: getattr(self, item.name) for item in fields(self)}
        of_fit |= {**beside, "likelihood": likelihood, "seed": self._seed()}
        for own in ("hidden_layer_sizes", "random_state"):
            del of_fit[own]
        names = of_fit.keys() & signature(BayesianMLP).parameters.keys()
        of_model = {name: of_fit.pop(name) for name in names}
        hidden = np.atleast_1d(np.asarray(self.hidden_layer_sizes)).tolist()
        model = BayesianMLP([num_inputs, *hidden, num_outputs], **of_model)
        with without_warnings(ConvergenceWarning):  # reported below, in one line
            run = model.fit_posterior(X, y, **of_fit)
        self.model_, self.run_ = model, run
        self._tell_verdict(run)

    def _settled(self, default: L, kind: Any) -> L:
        """Return the likelihood, which must be an instance of `kind`, or the default for "auto"."""
        if is_auto(self.likelihood):
            return default
        check_likelihood(self.likelihood)
        if not isinstance(self.likelihood, kind):
            raise TypeError(
                f"likelihood of a {type(self).__name__} must be 'auto' or one such as {default}, received "
                f"{self.likelihood!r}. BayesianMLPRegressor is for numbers, BayesianMLPClassifier for classes."
            )
        return cast(L, self.likelihood)

    @property
    def _in_double(self) -> BayesianMLP:
        """Copy of `model_` in double precision, for means.

        scikit-learn requires means that do not depend on the order of the rows, to more digits
        than sums in float32 have.
        """
        return BayesianMLP.from_ensemble(self.model_.posterior.in_double)

    def _checked(self, X: Any) -> Array:
        """Check the inputs [N, D] against the feature names and their number in the fit."""
        check_is_fitted(self)
        _refuse_dates(X)
        refuse_foreign_table(X, "X")
        if self.model_.posterior.coding is not None:
            validate_data(self, X, skip_check_array=True, reset=False)
            return self.model_.code_inputs(X)
        # With "indicator", the model refuses gaps in columns that had none in the fit.
        finite = True if self.missing == REFUSE else "allow-nan"
        return validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=finite)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != REFUSE
        return tags

    def _seed(self) -> int:
        """Return `random_state` where it is an integer, otherwise an integer drawn from it."""
        generator = check_random_state(self.random_state)
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(generator.randint(np.iinfo(np.int32).max))

    def _tell_verdict(self, run: Run) -> None:
        if run.diagnosis is not None and run.verdict not in (USABLE, CALIBRATED):
            warn(
                f"Verdict on the draws of {type(self).__name__}: {run.diagnosis.headline}. See "
                "run_.report() of the estimator.",
                UnconvergedWarning,
            )


def _refuse_dates(X: Any) -> None:
    """Refuse arrays of dates and inputs with units, which scikit-learn would take as numbers."""
    refuse_units(X, "X")
    if getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m"):
        as_float_array(X, "X")


def explains_settings(cls: Estimator) -> Estimator:
    """Decorate an estimator so that its constructor suggests a remedy when it refuses a setting."""
    init: Any = explains_keywords(vars(cls)["__init__"])
    cls.__init__ = init  # type: ignore[misc]  # keeps the signature, from which settings are read
    return cls


def named(given: Any, checked: Array) -> Any:
    """Return checked targets with the column names of those given; as given if they are numbers.

    Text that scikit-learn converts to numbers would be class labels for the model.
    """
    names = column_names_of(given).get("target_names")
    if not names:
        return checked
    entries = np.asarray(given)
    is_text = entries.dtype.kind not in "iuf" and any(isinstance(one, str) for one in entries.flat)
    if checked.dtype.kind not in "iuf" or not is_text:
        return given
    return Table(tuple(names), checked) if checked.ndim == 2 else checked
