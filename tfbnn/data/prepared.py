"""Rows on the scale the network sees."""

from typing import NamedTuple

from tfbnn.data.rows import NetworkRows, Rows, RowSpec, transform_rows
from tfbnn.data.training_inputs import TrainingInputs, summarise_inputs
from tfbnn.data.transforms import Pipeline, fit_pipeline


class TransformedRows(NamedTuple):
    """Rows on the scale the network sees, and what they teach.

    Attributes:
        x_pipeline, y_pipeline: Transforms fitted to the training rows.
        train, held_out: Training and validation rows; the latter may be None.
        inputs: TrainingInputs.
    """

    x_pipeline: Pipeline
    y_pipeline: Pipeline
    train: NetworkRows
    held_out: NetworkRows | None
    inputs: TrainingInputs

    @classmethod
    def learn(cls, spec: RowSpec, rows: Rows, validation: Rows | None) -> "TransformedRows":
        """Fits the transforms of `spec` to training Rows and applies them."""
        x_pipeline = fit_pipeline(spec.x_transform, rows.x, "x")
        y_pipeline = fit_pipeline(spec.y_transform, rows.y, "y")
        train = transform_rows(spec, x_pipeline, y_pipeline, rows)
        held_out = None
        if validation is not None:
            held_out = transform_rows(spec, x_pipeline, y_pipeline, validation)
        return cls(x_pipeline, y_pipeline, train, held_out, summarise_inputs(train.x))
