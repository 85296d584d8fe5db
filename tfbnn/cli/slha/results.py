"""What `tfbnn slha eval` gives: rows of a table, records of JSON, copies of spectra."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfbnn.cli.slha.points import Copies, read_text, write_text
from tfbnn.data.csv_tables import Writer
from tfbnn.data.training_inputs import OUTSIDE
from tfbnn.hep.predictor import CrossSections
from tfbnn.hep.process import Process
from tfbnn.hep.xsection_blocks import Entry, with_blocks
from tfbnn.system.arrays import Array

_NETWORK = ("central_fb", "err_down_fb", "err_up_fb")
_OTHERS = ("other_err_down_fb", "other_err_up_fb", "tot_err_down_fb", "tot_err_up_fb")
_WHOLE = ("pid1", "pid2", "trust")


def columns_of(with_others: bool) -> list[str]:
    """Names of the columns: the point, then numbers; with errors of other origin, or without."""
    return [
        *("point", "pid1", "pid2", "energy_GeV", *_NETWORK),
        *(_OTHERS if with_others else ()),
        "trust",
    ]


class Results:
    """Takes what was found of a scan, batch by batch, to where it is wanted.

    Args:
        processes: The processes of the folder.
        with_others: Whether errors of other origin are added, and shown.
        write: Takes the rows of a table, or None.
        copies: Where copies of spectra go, or None.
        keeps_records: Whether `records` are wanted.

    Attributes:
        records: The rows as JSON has them.
        num_points: Points so far.
        num_strangers: Copies in which another code's cross sections of the same process stay.
        untrusted: Names of points with a cross section of trust -1.
    """

    def __init__(
        self,
        processes: Sequence[Process],
        with_others: bool,
        write: Writer | None,
        copies: Copies | None,
        keeps_records: bool,
    ):
        self._processes, self._with_others = processes, with_others
        self._write, self._copies, self._keeps_records = write, copies, keeps_records
        self.records: list[dict[str, Any]] = []
        self.num_points = self.num_strangers = 0
        self.untrusted: list[str] = []

    def take(self, names: Sequence[str], sections: CrossSections) -> None:
        """Takes the points of these names, which are paths where there are copies."""
        self.num_points += len(names)
        is_outside = np.any(sections.trust == OUTSIDE, axis=1)
        self.untrusted += [name for name, outside in zip(names, is_outside) if outside]
        points = np.repeat(np.array(names, dtype=str), len(sections.pids))
        values = self._values(sections)
        if self._write is not None:
            self._write(values, [points])
        if self._keeps_records:
            self.records += _records(columns_of(self._with_others), points, values)
        if self._copies is not None:
            self._write_copies(self._copies, names, sections)

    def _values(self, sections: CrossSections) -> Array:
        """The numbers of the rows [N * P, columns], point by point."""
        others = (
            sections.other_down,
            sections.other_up,
            sections.total_down,
            sections.total_up,
        )
        constants = np.array([[*process.pids, process.energy] for process in self._processes])
        parts = [
            *(np.broadcast_to(column, sections.central.shape) for column in constants.T),
            *(sections.central, sections.err_down, sections.err_up),
            *(others if self._with_others else ()),
            sections.trust,
        ]
        return np.stack(parts, axis=2).reshape(sections.central.size, -1)

    def _write_copies(
        self, copies: Copies, spectra: Sequence[str], sections: CrossSections
    ) -> None:
        down = sections.total_down if self._with_others else sections.err_down
        up = sections.total_up if self._with_others else sections.err_up
        numbers = np.stack([sections.central, down, up], axis=2).tolist()
        for spectrum, rows, trusts in zip(spectra, numbers, sections.trust.tolist()):
            entries = [
                Entry(process, central, low, high, int(trust))
                for process, (central, low, high), trust in zip(self._processes, rows, trusts)
            ]
            text, strangers = with_blocks(read_text(spectrum), entries)
            write_text(copies.path_of(spectrum), text)
            self.num_strangers += bool(strangers)


def _records(columns: Sequence[str], points: Array, values: Array) -> list[dict[str, Any]]:
    return [
        {columns[0]: point}
        | {name: int(value) if name in _WHOLE else value for name, value in zip(columns[1:], row)}
        for point, row in zip(points.tolist(), values.tolist())
    ]


def citations(processes: Sequence[Process]) -> list[str]:
    """What is to be cited, each once."""
    sources = [(process.citation, process.doi and f"doi:{process.doi}") for process in processes]
    texts = (", ".join(filter(None, source)) for source in sources)
    return list(dict.fromkeys(filter(None, texts)))
