"""Cross sections as XSECTION blocks of SLHA text.

    XSECTION  13000 2212 2212 2 1000022 1000023
       0 1 0  1  1 0  0.0123 tfbnn 0.3.0 # pb, -0.0004 +0.0004, trust 1, with pdf -2.1 % +2.1 %

The format was proposed at Les Houches in 2013 (see `tfbnn.hep.Calculation`): the order, scales and
parton densities, followed by the cross section in pb and the code that computed it. The format has
no field for errors. Lines with shifted values would be taken for cross sections: SModelS keeps the
largest of several values of one order. So errors are written in a comment. With errors of other
origin, the comment has the sum with the network's errors, and the size of each of the others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from tfbnn.data.numbers import is_number
from tfbnn.hep.process import FB, Calculation, Pids, Process, pid_pair
from tfbnn.hep.slha import SECTIONS
from tfbnn.system.version import __version__

_CODE = "tfbnn"
# Index of the word in a line that names the code.
_CODE_INDEX = 7
# Two particles produced by two protons.
_HEADER = re.compile(
    r"XSECTION\s+(?P<energy>\S+)\s+2212\s+2212\s+2\s+(?P<first>-?\d+)\s+(?P<second>-?\d+)\s*(#.*)?",
    re.IGNORECASE,
)


class Entry(NamedTuple):
    """Numbers to write for one process: central value and errors (down, up) in fb, and trust level.

    The errors include the relative errors of other origin in `others`, dict name -> (down, up).
    """

    process: Process
    central: float
    down: float
    up: float
    trust: int
    others: Mapping[str, tuple[float, float]] = {}


def check_calculations(processes: Iterable[Process]) -> None:
    """Check that each process has a `Calculation`, which an XSECTION block has to state."""
    unknown = [process.pids for process in processes if process.calculation is None]
    if unknown:
        raise ValueError(
            f"XSECTION blocks state the order of the calculation, which is not known of "
            f"{', '.join(map(str, unknown))}. Give these processes a Calculation, in a description "
            "'xsection = {qcd_order = 1}', and write their folder again."
        )


def with_blocks(text: str, entries: Sequence[Entry]) -> tuple[str, list[Pids]]:
    """Append one XSECTION block per entry to SLHA text.

    Earlier blocks of tfbnn for the same processes are removed, with blank lines around them. All
    other text is kept byte by byte.

    Args:
        text: SLHA text.
        entries: Entries of processes with a calculation.

    Returns:
        (text, processes that also keep cross sections of another code at the same energy).

    Raises:
        ValueError: For a process without a calculation.
    """
    check_calculations(entry.process for entry in entries)
    kept, strangers = _without_ours(text, {_key(entry.process) for entry in entries})
    kept = kept.rstrip("\n") + "\n" if kept.strip() else ""
    blocks = "\n".join(map(_block, entries))
    others = [entry.process.pids for entry in entries if _key(entry.process) in strangers]
    return f"{kept}\n{blocks}\n", others


def _block(entry: Entry) -> str:
    process, calculation = entry.process, cast(Calculation, entry.process.calculation)
    header = f"XSECTION {_written(process.energy)} 2212 2212 2 {process.pids[0]} {process.pids[1]}"
    values = [*calculation.columns.values(), entry.central / FB["pb"]]
    line = f"   {' '.join(map(_written, values))} {_CODE} {__version__}"
    down, up = entry.down / FB["pb"], entry.up / FB["pb"]
    others = "".join(
        f", with {name} -{100 * low:.2g} % +{100 * high:.2g} %"
        for name, (low, high) in entry.others.items()
    )
    return f"{header}\n{line} # pb, -{down:.3g} +{up:.3g}, trust {entry.trust}{others}\n"


def _written(value: float) -> str:
    """Format a number like pyslha, with eight digits and a column for the sign."""
    return str(value) if isinstance(value, int) else f"{value: .8g}"


def _without_ours(text: str, keys: set[tuple[float, Pids]]) -> tuple[str, set[tuple[float, Pids]]]:
    """Remove tfbnn's lines about some processes from SLHA text.

    Returns:
        (Remaining text, keys of the processes that other codes have lines about).
    """
    strangers: set[tuple[float, Pids]] = set()
    kept: list[str] = []
    for header, lines in _sections(text):
        key = _key_of(header)
        if key in keys:
            ours = [line for line in lines if _is_ours(line)]
            rest = [line for line in lines if not _is_ours(line)]
            if any(line.partition("#")[0].strip() for line in rest):
                strangers.add(key)
            elif ours:
                # No lines of other codes, but lines after ours may be comments on what follows.
                behind = lines[lines.index(ours[-1]) + 1 :]
                kept += [line for line in behind if line.strip()]
                continue
            lines = rest
        kept += [header, *lines]
    return "".join(kept), strangers


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (header, lines below it) of each section; the text before the first has no header."""
    header = ""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        words = line.split(maxsplit=1)
        if words and words[0].upper() in SECTIONS:
            yield header, lines
            header, lines = line, []
        else:
            lines.append(line)
    yield header, lines


def _key(process: Process) -> tuple[float, Pids]:
    return _as_written(process.energy), process.pids


def _as_written(energy: float) -> float:
    """Round an energy to seven digits, as a header has fewer digits than a process may have."""
    return float(f"{energy:.6e}")


def _key_of(header: str) -> tuple[float, Pids] | None:
    """Return (energy, sorted particles) of an XSECTION header, or None for another header."""
    match = _HEADER.fullmatch(header.strip())
    if match is None or not is_number(match["energy"]):
        return None
    return _as_written(float(match["energy"])), pid_pair(
        (int(match["first"]), int(match["second"]))
    )


def _is_ours(line: str) -> bool:
    return line.partition("#")[0].split()[_CODE_INDEX : _CODE_INDEX + 1] == [_CODE]
