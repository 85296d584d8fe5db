"""Child process that reads an untrusted model file.

It is started as `python -m tfbnn.storage.model.untrusted_child MAX_BYTES`, with the file as
standard input. It writes to standard output: `READY`, the size of a JSON text (`SIZE_BYTES` bytes,
little-endian), and this text. The text is either the reason why the file is refused, or an object
{name: [dtype, shape]}, which is followed by the bytes of these arrays.
"""

import codecs
import contextlib
import json
import os
import sys
from typing import Any, BinaryIO

READY = b"ready\n"
SIZE_BYTES = 8

# Base: interpreter, libraries, and HDF5 with its buffers. Per byte of the file: arrays and checks.
_BASE_MEMORY, _MEMORY_PER_FILE_BYTE = 2**30, 4
_BASE_SECONDS, _SECONDS_PER_FILE_BYTE = 20, 1e-7


def main() -> None:
    """Read the file from standard input and send its arrays to standard output."""
    from tfbnn.exceptions import ModelFileError
    from tfbnn.storage.format.allow_list import opened_datasets
    from tfbnn.storage.model.contents import from_arrays, to_arrays

    codecs.lookup("ascii")  # used by h5py; Python would otherwise open its file on first use
    file, stream = sys.stdin.buffer, sys.stdout.buffer
    _limit_resources(os.fstat(file.fileno()).st_size)
    stream.write(READY)
    stream.flush()
    try:
        with opened_datasets(file, int(sys.argv[1])) as (version, datasets):
            arrays = to_arrays(from_arrays(datasets, version))
    except ModelFileError as error:
        _send(stream, str(error))
    except Exception as error:
        _send(stream, f"expected a sound file, found {type(error).__name__}: {error}")
    else:
        _send(stream, {name: [array.dtype.str, array.shape] for name, array in arrays.items()})
        for array in arrays.values():
            stream.write(array.reshape(-1).view("u1").data)


def _send(stream: BinaryIO, value: Any) -> None:
    text = json.dumps(value).encode()
    stream.write(len(text).to_bytes(SIZE_BYTES, "little") + text)


def _limit_resources(file_size: int) -> None:
    """Limit memory and CPU time, and forbid this process to open files or start processes."""
    try:
        import resource
    except ImportError:
        return  # Windows has no such limits
    limits = {
        "RLIMIT_AS": _BASE_MEMORY + _MEMORY_PER_FILE_BYTE * file_size,
        "RLIMIT_CPU": _BASE_SECONDS + int(_SECONDS_PER_FILE_BYTE * file_size),
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NOFILE": 0,  # neither files nor sockets
        "RLIMIT_NPROC": 0,
    }
    for name, value in limits.items():
        # Not every system has, or honours, every limit.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            resource.setrlimit(getattr(resource, name), (value, value))


if __name__ == "__main__":
    main()
