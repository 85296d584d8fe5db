"""The arguments of a fit, checked before anything is computed."""

import os
from dataclasses import dataclass, field

from tfbnn.data.validation import check_flag, check_integer, check_number
from tfbnn.spec.settings_json import Pretraining

_NUMBERS = (
    "seed",
    "num_chains",
    "num_burnin_steps",
    "num_steps_between_results",
    "jit_compile",
)


@dataclass(frozen=True)
class FitOptions:
    """The arguments of `fit_posterior` besides data, checked.

    Attributes besides those:
        column_names: Dict of the names of target and noise columns, for the provenance.
    """

    kernel: object
    num_chains: int
    num_results: int
    num_burnin_steps: int
    num_steps_between_results: int
    pretraining: Pretraining | None
    seed: int
    jit_compile: bool
    verbose: object
    callbacks: tuple
    output: object = None
    resume: bool = False
    commit_interval: float = 30.0
    num_workers: object = "auto"
    column_names: dict = field(default_factory=dict)

    def __post_init__(self):
        for name, minimum in (
            ("num_chains", 1),
            ("num_results", 1),
            ("num_burnin_steps", 0),
            ("num_steps_between_results", 0),
            ("seed", 0),
        ):
            # Plain integers, which the model file can hold.
            value = check_integer(name, getattr(self, name), minimum=minimum)
            object.__setattr__(self, name, value)
        if self.pretraining is not None and not isinstance(self.pretraining, Pretraining):
            raise TypeError(
                f"pretraining must be a tfbnn.Pretraining or None, received {self.pretraining!r}."
            )
        tried = None if self.pretraining is None else self.pretraining.num_starts
        if tried is not None and tried < self.num_chains:
            raise ValueError(
                f"Pretraining.num_starts must be at least num_chains={self.num_chains}, received "
                f"{tried}. Leave num_starts=None for one start per chain."
            )
        for name in ("jit_compile", "resume"):
            object.__setattr__(self, name, check_flag(name, getattr(self, name)))
        if isinstance(self.num_workers, str) and self.num_workers != "auto":
            raise ValueError(
                f"num_workers must be 'auto' or an integer, received {self.num_workers!r}."
            )
        if self.num_workers != "auto":
            check_integer("num_workers", self.num_workers, minimum=1)
        self._check_output()
        if self.verbose not in ("auto", 0, 1):
            raise ValueError(f"verbose must be 'auto', 0 or 1, received {self.verbose!r}.")
        if not isinstance(self.callbacks, (list, tuple)):
            raise TypeError(f"callbacks must be a list of callables, received {self.callbacks!r}.")
        for callback in self.callbacks:
            if not callable(callback):
                raise TypeError(f"Each callback must be callable, received {callback!r}.")

    @property
    def numbers(self):
        """The plain arguments that decide the draws, besides their number."""
        return {name: getattr(self, name) for name in _NUMBERS}

    def _check_output(self):
        check_number("commit_interval", self.commit_interval, minimum=0)
        if self.output is not None and not isinstance(self.output, (str, os.PathLike)):
            raise TypeError(f"output must be a folder's path or None, received {self.output!r}.")
        if self.resume and self.output is None:
            raise ValueError(
                "resume=True goes on with the run in a folder, received output=None. Pass "
                "output=FOLDER, or resume=False."
            )
        object.__setattr__(self, "output", self.output and os.fspath(self.output))
