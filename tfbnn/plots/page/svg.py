"""Figures as SVG that stands in a page: text as text, colours that the page's themes choose.

Matplotlib writes colours and fonts as inline styles, which a page that trusts no style but its own
does not apply. Here they become attributes, the colours by the page's names for them.
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from tfbnn.plots import canvas
from tfbnn.system.extras import required
from tfbnn.system.words import without_controls

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What the style sheet calls the colours of figures.
_NAMES = {
    canvas.BLUE: "blue",
    canvas.ORANGE: "orange",
    canvas.GREEN: "green",
    canvas.PINK: "pink",
    canvas.AMBER: "amber",
    canvas.SKY: "sky",
    canvas.GREY: "grey",
    canvas.LIGHT: "light",
    "#000000": "ink",
    "#b0b0b0": "light",  # of grids
}
_VARIABLES = {color.lower(): f"var(--{name})" for color, name in _NAMES.items()}
# Of what is an image inside, in dots per inch of the figure's size.
_DOTS = 200
# The page has fonts of its own; the rest of what a style may say is a presentation attribute.
_DROPPED = {"font-family", "font-stretch", "font-variant"}


def to_svg(figure: Figure, name: str, label: str) -> str:
    """The `<svg>` element of a figure.

    Args:
        figure: Figure.
        name: Of the figure in its page: what it refers to by id begins with it, in a way.
        label: What those hear who do not see it.
    """
    matplotlib = required("matplotlib", "Plots need Matplotlib", "plots")
    stream = io.StringIO()
    # Equal figures are equal texts: no date, no random names.
    settings = {"svg.fonttype": "none", "svg.hashsalt": name}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # The fonts of the reader's browser are others than those that measure the text here.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(stream, format="svg", transparent=True, dpi=_DOTS, metadata={"Date": None})
    root = ElementTree.fromstring(stream.getvalue())
    for element in list(root.iter()):
        _remove(element, "metadata")
        _remove(element, "style")
        _plain(element)
    view = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": view, "role": "img", "aria-label": without_controls(label)})
    return ElementTree.tostring(root, encoding="unicode")


def _remove(parent: ElementTree.Element, name: str) -> None:
    for child in list(parent):
        if _local(child.tag) == name:
            parent.remove(child)


def _plain(element: ElementTree.Element) -> None:
    """Without namespaces and styles."""
    element.tag = _local(element.tag)
    attributes = {_local(key): value for key, value in element.attrib.items()}
    style = attributes.pop("style", "")
    if element.tag == "g":
        attributes.pop("id", None)  # such as "axes_1", which all figures of a page would have
    element.attrib.clear()
    element.attrib.update(attributes)
    for entry in filter(None, map(str.strip, style.split(";"))):
        key, _, value = (part.strip() for part in entry.partition(":"))
        if key == "font":
            element.attrib.update(_font(value))
        elif key not in _DROPPED:
            element.set(key, _VARIABLES.get(value.lower(), value))


def _font(value: str) -> dict[str, str]:
    """Size and weight of "bold 12px 'DejaVu Sans', ..."."""
    words = value.partition(",")[0].split()
    size = next((word for word in words if word.endswith("px")), "10px")
    found = {"font-size": size}
    return found | {"font-weight": "bold"} if "bold" in words or "700" in words else found


def _local(name: str) -> str:
    return name.rpartition("}")[2]
