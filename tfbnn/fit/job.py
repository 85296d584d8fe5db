"""What a fit comes to, once all that was left open is settled."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from tfbnn.fit.ending import seconds_to_end
from tfbnn.run.course import Goal
from tfbnn.run.deadline import Deadline
from tfbnn.run.definition import FitDefinition
from tfbnn.run.listeners.history import History
from tfbnn.run.options import FitOptions
from tfbnn.run.progress import Notifier
from tfbnn.spec.rows import TransformedRows


class Job(NamedTuple):
    """What a fit comes to, once all that was left open is settled.

    Attributes:
        definition: FitDefinition.
        transformed: Its rows on the scale the network sees.
        settings: Its kernel, with a definite preconditioner.
        geometry: A line on the preconditioner and why that one.
        options: FitOptions.
        goal: When the run is over, or None where it just has a number of draws.
        history: What takes down the events of the run.
    """

    definition: FitDefinition
    transformed: TransformedRows
    settings: Any
    geometry: str
    options: FitOptions
    goal: Goal | None
    history: History

    def notifier(self) -> Notifier:
        """Who is told of the run."""
        options, definition = self.options, self.definition
        ending = partial(seconds_to_end, definition)
        deadline = Deadline(options.limit, options.began, ending)
        return Notifier(options.verbose, options.callbacks, deadline, self.history)
