"""How the cross sections of a process were computed, in the words of an XSECTION line."""

from dataclasses import dataclass, fields
from typing import Any

from tfbnn.data.validation import check_integer, check_number


@dataclass(frozen=True)
class Calculation:
    """How the targets of a process were computed: the columns of an XSECTION line.

    They are those of the extension of SLHA that was proposed at Les Houches in 2013
    (https://phystev.cnrs.fr/wiki/2013:groups:tools:slha), which pyslha and SModelS read.

    Attributes:
        qcd_order: 0 Born, 1 NLO, 2 NLO + NLL; larger codes are written as they are.
        ew_order: The same of electroweak corrections; default 0.
        scale_scheme: What the central scale is: 0 (default) the mean mass of the two particles, 1
            fixed, 2 the partonic energy, 3 the transverse mass.
        kappa_f, kappa_r: Factorisation and renormalisation scale in units of the central one,
            default 1; with scale_scheme 1 the scales themselves in GeV.
        pdf_id: LHAPDF number of the parton densities; default 0, not known.

    Raises:
        TypeError, ValueError: For anything but such numbers.
    """

    qcd_order: int
    ew_order: int = 0
    scale_scheme: int = 0
    kappa_f: float = 1.0
    kappa_r: float = 1.0
    pdf_id: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int:
                value = check_integer(field.name, value, minimum=0)
            else:
                value = check_number(field.name, value, above=0)
            object.__setattr__(self, field.name, value)

    @property
    def columns(self) -> dict[str, Any]:
        """Name -> number, in the order of the line."""
        order = ("scale_scheme", "qcd_order", "ew_order", "kappa_f", "kappa_r", "pdf_id")
        return {name: getattr(self, name) for name in order}
