"""`run.history`: what the events of a run have told, in columns."""

from __future__ import annotations

from typing import Any

from tfbnn.run.events import Event, SamplingEvent

# What is kept of events, where they have it.
_COLUMNS = (
    "transition",
    "seconds",
    "epoch",
    "validation_log_likelihood",
    "log_prob",
    "num_kept",
    "acceptance_rate",
    "step_size",
    "num_divergent",
    "num_gradients",
)
_LOOKS = "looks"
# Of a run of days every second row goes when there are more, as often as need be.
_MOST_ROWS = 2000

Columns = dict[str, list[Any]]


class History:
    """Takes down the events of one process of a run, phase by phase, and the looks at its draws."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}

    def __call__(self, event: Event) -> None:
        """Takes down an event."""
        row = {name: getattr(event, name) for name in _COLUMNS if hasattr(event, name)}
        self._table(event.phase).add(row)
        if isinstance(event, SamplingEvent) and event.num_judged:
            look = {"num_results": event.num_judged, "rhat": event.rhat, "ess": event.ess}
            self._table(_LOOKS).add(look)

    def to_dict(self) -> dict[str, Columns]:
        """Dict phase -> dict name -> list, the phases in their order; see `Run.history`."""
        return {name: table.columns() for name, table in self._tables.items()}

    def _table(self, name: str) -> _Table:
        return self._tables.setdefault(name, _Table())


class _Table:
    """Rows of which the first entry says how far the run is; of equal ones the last is kept."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._stride, self._count, self._kept = 1, 0, 0

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row; where not all are kept it takes the place of the last one."""
        if self._rows and _first(self._rows[-1]) == _first(row):
            self._rows[-1] = row
            return
        del self._rows[self._kept :]
        self._rows.append(row)
        if self._count % self._stride == 0:
            self._kept = len(self._rows)
        self._count += 1
        if self._kept > _MOST_ROWS:
            self._rows, self._stride = self._rows[::2], 2 * self._stride
            self._kept = len(self._rows)

    def columns(self) -> Columns:
        """Dict name -> list."""
        return {name: [row[name] for row in self._rows] for name in self._rows[0]}


def _first(row: dict[str, Any]) -> Any:
    return next(iter(row.values()))
