"""Names and units of columns, for labels: `xsec_fb` is a xsec in fb."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tfbnn.plots.canvas import plain
from tfbnn.posterior.ensemble import Ensemble

# Endings that mean nothing else in a name: energies and cross sections.
_PREFIXES = {"eV": ("", "k", "M", "G", "T"), "b": ("m", "u", "n", "p", "f", "a")}
_KNOWN = "|".join(prefix + unit for unit, prefixes in _PREFIXES.items() for prefix in prefixes)
_ENDING = re.compile(rf"(?P<name>.*[^_])_(?P<unit>{_KNOWN})", re.DOTALL)
_BRACKETS = re.compile(r"(?P<name>.*\S)\s*\[(?P<unit>[^\[\]]+)\]", re.DOTALL)


@dataclass(frozen=True)
class Quantity:
    """A column by its name and its unit, which is "" where it is not known."""

    name: str
    unit: str = ""

    @classmethod
    def of_column(cls, column: str) -> Quantity:
        """Out of a column's name: `m_GeV`, `xsec_fb`, `m [GeV]`, `length [cm]`."""
        found = _BRACKETS.fullmatch(column) or _ENDING.fullmatch(column)
        return cls(column) if found is None else cls(found["name"], found["unit"])

    @property
    def text(self) -> str:
        """As it is: "xsec [fb]"."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def label(self) -> str:
        """The same for an axis, which draws it letter by letter."""
        return f"{self.symbol} [{plain(self.unit)}]" if self.unit else self.symbol

    @property
    def symbol(self) -> str:
        """The name alone, for what has no unit."""
        return plain(self.name)


def target_quantities(
    ensemble: Ensemble, unit: str | Sequence[str] | None = None
) -> list[Quantity]:
    """The targets of a model.

    Args:
        ensemble: Ensemble.
        unit: Of all targets, or one for each; None: what their names say.

    Raises:
        ValueError: For another number of units than targets.
    """
    names = ensemble.target_names
    if unit is None:
        return [Quantity.of_column(name) for name in names]
    units = [unit] * len(names) if isinstance(unit, str) else list(unit)
    if len(units) != len(names):
        raise ValueError(
            f"unit must be one for all targets or one for each of {len(names)}, received "
            f"{len(units)}: {', '.join(map(repr, units))}. Pass None to read them from the names."
        )
    return [Quantity(_without(name, own), own) for name, own in zip(names, units)]


def _without(name: str, unit: str) -> str:
    """The name without its unit, where it says this one."""
    found = Quantity.of_column(name)
    return found.name if found.unit == unit else name
