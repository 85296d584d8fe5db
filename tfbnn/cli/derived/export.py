"""`tfbnn export`: a saved model for programs without this package, as ONNX or as a SavedModel."""

import argparse
import os
from pathlib import Path

from tfbnn.cli.console import DONE, import_tensorflow, print_json
from tfbnn.cli.options import add_model_argument, load_model
from tfbnn.cli.outputs import NEW_FOLDER, ONNX, check_output
from tfbnn.data.table_files import ending_of
from tfbnn.diagnostics.wording import megabytes

HELP = "write a saved model as ONNX or SavedModel"
DESCRIPTION = """\
Write mean and standard deviation of the function for programs without this package: as an ONNX file,
which needs the package onnx (tfbnn[onnx]), or as a TensorFlow SavedModel (tfbnn[fit]), by the name
given with -o. Input is x [N, D], float64, the network's inputs in their order (tfbnn info lists
those of columns of text); outputs are mean and stddev [N, K] in original units, and of a calibrated
model lower, median and upper: the median and the central 68.27 % with noise."""

EPILOG = """\
examples:
  tfbnn export bnn.h5 -o bnn.onnx
  tfbnn export bnn.h5 -o bnn-savedmodel/"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_model_argument(parser)
    parser.add_argument(
        "-o",
        dest="output",
        metavar="OUT.onnx|FOLDER",
        required=True,
        help="a name that ends in .onnx, for an ONNX file; or one without an ending, for the new "
        "folder of a SavedModel",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Exports and prints."""
    path: str = args.output
    ending = ending_of(path)
    if ending not in ("", *ONNX.endings):
        raise ValueError(
            f"-o {path} has the ending {ending!r}; expected {ONNX.endings[0]}, or a folder's name "
            "without an ending for a SavedModel. Choose one of them."
        )
    check_output(path, ONNX if ending else NEW_FOLDER, [args.model])
    model = load_model(args)
    if ending:
        model.to_onnx(path)
    else:
        import_tensorflow()
        model.to_savedmodel(path)
    made, size = "ONNX" if ending else "SavedModel", _size(path)
    names = model.posterior.feature_names
    if args.json:
        known = {"feature_names": names, "classes": model.classes}
        print_json({"format": made, **known, "saved": path, "bytes": size})
    else:
        inputs = ", ".join(names or [f"{model.spec.num_inputs} columns"])
        print(f"{'format':<13}{made}\n{'inputs':<13}{inputs}")
        print(f"{'saved':<13}{path}, {megabytes(size)}")
    return DONE


def _size(path: str) -> int:
    """Bytes of a file, or of all files in a folder."""
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())
