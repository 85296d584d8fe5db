"""The settled settings of a run, as stored in its folder. A resumed run needs nothing else."""

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
        text: One line on how they were found.
        seconds: Seconds that the search took.
        interrupted: Whether the user asked to stop during the search. The starts are as found by then.
        superchains: Number of the superchain of each chain [C]. Chains with the same number start from one
            network, or from particles that may have a common ancestor. None if all are independent.
    """

    theta: Array
    text: str
    seconds: Seconds = Seconds()
    interrupted: bool = False
    superchains: Array | None = None

    @classmethod
    def given(cls, theta: Array, text: str = "given as initial_state") -> "Starts":
        """Return starts given by the user [C, P], some of which may be equal."""
        distinct, numbers = np.unique(theta, axis=0, return_inverse=True)
        superchains = numbers.ravel() if len(distinct) < len(theta) else None
        return cls(theta, text, superchains=superchains)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """All settings that determine the draws of a run: the choices of the caller, and the environment.

    Attributes:
        spec: Spec that is sampled.
        kernel: Kernel settings as JSON (`tfbnn.engine.kernels.registry.kernel_to_json`).
        sampling: Seed, numbers of chains, transitions and draws. The number of draws may grow.
        environment: Result of `tfbnn.engine.basis.seeds.describe_environment`.
        temperatures: Powers of the likelihood at the rungs of a chain.
        initial_state: Starts if the caller gave them, else None.
    """

    spec: Sampled
    kernel: dict[str, Any]
    sampling: Sampling
    environment: dict[str, Any]
    temperatures: tuple[float, ...]
    initial_state: Starts | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows in the density; 0 for a log density, which has its own data."""
        return 0


@dataclass(frozen=True, kw_only=True)
class FitConfig(RunConfig):
    """All settled settings of the fit of a model to rows.

    Attributes besides those:
        spec: NetworkSpec.
        rows, validation: Rows; the latter may be None.
        pretraining: Pretraining, or None.
        provenance: The parts of the provenance of the ensemble that are known without draws.
        calibrate: Whether the run ends with a calibration by its rows. This affects no draw, so a resumed
            run may end differently.
        effort: As in `FitOptions`. It limits the work of a resumed run without a fixed number of draws.
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
    """The part of a plan that a resumed run keeps, whatever the device and the settings are now.

    Attributes:
        groups: Chain groups, each a list of chains.
        length: Transitions per block.
    """

    groups: list[list[int]]
    length: int


class Beginning(NamedTuple):
    """Facts recorded when a run begins, besides its configuration.

    Attributes:
        starts: Starts of the chains.
        start_log_prob: The log densities there [C].
        layout: The chains that advance together, and the length of blocks.
        in_workers: Whether the chains advance with one thread per operation, as on a cluster.
    """

    starts: Starts
    start_log_prob: Array
    layout: GroupLayout
    in_workers: bool = False
