"""Access to the datasets of a tfbnn file, after a check that it holds only known objects.

Every object is checked before it is read (`tfbnn.data.hdf5` explains why). Objects that are not in
the schema are refused. Such checks cannot prevent memory errors of the HDF5 library itself;
`tfbnn.storage.model.untrusted` guards against them.
"""

import contextlib
import math
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5o, h5s, h5t

from tfbnn.data.hdf5 import STANDARD_FILTERS, is_hard_link, reach_fault, size_fault
from tfbnn.exceptions import ModelFileError
from tfbnn.storage.format import schema
from tfbnn.storage.format.schema import FileKind
from tfbnn.storage.format.sealing import content_size

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_GROUP, _DATASET = h5g.GroupID, h5d.DatasetID
_INTEGERS = (h5t.STD_I32LE, h5t.STD_I64LE)
_TYPES = {dtype: h5t.py_create(np.dtype(dtype)) for dtype in schema.ARRAY_DTYPES}


@contextlib.contextmanager
def opened_datasets(
    file: BinaryIO, max_bytes: int, kind: FileKind = schema.MODEL
) -> Iterator[tuple[int, dict[str, h5py.Dataset]]]:
    """Yield the format version of an open file, and its datasets by name, without reading them.

    Args:
        file: Open binary file, whose seal has been checked.
        max_bytes: Maximum size of all arrays together.
        kind: Required kind of the file.

    Raises:
        ModelFileError: For anything that the schema does not allow.
        Exception: Any exception that the HDF5 library raises for a damaged file.
    """
    size = content_size(file)
    _check_superblock(file, size, kind)
    with h5py.File(file, "r") as hdf5:
        root = h5o.open(hdf5.id, b"/")
        version = _checked_version(root, kind)
        datasets = _find_datasets(root, kind)
        counts = [_check_dataset(name, node, kind) for name, node in datasets.items()]
        declared, stored = map(sum, zip(*counts))
        if declared > max_bytes:
            raise ModelFileError(
                f"its arrays take {declared} bytes, expected at most {max_bytes}. Pass a larger "
                "max_bytes (--trusted in the command line) if you know where the file comes from."
            )
        if stored > size:
            raise ModelFileError(
                f"its arrays claim {stored} bytes of a file of {size}: expected no overlap."
            )
        yield version, {name: h5py.Dataset(node) for name, node in datasets.items()}


def _check_superblock(file: BinaryIO, size: int, kind: FileKind) -> None:
    """Check that the HDF5 part begins at byte 0 and ends at byte `size`.

    The layout is that of the superblock versions 2 and 3 in the HDF5 file format specification.
    """
    file.seek(0)
    block = file.read(36)
    if block[:8] != _SIGNATURE or block[8:9] not in (b"\2", b"\3"):
        raise ModelFileError(
            f"this is not a {kind.title}: it must begin with the signature of HDF5 at byte 0 and a "
            f"superblock of version 2 or 3, found {block[:9]!r}."
        )
    base, end = (int.from_bytes(block[start : start + 8], "little") for start in (12, 28))
    if base != 0 or end != size:
        raise ModelFileError(
            f"its HDF5 part must reach from byte 0 to {size}, it says from {base} to {end}. Check "
            "that it was copied completely."
        )


def _checked_version(root: h5g.GroupID, kind: FileKind) -> int:
    """Check all attributes of the root, and return the version of the file's format."""
    names, other = _attribute_names(root), f"this HDF5 file is not a {kind.title}"
    if "format" not in names:
        raise ModelFileError(f"{other}: it has no attribute 'format'.")
    _refuse_others("the attributes of /", names, schema.ATTRIBUTES)
    values = {name: _attribute(root, name) for name in schema.ATTRIBUTES}
    if values["format"] != kind.format:
        raise ModelFileError(
            f"{other}: expected the format {kind.format!r}, found {values['format']!r}."
        )
    version = int(values["format_version"])
    if not 1 <= version <= kind.version:
        known = " to ".join(map(str, sorted({1, kind.version})))
        raise ModelFileError(
            f"this release reads format version {known}, the file has {version}. Update tfbnn."
        )
    return version


def _attribute_names(node: h5g.GroupID) -> list[str]:
    count = h5a.get_num_attrs(node)
    if count > len(schema.ATTRIBUTES):
        raise ModelFileError(
            f"expected at most {len(schema.ATTRIBUTES)} attributes per object, found {count}."
        )
    return [h5a.open(node, index=i).name.decode(errors="replace") for i in range(count)]


def _attribute(root: h5g.GroupID, name: str) -> str | int:
    attribute = h5a.open(root, name.encode())
    kind, space = attribute.get_type(), attribute.get_space()
    expected = schema.ATTRIBUTES[name]
    if expected is int:
        sound = any(kind.equal(integer) for integer in _INTEGERS)
    else:
        sound = isinstance(kind, h5t.TypeStringID) and not kind.is_variable_str()
        sound = sound and kind.get_size() <= schema.MAX_ATTRIBUTE_BYTES
    if not sound or kind.committed() or space.get_simple_extent_type() != h5s.SCALAR:
        wanted = "an integer" if expected is int else "a text of fixed length"
        raise ModelFileError(f"the attribute {name!r} must be {wanted}.")
    value = np.empty((), attribute.dtype)
    attribute.read(value)
    return int(value) if expected is int else str(value.item().decode())


def _find_datasets(root: h5g.GroupID, kind: FileKind) -> dict[str, h5d.DatasetID]:
    """Open the datasets of the schema, dict name -> open dataset; refuse all other entries."""
    nodes, groups = {"": root}, _groups(kind)
    limit = schema.MAX_ARRAYS if kind.has_arrays else len(kind.datasets) + len(kind.optional)
    for group, members in groups.items():
        names = [f"{group}/{name}".lstrip("/") for name in _entry_names(nodes[group], limit)]
        if group == schema.ARRAYS:
            members.extend(map(schema.array_name, range(len(names))))
        members.extend(name for name in kind.optional if name in names)
        _refuse_others(f"the entries of /{group}", names, members)
        for name in members:
            nodes[name] = _open(nodes[group], name, kind=_GROUP if name in groups else _DATASET)
    if len({h5o.get_info(node).addr for node in nodes.values()}) != len(nodes):
        raise ModelFileError("every entry must be an object of its own, found one under two names.")
    return {name: node for name, node in nodes.items() if name not in groups}


def _groups(kind: FileKind) -> dict[str, list[str]]:
    """Return a dict group -> groups and datasets in it, beginning with the root.

    Numbered arrays are not listed.
    """
    groups: dict[str, list[str]] = {"": []}
    if kind.has_arrays:
        groups = {"": [schema.ARRAYS], schema.ARRAYS: []}
    for name in kind.datasets:
        group = name.rpartition("/")[0]
        if group not in groups:
            groups[""].append(group)
            groups[group] = []
        groups[group].append(name)
    return groups


def _entry_names(group: h5g.GroupID, limit: int) -> list[str]:
    count = group.get_num_objs()
    if count > limit:
        raise ModelFileError(f"expected at most {limit} entries in a group, found {count}.")
    return [name.decode(errors="replace") for name in group]


def _refuse_others(what: str, found: Iterable[str], expected: Iterable[str]) -> None:
    if sorted(found) != sorted(expected):
        raise ModelFileError(
            f"{what} must be {sorted(expected)!r:.500}, found {sorted(found)!r:.500}."
        )


def _open(group: h5g.GroupID, name: str, kind: type) -> Any:
    """Open an entry of a group.

    It must be a hard link to an object of this kind, which must have no attributes.
    """
    member = name.rpartition("/")[2].encode()
    if not is_hard_link(group, member):
        raise ModelFileError(f"{name} must be a hard link, found a link to somewhere else.")
    node = h5o.open(group, member)
    if type(node) is not kind:
        wanted = "dataset" if kind is _DATASET else "group"
        raise ModelFileError(f"{name} must be a {wanted}, found a {type(node).__name__}.")
    if h5a.get_num_attrs(node):
        raise ModelFileError(f"{name} must have no attributes, found {h5a.get_num_attrs(node)}.")
    return node


def _check_dataset(name: str, dataset: h5d.DatasetID, file_kind: FileKind) -> tuple[int, int]:
    """Check that a dataset consists of plain numbers that are stored completely in this file.

    Returns:
        (Size of the values in bytes, size of their storage in the file in bytes).
    """
    if fault := reach_fault(dataset, STANDARD_FILTERS):
        raise ModelFileError(f"{name} {fault}.")
    kind, described = dataset.get_type(), file_kind.datasets | file_kind.optional
    dtypes, dimensions = described.get(name, (schema.ARRAY_DTYPES, ("any",)))
    if kind.committed() or not any(kind.equal(_TYPES[dtype]) for dtype in dtypes):
        raise ModelFileError(f"{name} must have a dtype out of {dtypes}, found another.")
    space = dataset.get_space()
    if space.get_simple_extent_type() != h5s.SIMPLE:
        raise ModelFileError(f"{name} must have the dimensions {list(dimensions)}, found none.")
    shape = space.get_simple_extent_dims()
    declared, stored = math.prod(shape) * kind.get_size(), dataset.get_storage_size()
    if fault := size_fault(dataset):
        raise ModelFileError(f"{name} {fault}.")
    if name == schema.METADATA and declared > max(schema.SMALL_METADATA_BYTES, stored):
        raise ModelFileError(
            f"{name} of more than {schema.SMALL_METADATA_BYTES} bytes must not be compressed, found "
            f"{stored} bytes for {declared}."
        )
    if declared > max(schema.SMALL_BYTES, schema.MAX_EXPANSION * stored):
        raise ModelFileError(
            f"{name} must not expand {schema.MAX_EXPANSION} times, found {stored} bytes for {declared}."
        )
    return declared, stored
