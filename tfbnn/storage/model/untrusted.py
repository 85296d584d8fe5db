"""Reader of untrusted model files, which are parsed by the HDF5 library in a child process only.

A crafted file can exploit a fault of the HDF5 library itself, which no check in Python prevents. So
a child process parses the file. It has limits on memory and time and cannot open other files. It
answers in plain bytes, which the parent checks again. If the child dies, the file is refused.
"""

import contextlib
import math
import os
import subprocess
import sys
import tempfile
import threading
from io import BufferedReader
from typing import IO, Any, cast

import numpy as np

from tfbnn.exceptions import ModelFileError
from tfbnn.storage.format import schema
from tfbnn.storage.format.schema import parse_json
from tfbnn.storage.model.untrusted_child import READY, SIZE_BYTES
from tfbnn.system.arrays import Array
from tfbnn.system.processes import describe_ending, search_path

_START_SECONDS, _SECONDS_PER_BYTE = 60, 1e-7
_MAX_HEADER_BYTES, _MAX_MESSAGE = 64 * 2**10, 1000
# Search paths of libraries. The child gets no other environment variable of this process.
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PATH", "SYSTEMROOT")


def read_foreign(file: IO[bytes], max_bytes: int) -> dict[str, Array]:
    """Read the arrays of a model file in a child process.

    Args:
        file: Open binary file with a file descriptor, whose seal has been checked.
        max_bytes: Maximum size of all arrays together.

    Returns:
        Dict name -> array for every dataset of the file.

    Raises:
        ModelFileError: When the child refuses the file, crashes, or takes too long.
        ChildProcessError: When the child process cannot be started.
    """
    file_size = os.fstat(file.fileno()).st_size
    args = [sys.executable, "-P", "-S", "-m", "tfbnn.storage.model.untrusted_child", str(max_bytes)]
    with contextlib.ExitStack() as stack:
        try:
            complaints = stack.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen(
                args, stdin=file, stdout=subprocess.PIPE, stderr=complaints, env=_environment()
            )
        except OSError as error:
            raise _not_started(error) from error
        stream = cast(BufferedReader, process.stdout)
        timer = threading.Timer(_START_SECONDS + _SECONDS_PER_BYTE * file_size, process.kill)
        try:
            timer.start()
            if stream.read(len(READY)) != READY:
                process.wait()
                complaints.seek(0)
                lines = complaints.read(10**5).decode(errors="replace").strip().splitlines()
                raise _not_started(lines[-1] if lines else "no message")
            arrays = _receive(stream, max_bytes)
            stream.close()  # ends a child that sends more
            code = process.wait()
            if arrays is None or code:
                raise ModelFileError(
                    f"the file made the process that reads foreign files fail ({describe_ending(code)})."
                )
            return arrays
        finally:
            timer.cancel()
            if timer.ident is not None:
                timer.join()
            process.kill()
            stream.close()
            process.wait()


def _environment() -> dict[str, str]:
    """Return environment variables with which the child finds the packages of this process."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return kept | {
        "PYTHONPATH": search_path(),
        "HDF5_PLUGIN_PRELOAD": "::",  # no filters from libraries
        "OPENBLAS_NUM_THREADS": "1",  # each thread would reserve memory under the limit
        "OMP_NUM_THREADS": "1",
    }


def _receive(stream: BufferedReader, max_bytes: int) -> dict[str, Array] | None:
    """Receive the arrays from the child; return None if it sends too little or too much.

    No part of the answer is trusted.
    """
    size = int.from_bytes(stream.read(SIZE_BYTES), "little")
    if not 0 < size <= _MAX_HEADER_BYTES:
        return None
    text = stream.read(size)
    if len(text) < size:
        return None
    header = parse_json(text)
    if isinstance(header, str):
        raise ModelFileError("".join(c if c.isprintable() else "?" for c in header[:_MAX_MESSAGE]))
    arrays = {}
    for name, (dtype, shape) in _described_arrays(header, max_bytes).items():
        arrays[name] = np.empty(shape, dtype)
        view = arrays[name].reshape(-1).view(np.uint8).data
        if stream.readinto(view) < len(view):
            return None
    return None if stream.read(1) else arrays


def _described_arrays(header: Any, max_bytes: int) -> dict[str, tuple[str, list[int]]]:
    """Check the header sent by the child; return a dict name -> (dtype, shape).

    Names and dtypes must be those of the schema, and the total size at most `max_bytes`.
    """
    known = schema.DATASETS | schema.OPTIONAL_DATASETS
    described: dict[str, tuple[str, list[int]]] = header if isinstance(header, dict) else {}
    names = list(described)
    if names != [name for name in known if name in names or name in schema.DATASETS]:
        raise ModelFileError("the process that reads foreign files must send the known datasets.")
    total = 0
    for name, (dtype, shape) in described.items():
        sizes_are_sound = all(type(size) is int and 0 < size <= max_bytes for size in shape)
        if dtype not in known[name][0] or not sizes_are_sound:
            raise ModelFileError(f"{name} must have a known dtype and shape, found {dtype!r:.20}.")
        total += math.prod(shape) * np.dtype(dtype).itemsize
    if total > max_bytes:
        raise ModelFileError(f"its arrays must take at most {max_bytes} bytes, found {total}.")
    return described


def _not_started(why: object) -> ChildProcessError:
    return ChildProcessError(
        f"The process that reads foreign model files did not start ({why}). Pass untrusted=False for a file "
        "of your own."
    )
