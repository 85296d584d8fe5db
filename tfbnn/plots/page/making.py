"""Makes the pages of models and of runs that go on, as text."""

from __future__ import annotations

import base64
import hashlib
import warnings
from functools import cache
from importlib import resources
from typing import Any

from tfbnn.plots.page import chain_sections, model_sections, row_sections
from tfbnn.plots.page.content import Page, Verdict
from tfbnn.plots.page.subject import Subject
from tfbnn.system.extras import required
from tfbnn.system.pages import MARK
from tfbnn.system.version import __version__
from tfbnn.system.words import without_controls

_SECTIONS = (
    model_sections.fitted,
    chain_sections.convergence,
    chain_sections.traces,
    row_sections.predictions,
    row_sections.pulls,
    model_sections.calibration,
    row_sections.slices,
    model_sections.relevance,
    model_sections.basins,
    model_sections.settings,
)


def page_of_model(subject: Subject, title: str, status: str = "") -> Page:
    """The page of a fitted model.

    Args:
        subject: Subject.
        title: What the model is called.
        status: How far its run is, where it goes on.

    Raises:
        ImportError: Where Matplotlib is not installed.
        ValueError: For unusable rows.
    """
    required("matplotlib", "Plots need Matplotlib", "plots")
    from matplotlib import style

    # A matplotlibrc of the reader's, or in the folder where the command runs, is about other figures.
    with style.context("default"), warnings.catch_warnings():
        # What a model warns of at each use, such as draws of a run that goes on, the page says once.
        warnings.simplefilter("ignore", UserWarning)
        return Page(
            title,
            f"Bayesian neural network {subject.ensemble.spec.architecture_text}",
            status,
            model_sections.verdict(subject),
            [make(subject) for make in _SECTIONS],
            f"Made by tfbnn {__version__}.",
        )


def page_of_waiting(title: str, status: str) -> Page:
    """The page of a run that has no draws yet: how far it is."""
    verdict = Verdict("nothing is sampled yet", "Wait for the first draws of all chains.")
    return Page(title, "A run", status, verdict, [], f"Made by tfbnn {__version__}.")


def page_text(page: Page, refresh_seconds: int | None = None) -> str:
    """The page as HTML.

    It refers to nothing outside itself, runs no script, and says so in a Content-Security-Policy,
    whose only style is that of the page, by its SHA-256.

    Args:
        page: Page.
        refresh_seconds: After how long a browser is to read the file again; None: never.

    Raises:
        ImportError: Where Jinja2 is not installed.
    """
    style = _resource("page.css")
    text: str = _template().render(
        mark=MARK,
        page=page,
        style=style,
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        refresh_seconds=refresh_seconds,
    )
    return text


@cache
def _template() -> Any:
    jinja2 = required("jinja2", "Reports need Jinja2", "plots")
    environment = jinja2.Environment(
        autoescape=True,
        # Names in files may hold characters that turn or hide what stands around them.
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.from_string(_resource("page.html"))


def _harmless(value: Any) -> Any:
    return without_controls(value) if type(value) is str else value


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
