"""Writing of reports of models: the page, its HTML, and the file."""

from __future__ import annotations

import base64
import hashlib
import warnings
from importlib import resources

from tfbnn.plots.page import sections
from tfbnn.plots.page.content import SECTIONS, Page
from tfbnn.plots.page.subject import Subject
from tfbnn.system.atomic import MARK, StrPath, write_file
from tfbnn.system.version import __version__
from tfbnn.system.words import required, without_controls


def write_report(subject: Subject, path: StrPath, title: str) -> None:
    """Write the page of a model; an older page is replaced once the new one is complete."""
    # Surrogates, which have no UTF-8, were replaced together with the control characters.
    text = page_text(page_of_model(subject, title))
    write_file(path, text.encode("utf-8", errors="backslashreplace"))


def page_of_model(subject: Subject, title: str) -> Page:
    """Make the page of a fitted model.

    Raises:
        ImportError: Where Matplotlib is not installed.
        ValueError: For unusable rows.
    """
    required("matplotlib", "Plots need Matplotlib", "plots")
    from matplotlib import style

    # A matplotlibrc of the user, or in the current folder, is meant for other figures.
    with style.context("default"), warnings.catch_warnings():
        # The page states once what a model warns about at each use, such as draws of an unfinished
        # run.
        warnings.simplefilter("ignore", UserWarning)
        is_unfinished = subject.ensemble.provenance.is_unfinished
        makers = (sections.fitted, sections.settings) if is_unfinished else SECTIONS
        return Page(
            title,
            f"Bayesian neural network {subject.ensemble.spec.architecture_text}",
            sections.verdict(subject),
            [make(subject) for make in makers],
        )


def page_text(page: Page) -> str:
    """Render a page as HTML.

    The page refers to nothing outside itself and runs no script. Its Content-Security-Policy
    enforces this, and allows only the page's own style sheet, by its SHA-256.

    Raises:
        ImportError: Where Jinja2 is not installed.
    """
    jinja2 = required("jinja2", "Reports need Jinja2", "plots")
    environment = jinja2.Environment(
        autoescape=True,
        # Names in files may hold characters that reverse or hide the text around them.
        finalize=lambda value: without_controls(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    style = _resource("page.css")
    return environment.from_string(_resource("page.html")).render(
        mark=MARK,
        page=page,
        style=style,
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        version=__version__,
    )


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
