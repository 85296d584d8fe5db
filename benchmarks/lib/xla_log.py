"""Read from TensorFlow's own log what XLA compiled in a child process, and how long it took.

No count of the package's: what a fit compiles without saying so is in it too.
"""

import re

# TensorFlow then says on standard error what it has compiled.
LOGGING = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "device_compilation_profiler=1"}

# What a child may write on standard error before each of its parts.
NEXT_PART = "next part"

_LINE = re.compile(r"Compiled __inference_(\w+?)_\d+\S* \d+ times, compile time: (\d+) us")


def compilations(text):
    """List of (function, seconds) in what a process with LOGGING wrote on standard error."""
    return [(name, 1e-6 * int(microseconds)) for name, microseconds in _LINE.findall(text)]
