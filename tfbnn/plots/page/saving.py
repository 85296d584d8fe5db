"""A report of a fitted model as a file."""

from __future__ import annotations

import os
from collections.abc import Sequence

from numpy.typing import ArrayLike

from tfbnn.plots.page.making import page_of_model, page_text
from tfbnn.plots.page.subject import KnownRows, Subject
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.system.pages import check_place, write_page
from tfbnn.system.paths import StrPath


def save_report(
    model: SampledModel,
    path: StrPath,
    x: ArrayLike | None,
    y: ArrayLike | None,
    noise_scale: ArrayLike | None,
    unit: str | Sequence[str] | None,
) -> None:
    """See `BayesianMLP.save_report`."""
    if (x is None) != (y is None):
        missing = "x" if x is None else "y"
        raise ValueError(
            f"save_report needs x and y together, received {missing}=None. Pass both, or neither."
        )
    check_place(path)
    rows = None if x is None else KnownRows(x, y, noise_scale)
    title = os.path.splitext(os.path.basename(os.fspath(path)))[0]
    write_page(path, page_text(page_of_model(Subject(model, rows, unit), title)))
