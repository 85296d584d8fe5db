"""Check the built site: sizes of pages, requests to elsewhere, links within it, contrast of texts.

python docs/check_site.py [site]

Prints a line for each of these, and ends with 1 if a page and its pictures are above 1 MB, if a page loads something from
elsewhere, if a link within the site leads nowhere, or if a text has less contrast than AA of WCAG 2.2 asks for (4.5).
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGEST_BYTES = 1_000_000
SMALLEST_CONTRAST = 4.5
LOADING = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
# Names of the theme's colours: of texts, and of what is behind them.
TEXTS = ("foreground-primary", "foreground-secondary", "foreground-muted", "brand-primary",
         "brand-content", "brand-visited", "problematic")  # fmt: skip
BACKGROUNDS = ("background-primary", "background-secondary")


class Page(HTMLParser):
    """A page: the files it loads, its links, its anchors and its classes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded, self.links, self.anchors, self.classes = [], [], set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.classes.update((values.get("class") or "").split())
        self.anchors.update(value for key in ("id", "name") if (value := values.get(key)))
        if (value := values.get(LOADING.get(tag, ""))) and values.get("rel") not in ("canonical",):
            self.loaded.append(value)
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])


def size(path: Path, page: Page) -> int:
    """The bytes of a page and the pictures it shows."""
    pictures = {
        path.parent / unquote(urlsplit(one).path) for one in page.loaded if "_images" in one
    }
    return path.stat().st_size + sum(picture.stat().st_size for picture in pictures)


def dead_links(path: Path, page: Page, pages: dict[Path, Page]) -> list[str]:
    """The links within the site that lead to no file, or to no place in it."""
    dead = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        fragment = unquote(parts.fragment)
        missing = target in pages and fragment and fragment not in pages[target].anchors
        if not target.exists() or missing:
            dead.append(link)
    return dead


def luminance(colour: str) -> float:
    """The relative luminance of #rgb or #rrggbb (WCAG 2.2)."""
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    shares = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours (WCAG 2.2)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def contrasts(site: Path, classes: set[str]) -> dict[str, float]:
    """The contrast of texts of the theme and of highlighted code of these classes, in light and dark."""
    found = {}
    theme = (site / "_static/styles/furo.css").read_text()
    named = {"black": "#000000", "white": "#ffffff"}
    for mode, place in (("light", 0), ("dark", 1)):
        colours = {}
        for name in TEXTS + BACKGROUNDS:
            values = re.findall(rf"--color-{name}:\s*(#[0-9a-f]+|black|white)", theme)
            colours[name] = named.get(values[place], values[place])
        for text in TEXTS:
            for behind in BACKGROUNDS:
                found[f"{mode} {text} on {behind}"] = contrast(colours[text], colours[behind])
    code = (site / "_static/pygments.css").read_text()
    for mode, start in (("light", ".highlight"), ("dark", 'body[data-theme="dark"] .highlight')):
        start = re.escape(start)
        behind = re.search(rf"^{start} {{ background: (#\w+)", code, re.MULTILINE)[1]
        tokens = re.findall(rf"^{start} \.(\w+) {{ color: (#\w+)", code, re.MULTILINE)
        shown = {
            f"{mode} code {name}": colour for name, colour in tokens if name in classes - {"w"}
        }
        if not shown:
            sys.exit(
                f"_static/pygments.css has no colours of {mode} code as this script reads them."
            )
        found |= {name: contrast(colour, behind) for name, colour in shown.items()}
    return found


def main(site: Path) -> bool:
    """Print what is found; return whether all is well."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    sizes = {path: size(path, page) for path, page in pages.items()}
    largest = max(sizes, key=sizes.get)
    print(f"{len(pages)} pages; the largest, with pictures, {largest.name}: {sizes[largest]} bytes")
    far = [(path.name, one) for path, page in pages.items() for one in page.loaded
           if urlsplit(one).scheme in ("http", "https") or one.startswith("//")]  # fmt: skip
    print("requests to elsewhere:", far or "none")
    # Pages of source code link to one of the names that a function has, perhaps not the documented one.
    own = [path for path in pages if "_modules" not in path.parts]
    dead = [(path.name, link) for path in own for link in dead_links(path, pages[path], pages)]
    print("dead links:", dead or "none")
    found = contrasts(site, set().union(*(page.classes for page in pages.values())))
    weak = {name: round(value, 2) for name, value in found.items() if value < SMALLEST_CONTRAST}
    print(f"contrasts: {len(found)} pairs, smallest {min(found.values()):.2f};", weak or "all AA")
    return sizes[largest] <= LARGEST_BYTES and not (far or dead or weak)


if __name__ == "__main__":
    sys.exit(not main(Path(*sys.argv[1:] or ["site"])))
