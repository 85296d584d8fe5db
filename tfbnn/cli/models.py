"""The argument that names a model file or a run folder, and loading it."""

import os

from tfbnn.model import load


def add_model_argument(parser):
    """Adds MODEL.h5 and --trusted."""
    parser.add_argument(
        "model", metavar="MODEL.h5",
        help="file that 'tfbnn fit' or save() wrote; or the folder of a run, for the draws that it "
        "has committed so far",
    )  # fmt: skip
    parser.add_argument(
        "--trusted", action="store_true",
        help="the model file is your own: read it in this process, whatever its size, 0.2 s faster; "
        "default: a separate, restricted process parses it; run folders are always your own",
    )  # fmt: skip


def load_model(args):
    """The model that the arguments name."""
    if args.trusted or os.path.isdir(args.model):
        return load(args.model, max_bytes=2**63)
    return load(args.model, untrusted=True)
