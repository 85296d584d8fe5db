"""The arguments of a fit, checked before anything is computed."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, get_args

import numpy as np

from tfbnn.data.learn_coding import REFUSE, Missing
from tfbnn.data.validation import check_choice, check_flag, check_integer, check_number
from tfbnn.run.keras_callbacks import check_callback
from tfbnn.run.until import ENOUGH, Until, with_limit
from tfbnn.spec.choices import AUTO, is_auto
from tfbnn.spec.network_spec import check_likelihood_power
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.atomic import StrPath

_LEAST = {
    "num_chains": 1,
    "num_burnin_steps": 0,
    "num_steps_between_results": 0,
    "num_results": 1,
    "seed": 0,
}
# Arguments that may differ when a run is resumed.
_EXTENT = {"num_results", "until"}

# Draws per chain of a run without a number of draws and without a stopping rule.
_WITHOUT_UNTIL = 1000


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The plain arguments of `fit_posterior` that determine the draws of the chains, all settled.

    Attributes besides the arguments of that name:
        num_results: Draws kept per chain; the maximum if `until` may end the run earlier.
        until: Stopping rule, or None.
    """

    seed: int = 0
    num_chains: int = 4
    num_burnin_steps: int = 1000
    num_steps_between_results: int = 0
    jit_compile: bool = True
    num_results: int = 1000
    until: Until | None = None

    # Names of the fields that may be "auto".
    _may_be_open: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name, minimum in _LEAST.items():
            if name in self._may_be_open and is_auto(getattr(self, name)):
                continue
            # Plain integers, which the model file can hold.
            self._set(name, check_integer(name, getattr(self, name), minimum=minimum))
        self._set("jit_compile", check_flag("jit_compile", self.jit_compile))

    @property
    def stride(self) -> int:
        """Transitions per kept draw."""
        steps = self.num_steps_between_results
        return 1 if is_auto(steps) else steps + 1

    @property
    def numbers(self) -> dict[str, Any]:
        """Dict of the arguments that stay the same when a run is resumed."""
        fixed = (item.name for item in fields(Sampling) if item.name not in _EXTENT)
        return {name: getattr(self, name) for name in fixed}

    @property
    def limit(self) -> float | None:
        """Time limit of the run in seconds, None without one."""
        return self.until.max_seconds if isinstance(self.until, Until) else None

    @property
    def num_transitions(self) -> int:
        """Number of transitions of a chain, warm-up included."""
        return self.num_burnin_steps + self.num_results * self.stride

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class FitOptions(Sampling):
    """The arguments of `fit_posterior` except the data, checked. `fit_posterior` explains them.

    `tfbnn.fit.choices` settles the values that are "auto". `sampling` can be called after that.

    Attributes besides those:
        initial_state: A fitted model is stored as its Ensemble.
        max_seconds: None once it is in `until`.
        column_names: Value for `Provenance.column_names`: names of the columns in the table from which the
            rows were read.
        began: `time.perf_counter` when the fit was called.
    """

    num_burnin_steps: int | str = AUTO  # type: ignore[assignment]  # wider until it is settled
    num_steps_between_results: int | str = AUTO  # type: ignore[assignment]  # as above
    num_results: int | str = AUTO  # type: ignore[assignment]  # as above
    until: Until | str | None = AUTO  # type: ignore[assignment]  # as above
    max_seconds: float | None = None
    missing: Missing = REFUSE
    kernel: Any = AUTO
    pretraining: Pretraining | str | None = AUTO
    calibrate: bool | str = AUTO
    initial_state: Any = None
    likelihood_power: float = 1.0
    effort: float = 1.0
    output: StrPath | None = None
    resume: bool = False
    commit_interval: float = 30.0
    verbose: int | str = "auto"
    callbacks: Sequence[Any] = ()
    column_names: dict[str, list[str]] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter, compare=False)

    _may_be_open = ("num_burnin_steps", "num_steps_between_results", "num_results")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("missing", self.missing, get_args(Missing))
        is_word = isinstance(self.until, str) and self.until in ("auto", "converged")
        if not (self.until is None or is_word or isinstance(self.until, Until)):
            raise TypeError(
                f"until must be 'auto', 'converged', a tfbnn.Until or None, received {self.until!r}. Use for "
                "example tfbnn.Until(ess=1000)."
            )
        if self.until == "converged":
            self._set("until", Until())
        if self.max_seconds is not None:
            check_number("max_seconds", self.max_seconds, above=0)
            self._set("until", with_limit(self.until, self.max_seconds))
            self._set("max_seconds", None)
        self._set("likelihood_power", check_likelihood_power(self.likelihood_power))
        self._set("effort", check_number("effort", self.effort, above=0, maximum=1))
        self._check_pretraining()
        if not is_auto(self.calibrate):
            self._set("calibrate", check_flag("calibrate", self.calibrate))
        self._check_initial_state()
        self._set("resume", check_flag("resume", self.resume))
        self._check_output()
        if self.verbose not in ("auto", 0, 1, 2):
            raise ValueError(f"verbose must be 'auto', 0, 1 or 2, received {self.verbose!r}.")
        if not isinstance(self.callbacks, (list, tuple)):
            raise TypeError(f"callbacks must be a list of callables, received {self.callbacks!r}.")
        for callback in self.callbacks:
            check_callback(callback)

    def sampling(self, budget: int) -> Sampling:
        """Return the arguments that determine the draws of the chains, for given starts and kernel.

        Args:
            budget: The most draws per chain of a run without a fixed number of draws.
        """
        until, num_results = self.until, self.num_results
        if isinstance(until, str):
            until = ENOUGH if isinstance(num_results, str) else None
        if isinstance(num_results, str):
            num_results = _WITHOUT_UNTIL if until is None else budget
        numbers = self.numbers | {"num_steps_between_results": self.stride - 1}
        return Sampling(**numbers, num_results=num_results, until=until)

    @property
    def is_short(self) -> bool:
        """True if the run ends when more draws no longer change predictions."""
        if isinstance(self.until, Until):
            return self.until.score_change is not None
        return self.until is not None and is_auto(self.num_results)

    @property
    def settled_pretraining(self) -> Pretraining | None:
        """The settings of pretraining, once they are no longer open."""
        if isinstance(self.pretraining, str):
            raise TypeError("pretraining is 'auto' still: settle the options first.")
        return self.pretraining

    def _check_pretraining(self) -> None:
        if self.pretraining is None or is_auto(self.pretraining):
            return
        if not isinstance(self.pretraining, Pretraining):
            raise TypeError(
                "pretraining must be a tfbnn.Pretraining, 'auto' or None, received "
                f"{self.pretraining!r}."
            )
        for name, each in (("num_starts", 1), ("num_particles", 2)):
            tried, least = getattr(self.pretraining, name), -(-self.num_chains // each)
            if tried is not None and tried < least:
                raise ValueError(
                    f"Pretraining.{name} must be at least {least} for num_chains={self.num_chains}, "
                    f"received {tried}. Leave {name}=None, or ask for more."
                )

    def _check_initial_state(self) -> None:
        """Switch off the default pretraining if starts are given. The model checks the starts."""
        if self.initial_state is None:
            return
        if isinstance(self.initial_state, (bool, np.bool_)):
            raise TypeError(
                "initial_state must be an array [C, P], a number, a model or None, received "
                f"{self.initial_state!r}."
            )
        if isinstance(self.pretraining, Pretraining):
            raise ValueError(
                "pretraining and initial_state both set where the chains start, received both. Leave "
                "one of them out."
            )
        self._set("pretraining", None)

    def _check_output(self) -> None:
        check_number("commit_interval", self.commit_interval, minimum=0)
        if self.output is not None and not isinstance(self.output, (str, os.PathLike)):
            raise TypeError(f"output must be a folder's path or None, received {self.output!r}.")
        if self.output is not None and not os.fspath(self.output):
            raise ValueError("output must be a folder's path or None, received ''. Leave it out.")
        if self.resume and self.output is None:
            raise ValueError(
                "resume=True goes on with the run in a folder, received output=None. Pass "
                "output=FOLDER, or resume=False."
            )
        self._set("output", None if self.output is None else os.fspath(self.output))
