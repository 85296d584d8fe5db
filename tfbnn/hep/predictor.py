"""Cross-section predictions, with the calling convention of GAMBIT's ColliderBit back ends.

A back end has `set_parameters(dict)`, `import_slha_string(text)` and `get_xsection((pid1, pid2))`,
which returns a dict with "central", "tot_err_down", "tot_err_up" in fb and "trust_level"
(GAMBIT 2.2, ColliderBit, getxsec.cpp). All results are in fb; targets may be in pb. `predict` takes
many points at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from tfbnn.data.frames import column_names, refuse_foreign_table, refuse_other_order, select_columns
from tfbnn.data.table import Table
from tfbnn.data.validation import as_float_array, as_matrix, check_flag, check_number
from tfbnn.exceptions import DataWarning
from tfbnn.hep.errors import check_errors
from tfbnn.hep.inputs import columns_of, input_text, unit_of
from tfbnn.hep.process import (
    Pids,
    Process,
    known_process,
    pid_pair,
)
from tfbnn.hep.process_folder import read_processes
from tfbnn.hep.slha import Place, place_text, read_places
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath
from tfbnn.system.words import warn


def parameter_columns(points: Any, places: Mapping[str, Place]) -> dict[str, Array]:
    """Read the parameters of N points from a table; return a dict name -> array [N].

    Args:
        points: A data frame, or a dict name -> numbers [N], or one number.
        places: Dict name -> SLHA place of the parameters. A column may also have another name of
            the same SLHA place, or a name such as MASS:1000022.

    Raises:
        TypeError, ValueError: For points of another type, missing columns, and numbers that are not
            finite.
    """
    refuse_foreign_table(points, "points")
    known = tuple(points) if isinstance(points, Mapping) else column_names(points)
    if known is None:
        raise TypeError(
            "points must be a data frame or a dict name -> numbers, received "
            f"{type(points).__name__}: inputs are found by name."
        )
    source = columns_of(known, places)
    if missing := [name for name, column in source.items() if column not in known]:
        wanted = ", ".join(_with_place(name, places[name]) for name in missing)
        raise ValueError(f"points have no column {wanted}. Add it, or leave processes out.")
    names = tuple(dict.fromkeys(source.values()))
    if isinstance(points, Mapping):
        for name in names[1:]:
            refuse_other_order(points[names[0]], points[name], name, names[0])
        columns = [np.atleast_1d(as_float_array(points[name], name)) for name in names]
        if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
            found = ", ".join(f"{name} {list(c.shape)}" for name, c in zip(names, columns))
            raise ValueError(f"points must have one number per point and input, received {found}.")
        points = Table(names, np.column_stack(columns))
    values = as_matrix(select_columns(points, names, "points", others=True), "points")
    of_columns = dict(zip(names, values.T))
    return {name: of_columns[column] for name, column in source.items()}


def _with_place(name: str, place: Place) -> str:
    """Format a parameter for messages: m (MASS 1000022), or MASS:1000022 alone."""
    return name if ":" in name else f"{name} ({place_text(place)})"


# Levels of the lower end of the error bar, the central value, and the upper end.
_QUANTILES = [0.16, 0.5, 0.84]


def _predicted(process: Process, values: Mapping[str, Array]) -> tuple[Array, ...]:
    """Predict the cross section of a process at N points, given parameters and inputs [N] by name.

    Returns:
        (central [N], down [N], up [N], trust [N]); the first three are in fb.
    """
    x = np.column_stack([values[name] for name in process.features])
    _warn_of_signed_masses(process, x)
    prediction = process.model.predict(
        x, include_noise=process.include_noise, quantiles=_QUANTILES, return_trust=True
    )
    quantiles = cast(Array, prediction.columns.quantiles)[:, :, 0]
    low, central, high = process.cross_sections(quantiles, values)
    return central, central - low, high - central, cast(Array, prediction.trust)


def _warn_of_signed_masses(process: Process, x: Array) -> None:
    """Warn about negative masses where the fit had none: tables often hold absolute values."""
    if not (x < 0).any():
        return
    ensemble = process.model.posterior
    low = ensemble.x_pipeline.inverse(ensemble.training_inputs.low[None])[0]
    newly_negative = np.any(x < 0, axis=0) & (low >= 0)
    for name, signed in zip(process.features, newly_negative):
        if signed and unit_of(process.inputs[name]):
            warn(
                f"{name} ({input_text(process.inputs[name])}) is negative, but never was in the training rows. "
                f"SLHA masses of Majorana particles have signs: pass abs({name}) if the training table "
                "has absolute values.",
                DataWarning,
            )


def _places_of(processes: Iterable[Process]) -> dict[str, Place]:
    return {name: place for process in processes for name, place in process.places.items()}


@dataclass(frozen=True, eq=False)
class CrossSections:
    """Cross sections of N points and P processes: arrays [N, P], in fb unless stated otherwise.

    Attributes:
        pids: The processes, P sorted pairs of PDG codes.
        central: Medians of the predictive distributions.
        err_down, err_up: Errors of the network: distances from the median to the 16 % and 84 %
            quantiles, >= 0.
        other_down, other_up: Errors of other origin, given in the folder or in the call, added in
            quadrature; 0 where there are none.
        trust: 1 inside the training data, 0 at their edge, -1 outside (`tfbnn.trust`).
        relative_errors: For each process a dict name -> relative error of that origin, down and up
            [N, 2].
    """

    pids: tuple[Pids, ...]
    central: Array
    err_down: Array
    err_up: Array
    other_down: Array
    other_up: Array
    trust: Array
    relative_errors: Sequence[Mapping[str, Array]]

    @property
    def total_down(self) -> Array:
        """Downward errors of the network and of other origin, added in quadrature."""
        return np.hypot(self.err_down, self.other_down)

    @property
    def total_up(self) -> Array:
        """Upward errors of the network and of other origin, added in quadrature."""
        return np.hypot(self.err_up, self.other_up)

    def __len__(self) -> int:
        return len(self.central)


class CrossSectionPredictor:
    """Predictor of cross sections of several processes, at one point or at many points.

    Many operating-system processes may read one folder at the same time, also while it is
    replaced. Each holds the models in its own memory and computes large batches on all its cores.
    Under MPI, set OMP_NUM_THREADS=1 if the launcher does not state how many ranks share a host.

    Args:
        folder: Folder written by `write_processes` or 'tfbnn slha make'.
        processes: Pairs of PDG codes to load, in any order; None (default): all.
        other_errors: Whether `get_xsection` adds errors of other origin than the network to its
            own; default False.
        untrusted: True for folders of strangers, as in `tfbnn.load`; default False.

    Attributes:
        processes: Dict (pid1, pid2), sorted -> Process.
        places: Parameters that the processes need, dict name -> SLHA place (block, index, ..). An
            input at an SLHA place has its own name; an SLHA place in an expression has the name
            used there, "MASS:1000022".
        parameters: Dict name -> value of the current point, set by the methods below.

    Raises:
        FileNotFoundError: When there is no such folder.
        ValueError: For a process that the folder does not hold.
        ModelFileError: When a file in the folder is damaged or contradicts the index.

    Example:
        predictor = CrossSectionPredictor("gauginos")
        predictor.import_slha("point.slha")
        result = predictor.get_xsection((1000022, 1000023))
        result["central"], result["tot_err_down"], result["tot_err_up"]    # fb

        scan = predictor.predict(pandas.read_csv("points.csv"))            # all points at once
        scan.central, scan.err_down, scan.err_up, scan.trust               # [points, processes]
    """

    def __init__(
        self,
        folder: StrPath,
        processes: Iterable[Pids] | None = None,
        *,
        other_errors: bool = False,
        untrusted: bool = False,
    ):
        pids = None if processes is None else [pid_pair(pair) for pair in processes]
        self._adds_other_errors = check_flag("other_errors", other_errors)
        self.processes = read_processes(folder, pids, untrusted=untrusted)
        self.parameters: dict[str, float] = {}
        self.places = _places_of(self.processes.values())

    def set_parameters(self, parameters: dict[str, float], *, keep: bool = True) -> None:
        """Set parameters of the current point by name, in the units of SLHA or the fit.

        Args:
            parameters: Dict name -> number, with names from `places`. The name "energy", the
                centre-of-mass energy in GeV, is also allowed: once it is set, processes at another
                energy are refused.
            keep: True (default), as in GAMBIT: parameters that are not named keep their values,
                even those of an earlier point. False: they are removed, so that a process that
                needs them raises an error.

        Raises:
            TypeError, ValueError: For unknown names, and for values that are not finite numbers.

        Warns:
            DataWarning: When part of a row of a mixing matrix keeps its value: a row is one unit
                vector.
        """
        if not isinstance(parameters, dict):
            raise TypeError(f"parameters must be a dict, received {type(parameters).__name__}.")
        source = columns_of(parameters, {"energy": ("energy",), **self.places})
        if unknown := [name for name in parameters if name not in source.values()]:
            raise ValueError(
                f"No process has the input {', '.join(map(repr, unknown))}. Known: {', '.join(source)}."
            )
        given = {name: column for name, column in source.items() if column in parameters}
        values = {name: check_number(column, parameters[column]) for name, column in given.items()}
        if check_flag("keep", keep):
            self._warn_of_mixed_rows(values)
        else:
            self.parameters.clear()
        self.parameters.update(values)

    def import_slha(self, path: StrPath) -> None:
        """Set the inputs of all processes from an SLHA file; see `import_slha_string`."""
        # Comments may be in any encoding.
        self.import_slha_string(Path(path).read_text("utf-8", "surrogateescape"))

    def import_slha_string(self, text: str) -> None:
        """Set the inputs of all processes from SLHA text.

        Args:
            text: Content of a spectrum file.

        Raises:
            TypeError, ValueError: When the text lacks an input of a process, or says that the point
                is invalid (SPINFO 4).

        Warns:
            DataWarning: For warnings of the spectrum program (SPINFO 3).
        """
        self.parameters.update(self.read_slha_string(text))

    def read_slha_string(self, text: str) -> dict[str, float]:
        """Read the inputs of all processes from SLHA text, dict name -> value; set nothing.

        Raises:
            TypeError, ValueError: As `import_slha_string`.
        """
        return read_places(text, self.places)

    def get_xsection(self, pids: Pids) -> dict[str, float]:
        """Compute the cross section of one process at the current point.

        Args:
            pids: PDG codes of the two produced particles, in any order.

        Returns:
            Dict with "central", the median of the predictive distribution in fb; "tot_err_down" and
            "tot_err_up", the distances from the median to the 16 % and 84 % quantiles in fb, both
            >= 0; "trust_level": 1 inside the training data, 0 at their edge, -1 outside
            (`tfbnn.trust`). With `other_errors`, the errors of other origin stored in the folder
            are added to "tot_err_down" and "tot_err_up" in quadrature, and the dict also has the
            parts: "network_err_down", "network_err_up", "other_err_down" and "other_err_up".

        Raises:
            ValueError: For an unknown process, one at another energy, or inputs that are not set.
        """
        process = known_process(pids, self.processes)
        energy = self.parameters.get("energy")
        if energy not in (None, process.energy):
            raise ValueError(
                f"The process {process.pids} is at {process.energy:g} GeV, the parameter energy is "
                f"{energy:g} GeV. Use networks fitted at that energy."
            )
        places = process.places
        missing = [name for name in places if name not in self.parameters]
        if missing:
            wanted = ", ".join(_with_place(name, places[name]) for name in missing)
            raise ValueError(
                f"The process {process.pids} needs {wanted}, not set yet. Use set_parameters, "
                "import_slha or import_slha_string."
            )
        point = {name: np.array([self.parameters[name]]) for name in places}
        found = self._cross_sections([process], point)
        parts = {
            "central": found.central,
            "tot_err_down": found.err_down,
            "tot_err_up": found.err_up,
            "trust_level": found.trust,
        }
        if self._adds_other_errors:
            parts |= {"tot_err_down": found.total_down, "tot_err_up": found.total_up}
            parts |= {"network_err_down": found.err_down, "network_err_up": found.err_up}
            parts |= {"other_err_down": found.other_down, "other_err_up": found.other_up}
        return {name: part.item() for name, part in parts.items()}

    def get_xsections(self) -> dict[Pids, dict[str, float]]:
        """Compute the cross sections of all processes; return a dict of sorted PDG codes -> result.

        Each result is a dict as returned by `get_xsection`.
        """
        return {pids: self.get_xsection(pids) for pids in self.processes}

    def predict(
        self,
        points: Any,
        *,
        processes: Iterable[Pids] | None = None,
        errors: Mapping[str, Any] | None = None,
    ) -> CrossSections:
        """Compute the cross sections of many points at once, independent of the current point.

        Args:
            points: Parameters of N points by name (`places`), in the units of SLHA or the fit: a data
                frame, or a dict name -> numbers [N], or one number. Other columns are ignored.
            processes: Pairs of PDG codes, in any order; None (default): all processes of the
                folder.
            errors: Relative errors of other origin: dict name -> number, (down, up), or an array
                [N] or [N, 2] with one row per point. They replace errors of the same name in the
                folder.

        Returns:
            `CrossSections` with arrays [N, P]: central, err_down, err_up, other_down, other_up, the
            sums in quadrature total_down and total_up, all in fb, and trust.

        Raises:
            TypeError, ValueError: For an unknown process, a missing column, or unusable numbers.
        """
        pids = self.processes if processes is None else processes
        chosen = [known_process(pair, self.processes) for pair in pids]
        if not chosen:
            raise ValueError("processes must name at least one process, received none.")
        parameters = parameter_columns(points, _places_of(chosen))
        for name, error in errors.items() if isinstance(errors, Mapping) else ():
            refuse_other_order(points, error, f"error {name!r}", "points")
        return self._cross_sections(chosen, parameters, errors)

    def _cross_sections(
        self,
        processes: Sequence[Process],
        parameters: Mapping[str, Array],
        errors: Mapping[str, Any] | None = None,
    ) -> CrossSections:
        """Compute the cross sections of processes at N points, given parameters [N] by name."""
        num_points = len(next(iter(parameters.values())))
        of_points = check_errors(errors, num_points)
        columns, relative_errors = [], []
        for process in processes:
            values = process.values(parameters)
            central, *errors_of_network, trust = _predicted(process, values)
            others = {
                name: process.relative_errors(name, values, num_points)
                for name in process.errors
                if name not in of_points
            }
            others |= {
                name: np.broadcast_to(error, (num_points, 2)) for name, error in of_points.items()
            }
            # Independent errors add in quadrature.
            relative = np.sqrt(sum(map(np.square, others.values()), np.zeros((num_points, 2)))).T
            columns.append((central, *errors_of_network, *np.abs(central) * relative, trust))
            relative_errors.append(others)
        central, down, up, other_down, other_up, trust = map(np.column_stack, zip(*columns))
        pids = tuple(process.pids for process in processes)
        return CrossSections(pids, central, down, up, other_down, other_up, trust, relative_errors)

    def _warn_of_mixed_rows(self, values: Mapping[str, float]) -> None:
        """Warn about rows of mixing matrices that would mix the values of two points."""
        rows = {name: place[:2] for name, place in self.places.items() if len(place) == 3}
        new = {rows[name] for name in values if name in rows}
        stays = [name for name in rows if rows[name] in new and name not in values]
        stays = [name for name in stays if name in self.parameters]
        if stays:
            warn(
                f"set_parameters sets only part of a row of a mixing matrix; {', '.join(stays)} keep their "
                "earlier values. Set the whole row, or pass keep=False.",
                DataWarning,
            )
