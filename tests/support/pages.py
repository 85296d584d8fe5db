"""Checks of our pages that tests share."""

import base64
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

# Elements without an end tag.
_VOID = {"meta", "br", "hr", "img", "input", "link"}


class Found(HTMLParser):
    """The elements of a page, in order, and what is wrong with how they nest."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.text, self.faults, self._open = [], [], [], []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is left open" for tag in self._open]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")

    def handle_data(self, data):
        self.text.append(data)

    def named(self, tag):
        """Attributes of all elements of a name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def words(self):
        """All text, in single spaces."""
        return " ".join(" ".join(self.text).split())


def check_page(text):
    """A page that is whole, asks for nothing and runs nothing; returns what was Found in it."""
    found = Found(text)
    assert not found.faults, found.faults[:5]
    tags = {tag for tag, _ in found.elements}
    assert not tags & {"script", "iframe", "object", "embed", "link", "form", "base", "svg"}
    keys = {key for _, attributes in found.elements for key in attributes}
    assert not [key for key in keys if key.startswith("on") or key in ("style", "action")]
    for tag, attributes in found.elements:
        assert attributes.get("href", "#").startswith("#")
        if "src" in attributes:
            kind, _, figure = attributes["src"].partition(",")
            assert (tag, kind) == ("img", "data:image/svg+xml;base64")
            _check_figure(base64.b64decode(figure, validate=True))
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    wanted = {
        attributes["href"][1:]
        for tag, attributes in found.elements
        if "href" in attributes and attributes["href"].startswith("#")
    }
    assert wanted <= set(ids)
    assert "url(" not in text and "@import" not in text
    return found


def _check_figure(svg):
    """A figure that is well-formed, runs nothing, and refers to itself alone."""
    for element in ElementTree.fromstring(svg).iter():
        assert not element.tag.endswith("script")
        for key, value in element.attrib.items():
            assert not key.startswith("on")
            if key.endswith("href"):
                assert value.startswith(("#", "data:image/png;base64,")), value
    assert b"url(" not in re.sub(rb"url\(#[\w-]+\)", b"", svg)
