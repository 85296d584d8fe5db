"""Runs a study of this folder, or lists them: what each asks, the data it needs, the minutes it takes.

python -m benchmarks --list
python -m benchmarks NAME [options of the study, such as --quick --output FOLDER]
"""

import argparse
import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent


def main(arguments=None):
    """Runs a study with the options that follow its name, or prints the list."""
    studies = tomllib.loads((HERE / "studies.toml").read_text())
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="list all studies")
    parser.add_argument("name", nargs="?", choices=studies, metavar="NAME", help="a study")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="options of the study")
    given = parser.parse_args(arguments)
    if given.list or given.name is None:
        print_list(studies)
        return 0
    study = studies[given.name]
    if missing := missing_tables(study):
        parser.error(
            f"{given.name} needs {' and '.join(missing)}: benchmarks/data.md says whence, and "
            "TFBNN_DATA names their folder."
        )
    script = script_of(given.name, study).relative_to(HERE.parent).with_suffix("")
    command = [sys.executable, "-m", ".".join(script.parts), *given.options]
    # Studies import each other by whole names, and the package of this checkout.
    paths = filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(command, env=environment).returncode


def print_list(studies):
    """A line a study, those that can run now first."""
    rows = [
        (
            name,
            f"{study['minutes']} min" if "minutes" in study else "not timed",
            ", ".join(study.get("data", ())) or "none",
            question(script_of(name, study)),
            missing_tables(study),
        )
        for name, study in studies.items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for heading, chosen in (
        (
            "Studies that can run here: time of all of it, data, question",
            [r for r in rows if not r[-1]],
        ),
        ("Studies whose data are not at hand (benchmarks/data.md)", [r for r in rows if r[-1]]),
    ):
        if chosen:
            print(f"{heading}\n")
        for *cells, asked, _ in chosen:
            padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths))
            print(f"{padded}  {asked}")
        if chosen:
            print()


def script_of(name, study):
    """The file of a study."""
    return HERE / study.get("script", f"studies/{name}/run.py")


def question(script):
    """The first line of a script's docstring."""
    return ast.get_docstring(ast.parse(script.read_text())).splitlines()[0]


def missing_tables(study):
    """The tables that a study needs and that are not below TFBNN_DATA."""
    folder = Path(os.environ.get("TFBNN_DATA") or HERE / "no folder")
    return [name for name in study.get("data", ()) if not any((folder / name).glob("*"))]


if __name__ == "__main__":
    sys.exit(main())
