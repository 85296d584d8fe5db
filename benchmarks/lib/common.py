"""Helpers that the benchmark scripts share: for folders of data, facts of the machine, and tables of results."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).parents[1]
RESULTS = HERE / "results"


def add_common_options(parser):
    """Options of a script that keeps its rows: --quick, --fresh, --output."""
    parser.add_argument("--quick", action="store_true", help="a small part, to try the script")
    parser.add_argument("--fresh", action="store_true", help="forget all rows of earlier runs")
    parser.add_argument("--output", type=Path, help="folder of results, needed with --quick")


def output_folder(options):
    """Return the folder of the results; those of a quick run never go among the committed ones."""
    if options.quick and options.output is None:
        raise SystemExit("--quick needs --output FOLDER: its results are not to be kept.")
    return options.output or RESULTS


def data_folder():
    """The folder of real data, named by the environment variable TFBNN_DATA."""
    folder = os.environ.get("TFBNN_DATA")
    if not folder or not Path(folder).is_dir():
        raise SystemExit("Set TFBNN_DATA to the folder with the real data, then run this again.")
    return Path(folder)


def revision(folder=HERE.parent):
    """Return git's name of a checkout, by default this one; tables that were just written do not matter.

    A new file of the package is a change; one beside the scripts is most often somebody's scratch.
    """

    def git(*arguments):
        command = ["git", "-C", folder, *arguments]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    status = ("status", "--porcelain")
    changed = git(*status, "--", "tfbnn") or git(
        *status, "--untracked-files=no", "--", "benchmarks/*.py"
    )
    name = git("describe", "--always") or "a folder without git"
    return f"{name} with changes" if changed else name


def machine():
    """One line on processor, GPU, cores, versions and commit, to go with every table."""
    devices = processor_name()
    if "tensorflow" in sys.modules and (gpu := gpu_name()):
        devices = f"{gpu}, {devices}"
    names = (
        "tfbnn",
        "tensorflow",
        "tensorflow-probability",
        "numpy",
        "keras",
        "jax",
        "blackjax",
        "numpyro",
    )
    versions = [f"{name} {_version(name)}" for name in names if _version(name)]
    python = platform.python_version()
    return f"{devices}, Python {python}, {', '.join(versions)}, at {revision()}"


def processor_name():
    """Return the maker's name of the processor, and the number of cores that this process may use."""
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{processor}, {cores} cores"


def gpu_name(number=0):
    """Return the maker's name of a GPU, or None if TensorFlow sees none with that number."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")[number : number + 1]
    return tf.config.experimental.get_device_details(gpus[0])["device_name"] if gpus else None


def in_turns(functions, repeats):
    """Call functions in turns, so that a machine that drifts favours none of them.

    Args:
        functions: Dict name -> function without arguments, called once before to warm up.
        repeats: Turns.

    Returns:
        Dict name -> list of what each turn returned.
    """
    found = {name: [] for name in functions}
    for turn in range(repeats + 1):
        for name, function in functions.items():
            value = function()
            if turn:
                found[name].append(value)
    return found


def markdown(header, rows):
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def commits_of(rows, key="commit"):
    """Return the commits that made rows, as a text."""
    return ", ".join(sorted({row[key] for row in rows}))


def keep(name, text, folder=RESULTS):
    """Prints a result and keeps it, with the machine, by default under benchmarks/results."""
    folder.mkdir(exist_ok=True)
    print(text, flush=True)
    (folder / name).write_text(f"{text}\n\n{machine()}\n")


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None
