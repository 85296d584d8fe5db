"""Inputs that respect the symmetries of gaugino pair production, as expressions over SLHA places.

The parameters of a spectrum do not determine a cross section in a unique way. The sign of a row of
a mixing matrix is a convention, and so is the sign of a neutralino mass, which a factor i in its
row would remove. A network of plain masses and mixings has to learn from rows that these choices do
not matter. The inputs below are invariant under them. With massless quarks and real mixings, the
leading order depends only on them and on the masses of squarks. Next-to-leading order QCD
corrections keep its couplings. Add the masses of squarks and of the gluino where they vary.

- neutralinos i, k: the Z couples to Ni3 Nk3 - Ni4 Nk4, squarks to products of Ni1, Ni2 and
  Nk1, Nk2;
- neutralino i, chargino j: the W couples to Ni2 Vj1 - Ni4 Vj2 / sqrt(2) and, for the other
  chirality, to Ni2 Uj1 + Ni3 Uj2 / sqrt(2), squarks to products of Ni1, Ni2 and Vj1, Uj1;
- charginos i, j: photon and Z couple to Vi1 Vj1 and Ui1 Uj1, and so do squarks.

Cross sections are of second order in the couplings, so only relative signs matter. One of the
couplings is therefore taken to be positive; where it crosses zero, the others change sign. Where
the couplings to gauge bosons vanish, cross sections fall by orders of magnitude, which the
logarithms resolve.

References:
    H. E. Haber and G. L. Kane, Phys. Rept. 117 (1985) 75: couplings and conventions.
    S. Dawson, E. Eichten and C. Quigg, Phys. Rev. D 31 (1985) 1581: leading order.
    W. Beenakker et al., Phys. Rev. Lett. 83 (1999) 3780, hep-ph/9906298: next to leading order.
"""

import re
from collections.abc import Sequence

_NEUTRALINOS = {1000022: 1, 1000023: 2, 1000025: 3, 1000035: 4}
_CHARGINOS = {1000024: 1, 1000037: 2}


def symmetries(pair: Sequence[int]) -> dict[str, str]:
    """Propose inputs of a process for a pair of neutralinos or charginos.

    Args:
        pair: PDG codes of the two particles; two charginos have opposite signs.

    Returns:
        Dict name -> SLHA place or expression, as `tfbnn.hep.Process` takes it. The network gets the
        entries that no other entry uses.

    Raises:
        ValueError: For other particles.
    """
    codes = sorted(map(abs, pair), key=lambda code: (code in _CHARGINOS, code))
    charges = [code > 0 for code in pair if abs(code) in _CHARGINOS]
    if (
        len(codes) != 2
        or not {*codes} <= {*_NEUTRALINOS, *_CHARGINOS}
        or charges in ([True, True], [False, False])
    ):
        raise ValueError(
            "pair must be two of 1000022, 1000023, 1000025, 1000035, +-1000024 and +-1000037, two "
            f"charginos with opposite signs, received {pair!r}."
        )
    first, second = codes
    if second in _NEUTRALINOS:
        found = _neutralinos(_NEUTRALINOS[first], _NEUTRALINOS[second])
    elif first in _NEUTRALINOS:
        found = _mixed(_NEUTRALINOS[first], _CHARGINOS[second])
    else:
        found = _charginos(_CHARGINOS[first], _CHARGINOS[second])
    places = {name: place for code in codes for name, place in _places(code).items()}
    used = set(re.findall(r"\w+", " ".join(found.values())))
    return {name: place for name, place in places.items() if name in used} | found


def _places(code: int) -> dict[str, str]:
    """Return the SLHA places of the mass (GeV) and the mixings (no unit) of a particle."""
    if code in _NEUTRALINOS:
        i = _NEUTRALINOS[code]
        mixings = {f"N{i}{j}": f"NMIX {i} {j}" for j in (1, 2, 3, 4)}
        return {f"m_chi{i}0_GeV": f"MASS {code}"} | mixings
    i = _CHARGINOS[code]
    mixings = {f"{name}{i}{j}": f"{name}MIX {i} {j}" for name in "UV" for j in (1, 2)}
    return {f"m_chi{i}c_GeV": f"MASS {code}"} | mixings


def _neutralinos(i: int, k: int) -> dict[str, str]:
    if i == k:
        return {
            "log_m": f"log(abs(m_chi{i}0_GeV))",
            "bino": f"N{i}1**2",
            "bino_wino": f"N{i}1*N{i}2",
            "wino": f"N{i}2**2",
            "higgsino": f"N{i}3**2 - N{i}4**2",
            "log_gaugino": f"log10(1e-3 + N{i}1**2 + N{i}2**2)",
        }
    return {
        "z": f"N{i}3*N{k}3 - N{i}4*N{k}4",
        "turn": _sign("z"),
        "log_m_first": f"log(abs(m_chi{i}0_GeV))",
        "log_m_second": f"log(abs(m_chi{k}0_GeV))",
        "same_sign": f"sign(m_chi{i}0_GeV*m_chi{k}0_GeV)",
        "bino": f"turn*N{i}1*N{k}1",
        "bino_wino": f"turn*(N{i}1*N{k}2 + N{i}2*N{k}1)",
        "wino": f"turn*N{i}2*N{k}2",
        "higgsino": "turn*z",
        "log_higgsino": "log10(1e-4 + z**2)",
    }


def _mixed(i: int, j: int) -> dict[str, str]:
    sign = f"sign(m_chi{i}0_GeV*m_chi{j}c_GeV)"
    return {
        "left": f"N{i}2*V{j}1 - N{i}4*V{j}2/sqrt(2)",
        "right": f"{sign}*(N{i}2*U{j}1 + N{i}3*U{j}2/sqrt(2))",
        "turn": _sign("left + right"),
        "log_m_first": f"log(abs(m_chi{i}0_GeV))",
        "log_m_second": f"log(abs(m_chi{j}c_GeV))",
        "w_left": "turn*left",
        "w_right": "turn*right",
        "bino_left": f"turn*N{i}1*V{j}1",
        "wino_left": f"turn*N{i}2*V{j}1",
        "bino_right": f"turn*{sign}*N{i}1*U{j}1",
        "wino_right": f"turn*{sign}*N{i}2*U{j}1",
        "log_w": "log10(1e-4 + left**2 + right**2)",
    }


def _charginos(i: int, j: int) -> dict[str, str]:
    if i == j:
        return {"log_m": f"log(abs(m_chi{i}c_GeV))", "left": f"V{i}1**2", "right": f"U{i}1**2"}
    return {
        "product": f"sign(m_chi{i}c_GeV*m_chi{j}c_GeV)*U{i}1*U{j}1",
        "turn": _sign(f"V{i}1*V{j}1 + product"),
        "log_m_first": f"log(abs(m_chi{i}c_GeV))",
        "log_m_second": f"log(abs(m_chi{j}c_GeV))",
        "left": f"turn*V{i}1*V{j}1",
        "right": "turn*product",
        "log_couplings": f"log10(1e-4 + (V{i}1*V{j}1)**2 + (U{i}1*U{j}1)**2)",
    }


def _sign(text: str) -> str:
    """Return an expression for the sign of another one, 1 where that is zero."""
    return f"sign(sign({text}) + 0.5)"
