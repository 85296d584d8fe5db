"""Edits of a sound model file that its reader has to refuse, and what it has to say."""

import json
import os

import h5py
import numpy as np

from tests.support.model_file_edits import (
    THETA,
    add,
    as_group,
    declare,
    link,
    remove,
    replace,
    rewrite,
    rewrite_text,
    set_attribute,
    set_one,
    store,
)
from tfbnn.storage.format import schema

CANARY = b"canary-of-another-file"
WEIGHTS, REFERENCE = "posterior/chain_weights", "constant_data/x_reference"
HARD = "must be a hard link"
PLAIN = "must be a plain dataset of this file"
NUMBERS = "must have a dtype out of"


def all_statistics(change):
    """An edit of every statistic."""
    edits = [replace(f"sample_stats/{name}", change) for name in schema.STATISTICS]
    return lambda file: [edit(file) for edit in edits]


def both(*edits):
    return lambda file: [edit(file) for edit in edits]


def typed(name, kind):
    """An edit that gives a dataset an HDF5 type of its own, values zero."""

    def edit(file):
        shape = file[name].shape
        del file[name]
        space = h5py.h5s.create_simple(shape)
        h5py.h5d.create(file.id, name.encode(), kind, space)

    return edit


def committed(file):
    file["kind"] = np.dtype("<f4")
    kind = file["kind"]
    replace_kind = file[THETA][()]
    del file[THETA]
    file.create_dataset(THETA, data=replace_kind, dtype=kind)
    del file["kind"]


def external_storage(file):
    values = file[THETA][()]
    del file[THETA]
    file.create_dataset(
        THETA, values.shape, values.dtype, external=[(canary_of(file), 0, values.nbytes)]
    )


def virtual(file):
    values = file[THETA][()]
    del file[THETA]
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    layout[:] = h5py.VirtualSource(canary_of(file), "theta", values.shape)
    file.create_virtual_dataset(THETA, layout)


def canary_of(file):
    return os.path.join(os.path.dirname(file.filename), "canary")


def external_link(name):
    def edit(file):
        del file[name]
        file[name] = h5py.ExternalLink(canary_of(file), "/")

    return edit


def user_defined_filter(file):
    values = file[THETA][()]
    del file[THETA]
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(values.shape)
    plist.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, ())  # Zstandard, a plugin
    space = h5py.h5s.create_simple(values.shape)
    h5py.h5d.create(file.id, THETA.encode(), h5py.h5t.IEEE_F32LE, space, plist)


def hollow(file):
    """Chunks of which only the first is there."""
    shape = file[THETA].shape
    del file[THETA]
    file.create_dataset(THETA, shape=shape, dtype="<f4", chunks=(1, *shape[1:]))[0] = 1.0


def bomb(file):
    """64 MiB of zeros in 64 KiB."""
    del file[THETA]
    zeros = np.zeros((2, 381300, 22), "<f4")
    file.create_dataset(
        THETA, data=zeros, chunks=(1, 381300, 22), compression="gzip", compression_opts=9
    )


def nested(depth):
    return rewrite("provenance", value=json.loads("[" * depth + "]" * depth))


# name -> (edit, what the message must say)
FILES = {
    # Links.
    "soft link": (link(THETA, h5py.SoftLink("/constant_data/x_low")), HARD),
    "dangling soft link": (link(THETA, h5py.SoftLink("/nowhere")), HARD),
    "soft link for a group": (link("posterior", h5py.SoftLink("/sample_stats")), HARD),
    "external link for theta": (external_link(THETA), HARD),
    "external link for a group": (external_link("posterior"), HARD),
    "two names for one dataset": (
        lambda file: link("constant_data/x_mean", file["constant_data/x_low"])(file),
        "found one under two names",
    ),
    "a cycle of groups": (lambda file: link("posterior", file["/"])(file), "posterior must have no attr"),
    # Storage.
    "external storage": (external_storage, PLAIN),
    "virtual dataset": (virtual, PLAIN),
    "filter lzf": (store(THETA, compression="lzf"), "no filters but gzip"),
    "filter of a plugin": (user_defined_filter, "no filters but gzip, .*32015"),
    "theta of a size no memory holds": (
        declare(THETA, (2, 10**16, 22), chunks=(1, 1, 22)), "does not hold them",
    ),
    "theta of some of its chunks": (hollow, "does not hold them"),
    "a chunk of 128 MiB": (
        declare(THETA, (2, 15, 2**25), chunks=(1, 1, 2**25)), "chunks of at most 67108864 bytes",
    ),
    "64 MiB out of 64 KiB": (bomb, "must not expand 1000 times"),
    "an array without dimensions": (
        link(WEIGHTS, np.float64(1.0)), "must have the dimensions .*found none",
    ),
    "an array without a space": (
        link(WEIGHTS, h5py.Empty("<f8")), "must have the dimensions .*found none",
    ),
    # Types.
    "theta big-endian": (replace(THETA, lambda v: v.astype(">f4")), NUMBERS),
    "theta in float16": (replace(THETA, lambda v: v.astype("<f2")), NUMBERS),
    "theta compound": (replace(THETA, lambda v: v.view([("a", "<f4")])), NUMBERS),
    "theta of a committed type": (committed, NUMBERS),
    "theta in float64": (replace(THETA, lambda v: v.astype("<f8")), "theta must be float32"),
    "theta of a float with odd bits": (
        lambda file: typed(THETA, odd_float())(file), NUMBERS,
    ),
    "divergences of booleans (an enum)": (
        replace("sample_stats/diverging", lambda v: v.astype(bool)), NUMBERS,
    ),
    "metadata of variable length": (
        replace("metadata", lambda v: v.tobytes().decode()), NUMBERS,
    ),
    "metadata of fixed length": (replace("metadata", lambda v: np.bytes_(v.tobytes())), NUMBERS),
    "weights of references": (
        lambda file: link(WEIGHTS, np.array([file.ref, file.ref], h5py.ref_dtype))(file), NUMBERS,
    ),
    # Names.
    "theta missing": (remove(THETA), "entries of /posterior must be"),
    "a statistic missing": (remove("sample_stats/energy"), "entries of /sample_stats must be"),
    "metadata missing": (remove("metadata"), "entries of / must be"),
    "covariance missing": (remove("constant_data/x_covariance"), "entries of /constant_data"),
    "theta a group": (as_group(THETA), "theta must be a dataset"),
    "metadata a group": (as_group("metadata"), "metadata must be a dataset"),
    "a group that is a dataset": (
        both(remove("posterior"), add("posterior", [1.0])), "posterior must be a group",
    ),
    "an unknown dataset": (add("pickle", [1, 2]), "entries of / must be .*pickle"),
    "an unknown group": (add("posterior/more/a", [1]), "entries of /posterior .*more"),
    "an unknown link": (add("constant_data/z", h5py.SoftLink("/")), "entries of /constant_data"),
    "a hundred entries": (
        lambda file: [file.create_group(f"posterior/{i}") for i in range(100)],
        "at most .* entries in a group, found 102",
    ),
    "a name with a path": (add("constant_data/..", [1.0]), "entries of /constant_data"),
    # Attributes.
    "another format": (set_attribute("format", np.bytes_("keras")), "not a tfbnn model.*'keras'"),
    "format missing": (lambda file: file.attrs.pop("format"), "no attribute 'format'"),
    "format of variable length": (
        set_attribute("format", "tfbnn-model"), "'format' must be a text of fixed length",
    ),
    "format of 2 KiB": (
        set_attribute("format", np.bytes_(b"x" * 2048)), "'format' must be a text of fixed length",
    ),
    "format version from the future": (
        set_attribute("format_version", 999), "reads format version 1 to 3, the file has 999",
    ),
    "an entry of a version to come": (
        set_attribute("format_version", 1), r"object with the keys \('spec', .*'provenance'\)",
    ),
    "format version 0": (set_attribute("format_version", 0), "the file has 0"),
    "format version a text": (
        set_attribute("format_version", np.bytes_("1")), "'format_version' must be an integer",
    ),
    "format version a fraction": (
        set_attribute("format_version", 1.5), "'format_version' must be an integer",
    ),
    "format version missing": (
        lambda file: file.attrs.pop("format_version"), "attributes of / must be",
    ),
    "an unknown attribute": (
        lambda file: (file.attrs.pop("inference_library"), set_attribute("loader", 1)(file)),
        "attributes of / must be .*loader",
    ),
    "an attribute too many": (set_attribute("more", 1), "at most 4 attributes"),
    "an attribute of theta": (set_attribute("a", 1, THETA), "theta must have no attributes"),
    "an attribute of a group": (
        set_attribute("a", 1, "posterior"), "posterior must have no attributes",
    ),
    # Shapes and values.
    "a parameter too few": (replace(THETA, lambda v: v[..., :-1]), "ask for param = 22, found .*21"),
    "theta without chains": (replace(THETA, lambda v: v[0]), r"shape \['chain', 'draw', 'param'\]"),
    "no draws": (
        both(replace(THETA, lambda v: v[:, :0]), all_statistics(lambda v: v[:, :0])),
        "without zeros",
    ),
    "a statistic too short": (
        replace("sample_stats/lp", lambda v: v[:, :-1]), r"lp must have the shape \[2, 15\]",
    ),
    "reference rows too narrow": (
        replace(REFERENCE, lambda v: v[:, :1]), r"x_low must have the shape \[1\]",
    ),
    "no reference rows": (replace(REFERENCE, lambda v: v[:0]), "without zeros"),
    "covariance not square": (
        replace("constant_data/x_covariance", lambda v: np.zeros((2, 3))),
        "ask for column = 2, found arrays with 3",
    ),
    "NaN weight": (replace(THETA, set_one(np.nan)), "theta must be finite"),
    "NaN in the last weight": (
        replace(THETA, lambda v: np.append(v.ravel()[:-1], v.dtype.type(np.nan)).reshape(v.shape)),
        "theta must be finite",
    ),
    "chain weights too many": (replace(WEIGHTS, lambda v: np.full(4, 0.25)), r"the shape \[2\]"),
    "chain weights negative": (replace(WEIGHTS, lambda v: np.array([1.5, -0.5])), ">= 0 and add"),
    "chain weights NaN": (replace(WEIGHTS, lambda v: v * np.nan), "must be finite"),
    "chain weights do not add up": (replace(WEIGHTS, lambda v: 0.9 * v), "add up to 1"),
    "reference rows for hours of diagnosis": (
        both(
            replace(REFERENCE, lambda v: np.zeros((10**6, 2))),
            store(REFERENCE, chunks=(10**5, 2), compression="gzip"),
        ),
        "at most 200 rows, found 1000000",
    ),
    "reference rows NaN": (replace(REFERENCE, set_one(np.nan)), "x_reference must be finite"),
    "input range infinite": (replace("constant_data/x_high", set_one(np.inf)), "must be finite"),
    "input range upside down": (replace("constant_data/x_low", set_one(1e9)), "low <= high"),
    "distances upside down": (replace("constant_data/x_distances", lambda v: -v), "ascending"),
    "three distances": (
        replace("constant_data/x_distances", lambda v: np.append(v, v[-1])), "level = 2, found",
    ),
    "a negative variance": (replace("constant_data/x_covariance", set_one(-1.0)), "symmetric, >= 0"),
    "covariance not symmetric": (
        replace("constant_data/x_covariance", lambda v: v + [[0, 1], [0, 0]]), "symmetric, >= 0",
    ),
    "divergences of 7": (replace("sample_stats/diverging", set_one(7)), "must be 0 or 1"),
    "a negative number of steps": (replace("sample_stats/n_steps", set_one(-1)), "must be >= 0"),
    # JSON.
    "metadata no JSON": (rewrite_text(lambda text: text[:-3]), "not a readable"),
    "metadata no UTF-8": (rewrite_text(lambda text: b"\xff" + text[1:]), "not a readable .*Unicode"),
    "metadata empty": (rewrite_text(lambda text: b""), "metadata must have the shape"),
    "metadata a list": (rewrite_text(lambda text: b"[]"), "must be an object with the keys"),
    "metadata with a key twice": (
        rewrite_text(lambda text: text[:-1] + b', "spec": {}}'), "must not name a key twice",
    ),
    "metadata with an unknown key": (
        rewrite("loader", value="os.system"), "must be an object with the keys",
    ),
    "metadata with NaN": (rewrite("provenance", value={"a": float("nan")}), "finite numbers, found NaN"),
    "metadata with infinity": (
        rewrite_text(lambda text: text.replace(b'"mean": [', b'"mean": [1e999, ', 1)),
        "finite numbers, found 1e999",
    ),
    "metadata nested too deeply": (nested(8), "nested deeper than 8"),
    "metadata nested endlessly": (
        rewrite_text(lambda text: b"[" * 200_000), "not a readable .*Recursion",
    ),
    "metadata of 300 KiB that expand": (
        both(
            rewrite("provenance", value={"a": "x" * 300_000}),
            store("metadata", chunks=True, compression="gzip"),
        ),
        "more than 262144 bytes must not be compressed",
    ),
    "metadata of 65 MiB": (
        rewrite("provenance", value={"a": "x" * 65 * 2**20}), "at most 67108864 bytes",
    ),
    "metadata with a number of 5000 digits": (
        rewrite_text(lambda text: text.replace(b'"row_noise": false', b'"row_noise": ' + b"9" * 5000)),
        "not a readable .*digits",
    ),
    "another architecture": (rewrite("spec", "layer_sizes", value=[2, 6, 1]), "ask for param = 26"),
    "absurd width": (rewrite("spec", "layer_sizes", value=[2, 10**30, 1]), "widths up to 65536"),
    "an unknown likelihood": (
        rewrite("spec", "likelihood", value={"name": "os.system"}), "expected one of",
    ),
    "an unknown entry of the spec": (rewrite("spec", "call", value="x"), "unexpected .*call"),
    "spec missing": (rewrite("spec", value=None), "spec in metadata has the wrong type"),
    "a scale of zero": (rewrite("x_pipeline", 0, "scale", value=[1.0, 0.0]), "not positive"),
    "a mean of texts": (rewrite("x_pipeline", 0, "mean", value=["1", "2"]), "unknown or missing"),
    "a pipeline for more columns": (
        rewrite(
            "x_pipeline", value=[{"name": "standardize", "mean": [0.0] * 3, "scale": [1.0] * 3}]
        ),
        "must have 2 columns",
    ),
    "a pipeline of other steps than the spec": (rewrite("y_pipeline", value=[]), "must have the steps"),
    "a logarithm the spec does not know": (
        rewrite("y_pipeline", value=[{"name": "log10"}] * 2), "must have the steps",
    ),
    "an unknown entry of a transform": (rewrite("x_pipeline", 0, "f", value="x"), "unknown or missing"),
    "a feature name too many": (rewrite("feature_names", value=["a", "b", "c"]), "must be 2 texts"),
    "feature names no list": (rewrite("feature_names", value="ab"), "has the wrong type"),
    "row noise no boolean": (rewrite("row_noise", value=1), "has the wrong type"),
    "vector target no boolean": (rewrite("vector_target", value=1), "has the wrong type"),
    "classes of a regression": (rewrite("classes", value=["a", "b"]), "classes must be absent"),
    "diagnostics no object": (rewrite("diagnostics", value=[1]), "has the wrong type"),
    "warnings of numbers": (
        rewrite("diagnostics", value={"warnings": [1]}), "warnings must be a list of texts",
    ),
    "provenance no object": (rewrite("provenance", value=7), "has the wrong type"),
}  # fmt: skip


def odd_float():
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_ebias(120)
    return kind
