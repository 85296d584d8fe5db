"""Names and units of columns, in labels."""

import pytest

from tfbnn.plots.canvas import Quantity, plain


@pytest.mark.parametrize(
    "column, name, unit",
    [
        ("lo_xsec_fb", "lo_xsec", "fb"),
        ("sigma_pb", "sigma", "pb"),
        ("m_chi10_GeV", "m_chi10", "GeV"),
        ("E_eV", "E", "eV"),
        ("m [GeV]", "m", "GeV"),
        ("length[cm]", "length", "cm"),
        ("width_fb [pb]", "width_fb", "pb"),
        ("fb", "fb", ""),
        ("_fb", "_fb", ""),
        ("a_b", "a_b", ""),
        ("x_gev", "x_gev", ""),
        ("n_s", "n_s", ""),
        ("[GeV]", "[GeV]", ""),
        ("y", "y", ""),
    ],
)
def test_units_in_names(column, name, unit):
    found = Quantity.of_column(column)
    assert (found.name, found.unit) == (name, unit)
    assert found.text == (f"{name} [{unit}]" if unit else name)


def test_labels_are_drawn_letter_by_letter():
    assert plain("a$b$") == r"a\$b\$"
    assert plain("_y") == " _y"
    assert plain("x" * 60) == "x" * 39 + "…"
    assert plain("a\x1b[2J\u202e") == r"'a\x1b[2J\u202e'"
