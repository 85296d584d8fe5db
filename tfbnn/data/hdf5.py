"""Plain datasets of HDF5 files, which neither name other files nor declare more than they hold.

HDF5 files can name other files (links, external storage, virtual datasets), declare sizes that no
memory holds, and call filters loaded from libraries. The checks here come before anything is read
from model files, which allow less (`tfbnn.storage.format.allow_list`), and from tables.
"""

import math
import os
from collections.abc import Collection, Iterator

import h5py
import numpy as np
from h5py import h5d, h5g, h5l, h5o, h5s, h5t, h5z

from tfbnn.data.array_files import Arrays, decoded
from tfbnn.system.arrays import Array

MAX_CHUNK_BYTES = 64 * 2**20
STANDARD_FILTERS = (h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32)
# h5py has LZF built in.
_TABLE_FILTERS = (*STANDARD_FILTERS, h5z.FILTER_LZF)
_LAYOUTS = (h5d.COMPACT, h5d.CONTIGUOUS, h5d.CHUNKED)
# A text of any length is stored as its length (4 bytes) and its location: an address and a number.
_REFERENCE_BYTES = 4 + 8 + 4
# Memory for texts that are read at once: each may be as long as the file.
_TEXT_BYTES = 2**30


def is_hard_link(group: h5g.GroupID, name: bytes) -> bool:
    """Check whether an entry of a group is in the file, rather than a path to somewhere else."""
    return bool(group.links.get_info(name).type == h5l.TYPE_HARD)


def reach_fault(dataset: h5d.DatasetID, filters: Collection[int]) -> str | None:
    """Return why reading a dataset would reach beyond its file and these filters, or None.

    Call it before any other check.
    """
    plist = dataset.get_create_plist()
    # This check is first: even asking a virtual dataset for its shape opens other files.
    if plist.get_layout() not in _LAYOUTS or plist.get_external_count():
        return "must be a plain dataset of this file, found external storage or a virtual dataset"
    found = [plist.get_filter(index)[0] for index in range(plist.get_nfilters())]
    if not set(found) <= set(filters):
        also = ", LZF" if h5z.FILTER_LZF in filters else ""
        return f"must have no filters but gzip, shuffle, fletcher32{also}, found {found}"
    return None


def size_fault(dataset: h5d.DatasetID) -> str | None:
    """Return why a dataset does not hold what it declares, or None; its shape must be simple."""
    plist, shape = dataset.get_create_plist(), dataset.get_space().get_simple_extent_dims()
    kind = dataset.get_type()
    is_reference = isinstance(kind, h5t.TypeStringID) and kind.is_variable_str()
    itemsize = _REFERENCE_BYTES if is_reference else int(kind.get_size())
    declared = math.prod(shape) * itemsize
    if plist.get_layout() == h5d.CHUNKED:
        chunk = plist.get_chunk()
        if math.prod(chunk) * itemsize > MAX_CHUNK_BYTES:
            return (
                f"must have chunks of at most {MAX_CHUNK_BYTES} bytes, found the chunk shape "
                f"{list(chunk)}"
            )
        whole = dataset.get_num_chunks() == math.prod(-(-n // c) for n, c in zip(shape, chunk))
    else:
        whole = dataset.get_storage_size() == declared
    if whole:
        return None
    return f"declares the shape {list(shape)}, {declared} bytes, but does not hold them"


def read_hdf5(path: str, texts: bool = False) -> Arrays:
    """Read the datasets of the root group of an HDF5 file, with None for those that are no columns.

    Args:
        path: The file.
        texts: Whether columns may be of text and booleans, too; default False: only of numbers.

    Raises:
        ValueError: If it is no HDF5 file, an entry is a link, or a dataset is not completely in it.
    """
    try:
        with h5py.File(path, "r") as file:
            root = h5o.open(file.id, b"/")
            found = list(_root_datasets(root, texts, os.path.getsize(path)))
    except (OSError, RuntimeError, KeyError, ValueError, MemoryError) as error:
        raise ValueError(f"{path} is not a readable HDF5 file ({error}).") from error
    if all(array is None for _, array in found):
        raise ValueError(
            f"{path} must have columns as datasets of numbers at its root, found none. Read the table with "
            "what wrote it, such as pandas.read_hdf, and write it as CSV or Parquet."
        )
    return found


def _root_datasets(root: h5g.GroupID, texts: bool, size: int) -> Iterator[tuple[str, Array | None]]:
    for key in root:
        name = key.decode(errors="replace")
        if not is_hard_link(root, key):
            raise ValueError(f"{name} must be in this file, found a link to somewhere else")
        node = h5o.open(root, key)
        if isinstance(node, h5d.DatasetID):
            fault = reach_fault(node, _TABLE_FILTERS)
            if fault is None and (is_column := _holds_columns(node, texts)):
                fault = size_fault(node)
            if fault is not None:
                raise ValueError(f"{name} {fault}")
            yield name, _read(h5py.Dataset(node), size) if is_column else None


def _holds_columns(dataset: h5d.DatasetID, texts: bool) -> bool:
    space, kind = dataset.get_space(), dataset.get_type()
    if space.get_simple_extent_type() != h5s.SIMPLE:
        return False
    if isinstance(kind, (h5t.TypeIntegerID, h5t.TypeFloatID)):
        return space.get_simple_extent_ndims() in (1, 2)
    is_text = isinstance(kind, h5t.TypeStringID) or kind == h5t.py_create(bool)
    return texts and space.get_simple_extent_ndims() == 1 and is_text


def _read(dataset: h5py.Dataset, size: int) -> Array:
    """Read the array of a dataset in a file of `size` bytes.

    Texts of any length are stored separately, and any number of entries may refer to one of them.
    They are therefore read a few at a time, and refused once they are longer than the file.
    """
    kind = h5py.check_string_dtype(dataset.dtype)
    if kind is None or kind.length is not None:
        return decoded(dataset[()])
    step, texts, taken = max(1, _TEXT_BYTES // size), [], 0
    for start in range(0, len(dataset), step):
        texts += dataset[start : start + step].tolist()
        taken += sum(map(len, texts[start:]))
        if taken > size:
            raise ValueError(f"{dataset.name[1:]} has texts that are longer than the file")
    return np.array([text.decode("utf-8") for text in texts], dtype=object)
