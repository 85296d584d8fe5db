"""Programs in an interpreter that has no more than the light install: NumPy and h5py."""

import json
import subprocess
import sys

_BLOCK = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in {absent} or not ({others} or top in {present} or top in sys.stdlib_module_names):
            raise ModuleNotFoundError(f"No module named {{name!r}}: blocked by this test", name=name)

sys.meta_path.insert(0, Block())
"""
_ABSENT = ("tensorflow", "tensorflow_probability", "keras", "tf_keras")
_PRESENT = ("tfbnn", "tests", "numpy", "h5py")


def run_without_tensorflow(code, *arguments, others=False):
    """Runs code in a fresh interpreter that can import NumPy and h5py; its last line is JSON.

    Args:
        code: Python.
        *arguments: Of the program, `sys.argv[1:]`.
        others: Whether it can import all that is installed but TensorFlow.
    """
    done = _run(code, arguments, others=others)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def command_without_tensorflow(folder, *arguments):
    """The finished process of `tfbnn` with these arguments, in a folder, with NumPy and h5py."""
    return _run("from tfbnn.cli import main; sys.exit(main(sys.argv[1:]))", arguments, folder)


_COMMANDS = """
import contextlib, io, json
from tfbnn.cli import main

found = []
for command in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(command.split())
        except SystemExit as end:
            code = end.code
    found.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


def commands_without_tensorflow(folder, commands):
    """[(exit code, standard output, standard error)] of commands, one after the other."""
    done = _run(_COMMANDS, commands, folder)
    assert done.returncode == 0, done.stderr
    return list(map(tuple, json.loads(done.stdout.splitlines()[-1])))


def _run(code, arguments, folder=None, others=False):
    block = _BLOCK.format(absent=_ABSENT, present=_PRESENT, others=others)
    return subprocess.run(
        [sys.executable, "-c", block + code, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
