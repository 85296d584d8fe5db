"""Names of all objects in a tfbnn file, and the limits on what is read.

No other module defines such names. Groups and statistics have ArviZ names. A dataset is described
by its allowed dtypes and by the names of its dimensions. Dimensions of the same name have the same
size in the whole file. Some sizes follow from the model (param, input, network); chain, draw, row (of
reference inputs), given (rows that predictions need), score, digest, basin and byte are free. The size of level is 2; that of column is `input`, or 1
if only variances are stored. In runs with collapsed readout, readout is the number of the last
layer's parameters, group is 1 or the number of outputs, and triangle is the number of entries on
and above the diagonal of a square matrix of the last layer's inputs and bias.

Files of a run folder hold metadata and numbered arrays. The metadata list the names and shapes of
these arrays: each kernel defines the state of its chains, so no fixed list of names could be
complete.
"""

import json
import math
from types import UnionType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tfbnn.diagnostics import sample_stats
from tfbnn.exceptions import ModelFileError

Description = tuple[tuple[str, ...], tuple[str, ...]]  # dtypes, names of the dimensions

# Every later release reads all versions from 1 on; tests/golden holds files of each released
# version. FORMAT_VERSION may still change while it is newer than RELEASED_VERSION.
RELEASED_VERSION, FORMAT_VERSION = 3, 3

# Attributes of the root; other objects have none.
ATTRIBUTES: dict[str, type[str] | type[int]] = {
    "format": str,
    "format_version": int,
    "inference_library": str,
    "inference_library_version": str,
}

METADATA = "metadata"  # UTF-8 JSON, an object with these keys and types
METADATA_KINDS: dict[str, type | UnionType] = {
    "spec": dict,
    "x_pipeline": list,
    "y_pipeline": list,
    "feature_names": list | None,
    "row_noise": bool,
    "classes": list | None,
    "diagnostics": dict | None,
    "provenance": dict,
    "vector_target": bool,
    "calibration": dict | None,
    "basins": dict | None,
    "coding": list | None,
}
# Entries that each version added to the metadata, with the values that older files imply.
ADDED_METADATA: dict[int, dict[str, Any]] = {
    2: {"vector_target": False, "calibration": None, "basins": None, "coding": None},
    3: {},  # settings of priors, which older files leave out, and specs of Keras models
}
THETA = "posterior/theta"
CHAIN_WEIGHTS = "posterior/chain_weights"
X_REFERENCE = "constant_data/x_reference"  # original units
SAMPLE_STATS = "sample_stats"
STATISTICS = {name: kind.stored for name, kind in sample_stats.STATISTICS.items()}
# Dimensions of the transformed training inputs; the keys are those of TrainingInputs.
_INPUT_DIMENSIONS: dict[str, tuple[str, ...]] = {
    "low": ("input",),
    "high": ("input",),
    "mean": ("input",),
    "covariance": ("input", "column"),
    "distances": ("level",),
}
TRAINING_INPUTS = {key: f"constant_data/x_{key}" for key in _INPUT_DIMENSIONS}

READOUTS = {"mean": "posterior/readout_mean", "factor": "posterior/readout_factor"}

MODE = "posterior/mode"  # point around which the network was linearised
ROW_DIGESTS = "constant_data/row_digests"
SCORES = "constant_data/calibration_scores"
RHAT_WITHIN = "constant_data/basins_rhat"
MISFIT = {
    "directions": "constant_data/misfit_directions",
    "squares": "constant_data/misfit_squares",
}

# Rows that functions of infinite width are conditioned on, as the network sees them.
GIVEN = {key: f"constant_data/given_{key}" for key in ("x", "y", "noise")}

DATASETS: dict[str, Description] = {
    METADATA: (("|u1",), ("byte",)),
    THETA: (("<f4", "<f8"), ("chain", "draw", "param")),
    CHAIN_WEIGHTS: (("<f8",), ("chain",)),
    X_REFERENCE: (("<f8",), ("row", "input")),
    # Releases up to 0.3.0 wrote float32 after fits of more than 65 536 rows.
    **{TRAINING_INPUTS[key]: (("<f8", "<f4"), names) for key, names in _INPUT_DIMENSIONS.items()},
    **{f"{SAMPLE_STATS}/{n}": ((dtype,), ("chain", "draw")) for n, dtype in STATISTICS.items()},
}
# Files of runs with collapsed readout have the first two datasets, or only the first. Files whose
# draws come from a normal distribution have its mode.
OPTIONAL_DATASETS: dict[str, Description] = {
    READOUTS["mean"]: (("<f4", "<f8"), ("chain", "draw", "readout")),
    READOUTS["factor"]: (("<f4", "<f8"), ("chain", "draw", "group", "triangle")),
    MODE: (("<f4", "<f8"), ("param",)),
    ROW_DIGESTS: (("<u4",), ("digest",)),
    SCORES: (("<f8",), ("score", "target")),
    RHAT_WITHIN: (("<f8",), ("basin", "row", "predicted")),
    MISFIT["directions"]: (("<f4", "<f8"), ("network", "target", "feature", "feature")),
    MISFIT["squares"]: (("<f8",), ("network", "target", "feature")),
    GIVEN["x"]: (("<f8",), ("given", "input")),
    GIVEN["y"]: (("<f8",), ("given", "target")),
    GIVEN["noise"]: (("<f8",), ("given", "target")),
}
# Files of a run folder.
ARRAYS = "arrays"
ARRAY_DTYPES = ("<f4", "<f8", "<i4", "<u4", "<i8", "|u1")
MAX_ARRAYS, MAX_GROUPS = 1000, 100_000
# Arrays of a checkpoint: digests and lengths of the committed segments, and the caller's below
# STATE.
DIGESTS, LENGTHS, STATE = "segments/sha256", "segments/length", "state"
DIGEST_BYTES = 32


def array_name(index: int) -> str:
    """Return the dataset name of a numbered array."""
    return f"{ARRAYS}/{index}"


class FileKind(NamedTuple):
    """Kind of a file: its format and datasets.

    Attributes:
        title: Name of such a file in messages.
        format: Value of the attribute 'format'.
        version: Value of the attribute 'format_version' in written files; files of all versions
            from 1 on can be read.
        datasets: Required datasets, dict name -> Description.
        optional: Optional datasets, in groups that also have required ones.
        has_arrays: Whether the file also has numbered arrays.
    """

    title: str
    format: str
    version: int
    datasets: dict[str, Description] = {METADATA: DATASETS[METADATA]}
    optional: dict[str, Description] = {}
    has_arrays: bool = True


MODEL = FileKind(
    "tfbnn model", "tfbnn-model", FORMAT_VERSION, DATASETS, OPTIONAL_DATASETS, has_arrays=False
)
RUN = FileKind("description of a tfbnn run", "tfbnn-run", 1)
SEGMENT = FileKind("segment of a tfbnn run", "tfbnn-segment", 1)
CHECKPOINT = FileKind("checkpoint of a tfbnn run", "tfbnn-checkpoint", 1)

MAX_BYTES = 2 * 2**30  # of a file, and of all its arrays together, unless the caller allows more
# A dataset larger than SMALL_BYTES may expand to at most MAX_EXPANSION times its bytes in the file.
MAX_EXPANSION, SMALL_BYTES = 1000, 16 * 2**20
MAX_ATTRIBUTE_BYTES = 1024
MAX_DEPTH = 8  # of nested objects and lists in the metadata
MAX_RUN_DEPTH = 12  # in the metadata of a run folder, which contain those of a model
# Parsed JSON takes up to 25 times its length in memory. Users' names may be long, so metadata may
# be long, too. Metadata longer than SMALL_METADATA_BYTES must not be compressed, so that a small
# file cannot take much memory.
SMALL_METADATA_BYTES, MAX_METADATA_BYTES = 256 * 2**10, 64 * 2**20
# Bytes that sampling, a diagnosis, stacking and a compression may add to the metadata of a new fit.
RESERVED_METADATA_BYTES = 4 * 2**20


def to_json(value: Any) -> bytes:
    """Encode a value as JSON bytes.

    Raises:
        TypeError, ValueError: For values that JSON cannot represent, including NaN and infinity.
    """
    return json.dumps(value, allow_nan=False, default=_plain).encode()


def parse_json(text: bytes, max_depth: int = MAX_DEPTH) -> Any:
    """Parse UTF-8 JSON without duplicate keys, NaN, infinity or deep nesting.

    Raises:
        ModelFileError, ValueError, RecursionError: For any other bytes.
    """
    value = json.loads(
        text.decode("utf-8"),
        object_pairs_hook=_unique,
        parse_constant=_refuse_constant,
        parse_float=_finite,
    )
    if _depth(value) > max_depth:
        raise ModelFileError(f"metadata must not be nested deeper than {max_depth} levels.")
    return value


def check_length(num_bytes: int, reserved: int = 0) -> None:
    """Check that the metadata leave at least `reserved` bytes below the limit.

    Raises:
        ModelFileError: When they do not.
    """
    limit = MAX_METADATA_BYTES - reserved
    if num_bytes > limit:
        raise ModelFileError(f"metadata must have at most {limit} bytes, found {num_bytes}.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ModelFileError("metadata must not name a key twice in one object.")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ModelFileError(f"metadata must hold finite numbers, found {text}.")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def _depth(value: Any) -> int:
    """Return the nesting depth of objects and lists."""
    if not isinstance(value, (dict, list)):
        return 0
    entries = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, entries), default=0)


def _plain(value: Any) -> Any:
    """Convert a NumPy number to a Python number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a tfbnn file")
