"""Rows of a long benchmark, kept as they finish, so that a killed script goes on where it was."""

import json

from benchmarks.lib.common import RESULTS

__all__ = ["Store"]


class Store:
    """Finished rows of one benchmark in FOLDER/NAME.jsonl, by key.

    Args:
        name: Name of the benchmark.
        fresh: Whether to forget the rows of an earlier run.
        folder: Where the file is, by default benchmarks/results.
    """

    def __init__(self, name, fresh=False, folder=RESULTS):
        folder.mkdir(exist_ok=True)
        self._path = folder / f"{name}.jsonl"
        if fresh:
            self._path.unlink(missing_ok=True)
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        self.rows = {row["key"]: row for row in map(json.loads, lines)}

    def __contains__(self, key):
        return key in self.rows

    def rewrite(self):
        """Keeps the rows as they are now, in place of the file's."""
        self._path.write_text("".join(json.dumps(row) + "\n" for row in self.rows.values()))

    def add(self, key, row):
        """Keeps a finished row, a dict of JSON values."""
        self.rows[key] = {"key": key, **row}
        with self._path.open("a") as file:
            file.write(json.dumps(self.rows[key]) + "\n")
