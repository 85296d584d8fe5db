"""Settled settings of a run, as its folder holds them: a resumed run needs nothing else."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tfbnn.posterior.provenance import Provenance
from tfbnn.run.counters import Seconds
from tfbnn.run.options import Sampling
from tfbnn.spec.density_spec import Sampled
from tfbnn.spec.network_spec import NetworkSpec
from tfbnn.spec.rows import Rows, TransformedRows, learn_transforms
from tfbnn.spec.settings_json import Pretraining
from tfbnn.system.arrays import Array


class Starts(NamedTuple):
    """Starts of the chains.

    Attributes:
        theta: [C, P].
        text: One line on how they came about.
        seconds: What this took.
        interrupted: Whether the user asked to stop meanwhile: they are as good as they were then.
        superchains: Number of the superchain of each chain [C]: chains of one number start from one network,
            or from particles that may have a common ancestor. None where all are independent.
    """

    theta: Array
    text: str
    seconds: Seconds = Seconds()
    interrupted: bool = False
    superchains: Array | None = None

    @classmethod
    def given(cls, theta: Array, text: str = "given as initial_state") -> "Starts":
        """Return starts that somebody gave [C, P], some of which may be equal."""
        distinct, numbers = np.unique(theta, axis=0, return_inverse=True)
        superchains = numbers.ravel() if len(distinct) < len(theta) else None
        return cls(theta, text, superchains=superchains)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """All that decides the draws of a run: choices of the caller, and the environment.

    Attributes:
        spec: What is sampled.
        kernel: Kernel settings as JSON (`tfbnn.engine.kernels.registry.kernel_to_json`).
        sampling: Seed, numbers of chains, transitions and draws; the last of them may grow.
        environment: As `tfbnn.engine.basis.seeds.describe_environment` says it.
        temperatures: Powers of the likelihood of a chain's rungs.
        initial_state: Starts where the caller said where the chains start, else None.
    """

    spec: Sampled
    kernel: dict[str, Any]
    sampling: Sampling
    environment: dict[str, Any]
    temperatures: tuple[float, ...]
    initial_state: Starts | None = None

    @property
    def num_rows(self) -> int:
        """Rows that a density adds up; 0 of a log density, which has its own."""
        return 0


@dataclass(frozen=True, kw_only=True)
class FitConfig(RunConfig):
    """All that is settled of a fit of a model to rows.

    Attributes besides those:
        spec: NetworkSpec.
        rows, validation: Rows; the latter may be None.
        pretraining: Pretraining, or None.
        provenance: What the ensemble is to say of its origin, as far as no draw is needed.
        calibrate: Whether the run ends with a calibration by its rows, which decides no draw: one
            that goes on may end otherwise.
        effort: As in `FitOptions`: what a run that goes on without a number of draws may still spend.
    """

    spec: NetworkSpec
    rows: Rows
    validation: Rows | None
    pretraining: Pretraining | None
    provenance: Provenance
    calibrate: bool = False
    effort: float = 1.0

    @property
    def num_rows(self) -> int:
        return self.spec.num_rows_of_chains(len(self.rows.x)) + self.spec.num_earlier

    @cached_property
    def transformed(self) -> TransformedRows:
        """The rows on the scale the network sees."""
        return learn_transforms(self.spec, self.rows, self.validation)


class GroupLayout(NamedTuple):
    """The part of a plan that a resumed run keeps, whatever device and settings say now.

    Attributes:
        groups: Lists of chains, a chain group each.
        length: Transitions per block.
    """

    groups: list[list[int]]
    length: int


class Beginning(NamedTuple):
    """Facts of a run at its beginning, besides its configuration.

    Attributes:
        starts: Where its chains start.
        start_log_prob: The log densities there [C].
        layout: Which chains advance together, and in which blocks.
        in_workers: Whether they advance with one thread per operation, as on a cluster.
    """

    starts: Starts
    start_log_prob: Array
    layout: GroupLayout
    in_workers: bool = False
