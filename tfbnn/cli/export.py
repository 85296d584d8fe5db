"""Export a saved model for programs without this package: mean and standard deviation.

The name given with -o selects the format. An ONNX file needs the package onnx (tfbnn[onnx]), a
TensorFlow SavedModel needs tfbnn[fit]. The input is x [N, D], float64: the network's inputs in their
order; tfbnn info lists them. The outputs are mean and stddev [N, K] of the function, in original units. A
calibrated model also has median, lower and upper: the median and the central 68.27 % interval with noise.

examples:
  tfbnn export bnn.h5 -o bnn.onnx
  tfbnn export bnn.h5 -o bnn-savedmodel/
"""

import argparse
import os
from pathlib import Path
from typing import Annotated

from tfbnn.cli.arguments import JsonOptions, ModelOptions, load_model
from tfbnn.cli.console import import_tensorflow
from tfbnn.cli.outputs import FOLDER, ONNX, check_output, tell_saved
from tfbnn.data.tables import ending_of


class Options(JsonOptions, ModelOptions):
    """Options of the command.

    Attributes:
        output: A name that ends in .onnx, for an ONNX file; or one without an ending, for the new folder
            of a SavedModel.
    """

    output: Annotated[str, {"flags": ("-o",), "metavar": "OUT.onnx|FOLDER"}]


def run(args: argparse.Namespace) -> int:
    """Export the model and print a summary."""
    path: str = args.output
    ending = ending_of(path)
    check_output(path, ONNX if ending else FOLDER, [args.model])
    model = load_model(args)
    if ending:
        model.to_onnx(path)
        size = os.path.getsize(path)
    else:
        import_tensorflow()
        model.to_savedmodel(path)
        size = sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())
    made, names = "ONNX" if ending else "SavedModel", model.posterior.feature_names
    inputs = ", ".join(names or [f"{model.spec.num_inputs} columns"])
    summary = f"{'format':<13}{made}\n{'inputs':<13}{inputs}"
    record = {"format": made, "feature_names": names, "classes": model.classes}
    return tell_saved(args, size, summary, record)
