"""Leaves out of a C++ library's log what is no news. Run as a program, from standard input to error.

It has a process of its own, so that what a library says before it ends the process, say on a
processor that it was not built for, still comes out.
"""

import re
import signal
import sys

# The lines of glog and Abseil: severity, date, time, thread, place, text.
_NO_NEWS = re.compile(rb"[IW]\d{4} [\d:.]+ +\d+ [\w./-]+:\d+\] ")
# What Abseil writes before the first of them, and what TensorFlow calls an error where no driver
# of NVIDIA's is installed (303: libcuda.so.1 cannot be loaded), as on most machines without a GPU.
_COMMON = (
    re.compile(rb"WARNING: All log messages before absl::InitializeLog\(\) is called"),
    re.compile(rb"E\d{4} .*cuda_platform\.cc:\d+\] failed call to cuInit: .*\(303\)\s*$"),
)


def is_news(line: bytes) -> bool:
    """Whether a line of the log is to be shown: errors are, and all that has not the log's form."""
    return not (_NO_NEWS.match(line) or any(pattern.match(line) for pattern in _COMMON))


def main() -> None:
    """Hands on what is news, line by line, until the end of standard input."""
    # Ctrl-C reaches all processes of a terminal; this one ends with the one it works for.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        if is_news(line):
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()


if __name__ == "__main__":
    main()
