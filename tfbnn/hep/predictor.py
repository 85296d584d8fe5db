"""Cross sections in the calling convention of GAMBIT's ColliderBit back ends.

A back end has `set_parameters(dict)`, `import_slha_string(text)` and `get_xsection((pid1, pid2))`,
which returns a dict with "central", "tot_err_down", "tot_err_up" in fb and "trust_level"
(GAMBIT 2.2, ColliderBit, getxsec.cpp). Everything that comes out is in fb; targets may be in pb.
"""

import os
from typing import cast

from tfbnn.data.validation import check_number
from tfbnn.hep.process import FB, Pids, Process, pid_pair
from tfbnn.hep.process_folder import read_processes
from tfbnn.hep.slha import place_text, read_places
from tfbnn.system.arrays import Array
from tfbnn.system.paths import StrPath

_QUANTILES = [0.16, 0.5, 0.84]


class CrossSectionPredictor:
    """Cross sections of several processes at one point of a model's parameter space at a time.

    Args:
        folder: Folder that `write_processes` wrote.

    Attributes:
        processes: Dict (pid1, pid2), sorted -> Process.
        parameters: Dict name -> value of the present point, set by the methods below.

    Raises:
        FileNotFoundError: When there is no such folder.
        ModelFileError: When something in it is not what it says.

    Example:
        predictor = CrossSectionPredictor("gauginos")
        predictor.import_slha("point.slha")
        result = predictor.get_xsection((1000022, 1000023))
        result["central"], result["tot_err_down"], result["tot_err_up"]    # fb
    """

    def __init__(self, folder: StrPath):
        self.processes = read_processes(folder)
        self.parameters: dict[str, float] = {}
        self._places = {
            name: place
            for process in self.processes.values()
            for name, place in process.inputs.items()
        }

    def set_parameters(self, parameters: dict[str, float]) -> None:
        """Sets inputs of the networks by name, in the units of the fit; the others stay.

        Args:
            parameters: Dict name -> number. "energy", the centre-of-mass energy in GeV, is known
                besides the inputs: once it is set, processes at another energy are refused.

        Raises:
            TypeError, ValueError: For unknown names, and for values that are not finite numbers.
        """
        if not isinstance(parameters, dict):
            raise TypeError(f"parameters must be a dict, received {type(parameters).__name__}.")
        unknown = [name for name in parameters if name not in self._places and name != "energy"]
        if unknown:
            raise ValueError(
                f"No process has the input {', '.join(map(repr, unknown))}. Known: "
                f"{', '.join(['energy', *self._places])}."
            )
        values = {name: check_number(name, value) for name, value in parameters.items()}
        self.parameters.update(values)

    def import_slha(self, path: StrPath) -> None:
        """Sets the inputs of all processes from an SLHA file, as `import_slha_string` does."""
        with open(os.fspath(path), encoding="utf-8") as file:
            self.import_slha_string(file.read())

    def import_slha_string(self, text: str) -> None:
        """Sets the inputs of all processes from SLHA text; needs the extra `hep`.

        Args:
            text: Content of a spectrum file.

        Raises:
            ImportError: When the package pyslha is not installed.
            TypeError, ValueError: When the text is not SLHA or lacks an input of a process.
        """
        self.parameters.update(read_places(text, self._places))

    def get_xsection(self, pids: Pids) -> dict[str, float]:
        """The cross section of one process at the present point.

        Args:
            pids: PDG codes of the two produced particles, in any order.

        Returns:
            Dict of "central", the median of the predictive distribution in fb; "tot_err_down" and
            "tot_err_up", the distances from there to its 16 % and 84 % quantiles in fb, both
            >= 0; "trust_level": 1 inside the training data, 0 at their edge, -1 outside
            (`tfbnn.trust`).

        Raises:
            ValueError: For an unknown process, one at another energy, or inputs that are not set.
        """
        process = self._process(pids)
        prediction = process.model.predict(
            [self._point(process)],
            include_noise=process.include_noise,
            quantiles=_QUANTILES,
            return_trust=True,
        )
        quantiles = cast(Array, prediction.columns.quantiles)
        trust = cast(Array, prediction.trust)
        low, central, high = (quantiles[:, 0, 0] * FB[process.unit]).tolist()
        return {
            "central": central,
            "tot_err_down": central - low,
            "tot_err_up": high - central,
            "trust_level": int(trust[0]),
        }

    def get_xsections(self) -> dict[Pids, dict[str, float]]:
        """The cross sections of all processes: dict (pid1, pid2), sorted -> as `get_xsection`."""
        return {pids: self.get_xsection(pids) for pids in self.processes}

    def _process(self, pids: Pids) -> Process:
        pids = pid_pair(pids)
        if pids not in self.processes:
            known = ", ".join(map(str, self.processes))
            raise ValueError(f"There is no process {pids}. Known: {known}.")
        process, energy = self.processes[pids], self.parameters.get("energy")
        if energy not in (None, process.energy):
            raise ValueError(
                f"The process {pids} is at {process.energy:g} GeV, the parameter energy is "
                f"{energy:g} GeV. Use networks fitted at that energy."
            )
        return process

    def _point(self, process: Process) -> list[float]:
        """The present point as a row, in the order of the columns of the fit."""
        missing = [name for name in process.inputs if name not in self.parameters]
        if missing:
            wanted = ", ".join(f"{name} ({place_text(process.inputs[name])})" for name in missing)
            raise ValueError(
                f"The process {process.pids} needs {wanted}, not set yet. Use set_parameters, "
                "import_slha or import_slha_string."
            )
        return [self.parameters[name] for name in process.inputs]
