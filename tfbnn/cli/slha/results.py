"""What `tfbnn slha eval` gives: rows of a table, records of JSON, copies of spectra."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfbnn.cli.slha.points import read_text, write_text
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


def values_of(processes: Sequence[Process], sections: CrossSections, with_others: bool) -> Array:
    """Return the numbers of the rows [N * P, columns], point by point."""
    others = (sections.other_down, sections.other_up, sections.total_down, sections.total_up)
    constants = np.array([[*process.pids, process.energy] for process in processes])
    parts = [
        *(np.broadcast_to(column, sections.central.shape) for column in constants.T),
        *(sections.central, sections.err_down, sections.err_up),
        *(others if with_others else ()),
        sections.trust,
    ]
    return np.stack(parts, axis=2).reshape(sections.central.size, -1)


def records_of(columns: Sequence[str], points: Array, values: Array) -> list[dict[str, Any]]:
    """Return the rows as JSON has them."""
    return [
        {columns[0]: point}
        | {name: int(value) if name in _WHOLE else value for name, value in zip(columns[1:], row)}
        for point, row in zip(points.tolist(), values.tolist())
    ]


def write_copies(
    paths: Mapping[str, str],
    processes: Sequence[Process],
    sections: CrossSections,
    with_others: bool,
) -> int:
    """Write copies of spectra with XSECTION blocks.

    Args:
        paths: Dict spectrum -> its copy, in the order of the points.
        processes: The processes of the folder.
        sections: What was found of the points.
        with_others: Whether errors of other origin are added.

    Returns:
        Number of copies in which another code's cross sections of the same process stay.
    """
    down = sections.total_down if with_others else sections.err_down
    up = sections.total_up if with_others else sections.err_up
    numbers = np.stack([sections.central, down, up], axis=2).tolist()
    num_strangers = 0
    for (spectrum, copy), rows, trusts in zip(paths.items(), numbers, sections.trust.tolist()):
        entries = [
            Entry(process, central, low, high, int(trust))
            for process, (central, low, high), trust in zip(processes, rows, trusts)
        ]
        text, strangers = with_blocks(read_text(spectrum), entries)
        write_text(copy, text)
        num_strangers += bool(strangers)
    return num_strangers


def citations(processes: Sequence[Process]) -> list[str]:
    """What is to be cited, each once."""
    sources = [(process.citation, process.doi and f"doi:{process.doi}") for process in processes]
    texts = (", ".join(filter(None, source)) for source in sources)
    return list(dict.fromkeys(filter(None, texts)))
