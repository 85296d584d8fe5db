"""Find the columns of a table that are features, targets and noise of a saved model."""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfbnn.data.bad_rows import positions_named
from tfbnn.data.coding import NUMBERS, Coding
from tfbnn.data.frames import listed
from tfbnn.data.learn_coding import learn_coding
from tfbnn.data.numbers import label_numbers
from tfbnn.data.table import Table, column_indices
from tfbnn.data.tables import read_table
from tfbnn.data.validation import as_matrix
from tfbnn.exceptions import DataWarning
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.sampled_model import SampledModel
from tfbnn.run.options import FitOptions
from tfbnn.system.arrays import Array
from tfbnn.system.words import warn


def read_labels(table: Table, names: Sequence[str], known: Sequence[Any] = ()) -> Array:
    """Read the target columns of a classifier.

    Args:
        table: The table.
        names: The columns.
        known: Labels of the fit, whose type the result gets. None: integers if all labels are integers,
            see `label_numbers`; booleans if several columns hold nothing but true and false.

    Returns:
        Array [N, K] of text or numbers.
    """
    labels, kind = table.labels(names), np.array(known or [0]).dtype.kind
    if labels.dtype.kind != "U":
        return _spelled(labels, known) if kind == "U" else labels
    # Formats without a boolean type have these as text.
    if kind == "b" or (not known and len(names) > 1):
        words = np.char.lower(labels)
        if np.isin(words, ["false", "true"]).all():
            return words == "true"
    texts = labels.ravel().tolist()
    numbers = None if kind == "U" else label_numbers(texts)
    if known and kind in "iu" and numbers is None:
        for place, text in enumerate(texts):
            if label_numbers([text]) is None:
                row = place // len(names)
                raise ValueError(
                    f"{table.line_of(row) or f'row {row}'}: expected one of the labels {listed(known)}, got "
                    f"{text!r}. Correct or drop this row."
                )
    return labels if numbers is None else numbers.reshape(labels.shape)


def _spelled(labels: Array, known: Sequence[str]) -> Array:
    """Return labels that are not text as the model spells them, such as true and false."""
    spelled = {text.casefold(): text for text in known}
    words = [spelled.get(word.casefold(), word) for word in labels.astype(str).ravel().tolist()]
    return np.array(words).reshape(labels.shape)


def coding_of(x: Table, options: FitOptions) -> Coding | None:
    """Return the Coding that a fit to these inputs will have, or None if all are numbers.

    Args:
        x: The inputs.
        options: FitOptions. If the chains start from a model, its coding is used.
    """
    if isinstance(options.initial_state, Ensemble):
        return options.initial_state.coding
    with positions_named(x):
        coding = learn_coding(x, "x", options.missing)
        if coding is None:
            as_matrix(x, "x")  # missing values are refused before TensorFlow starts
        return coding


class ModelInputs:
    """Columns of a table that are the inputs of a saved model, known once `pick` was called.

    Attributes:
        features: Their names in the table, in the order of the model.
        categories: Names of columns that the model treats as text or flags; None if all are numbers.
        gaps: Whether values may be missing; the model determines in which columns.
    """

    def __init__(self, ensemble: Ensemble, source: str, apart: Sequence[str] = ()) -> None:
        """Make a ModelInputs.

        Args:
            ensemble: Ensemble.
            source: Name of the table, for messages.
            apart: Names of columns with another role, which are read, too.
        """
        self._ensemble, self._source, self._apart = ensemble, source, apart
        self.features: list[str] = []
        self._columns = () if ensemble.coding is None else ensemble.coding.columns
        self.gaps = any(column.fill is not None for column in self._columns)
        self.categories: set[str] | None = None if ensemble.coding is None else set()

    def pick(self, available: Sequence[str]) -> list[str]:
        """Return the names of the columns to read out of those available.

        Features have the names saved with the model if the table has them. If it has none of them, or the
        model has no names, all columns are used in order, and their number must be that of the inputs.
        """
        names, source = self._ensemble.known.column_names, self._source
        if both := {*self._apart}.intersection(names or ()):
            raise ValueError(
                f"{min(both)} is an input of the model, so it cannot be a target or noise. Name another column."
            )
        count = len(self._ensemble.columns)
        self.features = [name for name in available if name not in self._apart]
        shown = ", ".join(self.features)
        if names is not None and not {*names}.isdisjoint(self.features):
            column_indices(names, self.features, source)
            self.features = list(names)
        elif len(self.features) != count:
            wanted = f" ({', '.join(names)})" if names is not None else ""
            raise ValueError(
                f"{source} must have {count} feature columns{wanted}, received {len(self.features)}: "
                f"{shown}. Keep only the columns the model was fitted with."
            )
        elif names is not None:
            warn(
                f"{source} has none of the model's columns {', '.join(names)}; its columns {shown} are "
                "taken in this order.",
                DataWarning,
            )
        if self.categories is not None:
            columns = zip(self.features, self._columns)
            self.categories.update(name for name, column in columns if column.kind != NUMBERS)
        return [*self.features, *self._apart]

    def read(self, labels: Sequence[str] = (), as_written: bool = False) -> Table:
        """Read these columns of the table, some of them as labels, which `as_written` may be blank."""
        settings: dict[str, Any] = {"categories": self.categories, "gaps": self.gaps}
        return read_table(self._source, self.pick, labels, as_written=as_written, **settings)

    def of(self, table: Table) -> Table:
        """Return the features under their names in the model.

        They are a Table, so that messages can name the lines of the file.
        """
        x, names = table.select(self.features), self._ensemble.known.column_names
        return x if names is None else x.renamed(names)


def read_inputs(ensemble: Ensemble, path: str) -> Table:
    """Read the features of a table for a saved model; other columns are ignored."""
    inputs = ModelInputs(ensemble, path)
    return inputs.of(inputs.read())


def read_rows(model: SampledModel, args: argparse.Namespace) -> tuple[Table, Array, Array | None]:
    """Read the features, targets and noise of a table for a saved model.

    Args:
        model: The model.
        args: Arguments with data and `RoleOptions`. Columns that are not given are those of the fit.

    Returns:
        (x [N, D], y [N, K], noise [N] or [N, K] or None) in original units; y of a classifier holds
        labels.
    """
    origin = model.posterior.provenance
    targets = list(args.target or origin.target_names or ())
    noise = known_columns(args, model.spec.has_counts) or list(origin.noise_columns or ())
    if not targets:
        raise ValueError(
            "The model does not know the name of its target column. Add --target COLUMN."
        )
    if len(targets) != model.spec.num_targets:
        raise ValueError(
            f"The model has {model.spec.num_targets} targets, received {len(targets)}: "
            f"{', '.join(targets)}. Give --target once per target, in order."
        )
    names = targets if model.spec.has_classes else ()
    inputs = ModelInputs(model.posterior, args.data, [*targets, *noise])
    table = inputs.read(names)
    y = read_labels(table, names, model.classes or ()) if names else table.numbers(targets)
    return inputs.of(table), y, as_noise(table, noise)


def known_columns(args: argparse.Namespace, has_counts: bool) -> list[str]:
    """Return the requested names of columns with known noise, or with offsets for counts.

    Raises:
        ValueError: For the option that does not go with the likelihood.
    """
    options = {"--noise-column": args.noise_column, "--offset-column": args.offset_column}
    right, wrong = "--noise-column", "--offset-column"
    if has_counts:
        right, wrong = wrong, right
    if options[wrong]:
        kind = "counts" if has_counts else "numbers and classes"
        raise ValueError(f"{wrong} does not go with targets that are {kind}. Use {right}.")
    return list(options[right] or ())


def as_noise(table: Table, names: Sequence[str]) -> Array | None:
    """Return the known standard deviations of the rows: [N] for one column, [N, K] for several, or None."""
    return one_as_vector(table.numbers(names)) if names else None


def one_as_vector(values: Array) -> Array:
    """Return the columns [N, K] of a table unchanged, or a single one as [N]."""
    return values[:, 0] if values.shape[1] == 1 else values
