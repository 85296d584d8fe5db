"""A small table with columns of text, categories and flags, and a model of random networks for it."""

import numpy as np
import pandas as pd

from tests.support.builders import make_ensemble, plain_spec, random_statistics
from tfbnn.data.learn_coding import learn_coding
from tfbnn.data.training_inputs import summarise_inputs
from tfbnn.data.transforms import fit_pipeline
from tfbnn.posterior.provenance import Provenance

NUM_ROWS = 24
COLOURS = ("blue", "green", "naïve λ")
INPUTS = ("mass", *(f"colour={colour}" for colour in COLOURS), "ok", "kind=right", "mix")


def rows_of(num_rows=NUM_ROWS):
    """A frame of numbers, text, flags and categories, and targets [N]."""
    generator = np.random.default_rng(0)
    number = np.arange(num_rows)
    frame = pd.DataFrame(
        {
            "mass": np.round(generator.uniform(1.0, 3.0, num_rows), 3),
            "colour": np.array(COLOURS)[number % 3],
            "ok": number % 4 == 0,
            "kind": pd.Categorical(np.array(["left", "right"])[number // 2 % 2]),
            "mix": np.round(generator.normal(size=num_rows), 3),
        }
    )
    return frame, np.round(generator.normal(size=num_rows), 3)


FRAME, TARGETS = rows_of()


def coded_ensemble(frame=FRAME, targets=TARGETS, num_outputs=1, *, missing="refuse", **settings):
    """An Ensemble of random networks of the inputs that the columns of a frame become."""
    coding = learn_coding(frame, "x", missing)
    spec = plain_spec((coding.num_inputs, 3, num_outputs), x_transform="standardize", **settings)
    generator = np.random.default_rng(1)
    draws = generator.normal(size=(2, 15, spec.layout.num_parameters)).astype(spec.dtype)
    x = coding.encoded(frame, "x")
    x_pipeline = coding.even(fit_pipeline(spec.x_transform, x, "x"))
    return make_ensemble(
        spec,
        draws,
        x,
        targets[:, None],
        random_statistics((2, 15), generator),
        x_pipeline=x_pipeline,
        training_inputs=summarise_inputs(x_pipeline.forward(x)),
        feature_names=coding.input_names,
        coding=coding,
        provenance=Provenance().stating(target_names=["y"]),
    )


def write_everywhere(folder, frame=FRAME, targets=TARGETS):
    """The same table as t.csv, t.npz, t.h5 and t.parquet; their names, without Parquet's if need be."""
    import h5py

    table = frame.assign(y=targets)
    table.to_csv(folder / "t.csv", index=False)
    columns = {name: np.asarray(table[name]) for name in table}
    texts = {name for name, column in columns.items() if column.dtype.kind in "OUT"}
    np.savez(
        folder / "t.npz",
        **{name: v.astype(str) if name in texts else v for name, v in columns.items()},
    )
    with h5py.File(folder / "t.h5", "w") as file:
        for name, column in columns.items():
            # Of any length, as h5py writes text, and of a fixed one.
            encoded = np.char.encode(column.astype(str), "utf-8") if name == "kind" else None
            values = column.astype(object) if name in texts else column
            file[name] = values if encoded is None else encoded
    try:
        table.to_parquet(folder / "t.parquet", index=False)
    except ImportError:
        return ["t.csv", "t.npz", "t.h5"]
    return ["t.csv", "t.npz", "t.h5", "t.parquet"]


def with_text(name, value, row=3):
    """The frame with another entry in one column."""
    column = FRAME[name].astype(object).copy()
    column[row] = value
    return FRAME.assign(**{name: column})
