"""What `tfbnn report` does: pages of a model, and of a run while it goes on."""

import argparse
import os
import shlex

from tfbnn.cli.columns import Roles, read_rows
from tfbnn.cli.console import say
from tfbnn.cli.following import check_followed, follow, progress_text
from tfbnn.cli.options import load_model
from tfbnn.cli.outputs import STREAM
from tfbnn.diagnostics.problem import Interface
from tfbnn.exceptions import NotFittedError
from tfbnn.fit.model import SampledNetwork
from tfbnn.plots.page.content import Page
from tfbnn.plots.page.making import page_of_model, page_of_waiting, page_text
from tfbnn.plots.page.subject import KnownRows, Subject
from tfbnn.run.events import SamplingEvent
from tfbnn.storage import RunFolder
from tfbnn.system.pages import write_page

# After how long a browser reads the page of a run that goes on again.
_REFRESH_SECONDS = 5


class Reporter:
    """Makes pages of what the arguments of the command name."""

    def __init__(self, args: argparse.Namespace) -> None:
        """
        Args:
            args: Arguments with model, trusted, data, output, target, noise_column and unit.
        """
        self._args = args
        self._rows: KnownRows | None = None

    def page(self, status: str = "") -> Page:
        """The page of the model, or of the draws that a run has committed.

        Args:
            status: How far the run is, where it goes on.

        Raises:
            NotFittedError: Where a run has no draws yet.
        """
        model = load_model(self._args)
        path, data = self._args.model, self._args.data
        folder = path if os.path.isdir(path) else None
        interface = Interface(is_command_line=True, folder=folder)
        without = f"tfbnn report {shlex.quote(path)} DATA"
        rows = None if data is None else self._read(model, data)
        subject = Subject(model, rows, self._args.unit, interface, without)
        return page_of_model(subject, self._name, status)

    def write(self, page: Page, refresh_seconds: int | None = None) -> None:
        """Writes a page, which reads itself again after so many seconds, or never."""
        write_page(self._args.output, page_text(page, refresh_seconds))

    def follow(self) -> None:
        """Keeps the page up to date until the run has ended; the last one is not read again.

        Raises:
            ValueError: As `tfbnn.cli.following.follow` does.
        """
        args = self._args
        check_followed(args.model)
        page = page_of_waiting(self._name, "It has not begun to sample.")

        def look(folder: RunFolder, event: SamplingEvent) -> None:
            nonlocal page
            page = self._page_of_run(progress_text(folder, event))
            self.write(page, _REFRESH_SECONDS)

        self.write(page, _REFRESH_SECONDS)
        say(f"Open {args.output} in a browser: it is kept up to date until the run ends.")
        try:
            args.model = follow(args.model, look)
            page = self.page()
        finally:
            self.write(page)

    @property
    def _name(self) -> str:
        path: str = self._args.model
        return os.path.basename(os.path.abspath(path))

    def _page_of_run(self, progress: str) -> Page:
        """The page of a run that goes on, which may have no draws yet."""
        try:
            return self.page(progress)
        except NotFittedError:
            return page_of_waiting(self._name, progress)

    def _read(self, model: SampledNetwork, path: str) -> KnownRows:
        """The rows, which are read once: standard input can be no second time."""
        if self._rows is None:
            roles = Roles(model.posterior, self._args.target, self._args.noise_column)
            source = "standard input" if path == STREAM else path
            self._rows = KnownRows(*read_rows(model, path, roles), source)
        return self._rows
