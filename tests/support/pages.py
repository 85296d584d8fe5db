"""What tests look for in a page of ours."""

import re
from html.parser import HTMLParser

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
    assert not tags & {"script", "iframe", "object", "embed", "link", "img", "form", "base"}
    keys = {key for _, attributes in found.elements for key in attributes}
    assert not [key for key in keys if key.startswith("on") or key in ("style", "src", "action")]
    for _, attributes in found.elements:
        target = attributes.get("href", "#")
        assert target.startswith(("#", "data:image/png;base64,")), target
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    wanted = {
        attributes["href"][1:]
        for tag, attributes in found.elements
        if "href" in attributes and attributes["href"].startswith("#")
    }
    wanted |= set(re.findall(r"url\(#([^)]+)\)", text))
    assert wanted <= set(ids)
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", text) and "@import" not in text
    return found
