"""Makes the folder that TFBNN_DATA names out of checkouts of public repositories, and checks what it has.

    python -m benchmarks.data CHECKOUTS --to FOLDER    convert the repositories that are below CHECKOUTS
    python -m benchmarks.data --check FOLDER           compare the tables in a folder with those that results are of

data.toml says which files of which repository make a table, under which licence, and the SHA-256 sum of the table as
the results of this folder had it; data.md says so in words.
"""

import argparse
import hashlib
import shutil
import sys
import tomllib
from pathlib import Path

TABLES = tomllib.loads((Path(__file__).parent / "data.toml").read_text())


def main(arguments=None):
    """Converts, or checks; the exit status is 1 where a table is not as it was."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.data", description=__doc__.splitlines()[0]
    )
    parser.add_argument("checkouts", nargs="?", type=Path, help="folder of the repositories")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="folder to make")
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="folder to compare")
    given = parser.parse_args(arguments)
    if (given.check is None) == (given.to is None) or (given.to is None) != (
        given.checkouts is None
    ):
        parser.error("give CHECKOUTS and --to FOLDER, or --check FOLDER.")
    folder = given.check or given.to
    if given.to is not None:
        for name, table in TABLES.items():
            print(f"{name}: {convert(table, given.checkouts, folder)}")
    states = {name: state(table, folder) for name, table in TABLES.items()}
    for name, found in states.items():
        print(f"{name}: {found}")
    return int(DIFFERENT in states.values())


def convert(table, checkouts, folder):
    """Copies the files of a table from a checkout; what it did, in words."""
    source = checkouts / table["repository"].rsplit("/", 1)[-1]
    if "files" not in table:
        return f"nothing converts it, see data.md; it comes from {table['repository']}"
    if not source.is_dir():
        return f"{source} is not there; clone {table['repository']}"
    count = 0
    for target, pattern in table["files"].items():
        found = sorted(source.glob(pattern))
        if not found:
            return f"{source} has no {pattern}; check out {table['commit']}"
        for file in found:
            # A target that ends in a slash is a folder, for all files of the pattern.
            path = folder / target / (file.name if target.endswith("/") else "")
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, path)
        count += len(found)
    return f"{count} files from {source}"


SAME, DIFFERENT, ABSENT = "as in the results", "not as in the results", "not there"


def state(table, folder):
    """Return whether the table below a folder is the one that results are of, in words."""
    found = sorted(file for pattern in table["sum_of"] for file in folder.glob(pattern))
    if not found:
        return ABSENT
    total = hashlib.sha256()
    for file in found:
        total.update(file.name.encode() + b"\0" + file.read_bytes())
    return SAME if total.hexdigest() == table["sha256"] else DIFFERENT


if __name__ == "__main__":
    sys.exit(main())
