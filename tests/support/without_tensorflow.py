"""Programs in an interpreter that cannot import TensorFlow."""

import json
import subprocess
import sys

BLOCK = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "tensorflow_probability", "keras", "tf_keras"):
            raise ImportError(f"{name} is blocked by this test")

sys.meta_path.insert(0, Block())
"""


def run_without_tensorflow(code, *arguments):
    """Runs code in a fresh interpreter that cannot import TensorFlow; its last line is JSON."""
    done = _run(code, arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def command_without_tensorflow(folder, *arguments):
    """The finished process of `tfbnn` with these arguments, in a folder."""
    return _run("from tfbnn.cli import main; sys.exit(main(sys.argv[1:]))", arguments, folder)


def _run(code, arguments, folder=None):
    return subprocess.run(
        [sys.executable, "-c", BLOCK + code, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
