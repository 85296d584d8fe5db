"""The same fits with two checkouts of the package, compared bit by bit: benchmarks/results/same_bits.md.

    python -m benchmarks same_bits --old-revision 33ed619 --keep FOLDER      # about six minutes
    python -m benchmarks same_bits --old CHECKOUT --new CHECKOUT --cases nuts,hmc

Exits with 1 where anything differs. With --keep, what the old checkout comes to is left in a folder
and used again. Cases are in cases.py, what is made of each in side.py, and what of
texts is compared in facts.py. Needs the libraries of the extras `arviz`, `onnx` and `cluster`.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.lib.common import (
    add_common_options,
    keep,
    machine,
    markdown,
    output_folder,
    revision,
)
from benchmarks.studies.same_bits.facts import facts, one_sided

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[3]
QUICK = "nuts,collapsed,categorical"
# Kinds of arrays that come of files; the new side has them of old files, too.
RESUMED = ("resumed by fit_posterior", "resumed by resume")
OF_FILES = ("model file loaded", "run folder loaded", *RESUMED)
# Kinds that every fit has.
USUAL = (
    "draws",
    "chain weights",
    "statistics",
    "predictions",
    "scores",
    "density",
    "diagnosis",
    "run",
    "report",
    "warnings",
    "model file",
)
# The scripts that make what is compared.
SCRIPTS = ("cases", "seen", "side")
# So many differences of a case are told.
LISTED = 8

INTRODUCTION = """\
# Equal bits from two checkouts

Small fits are made by the package at {old} (old) and at {new} (new), each in a process of its own, one after
the other on one machine. These are compared by dtype, shape and bytes:

- the fit: draws, chain weights, statistics of the sampler, predictions, scores, densities, diagnosis; the
  numbers of the run and its report; the categories and numbers of warnings; the arrays and the JSON of its
  model file; and what else the column names;
- its files: predictions and the rest, from the model file and the run folder after loading, and from a run
  that was stopped and resumed, which must have the bits of the run that was not stopped;
- old files: model files and run folders of the old side, loaded by the new side, and runs that the old side
  began and the new side resumed, compared with the results of the old side itself.

These are not compared:

- words: sentences in reports, warnings and JSON, {words};
- advice: a sentence after "Next:", with its numbers and names of folders;
- times, dates, and the random name of a run;
- the division of draws in run folders into segments, which depends on the clock: all segments of a chain
  group are compared as one;
- checkpoints in folders of finished runs, which contain the states of chains at some time. Draws do not depend
  on when they are written, and the resumed runs have read checkpoints of both sides;
- {entries};
- {kernels}.

Cells have the number of arrays and entries of JSON that are compared. The column draws has the first digits of their SHA-256.
"""


def main(arguments=None):
    """Runs both sides, keeps the table and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--old", type=Path, help="folder of a checkout")
    group.add_argument("--old-revision", help="instead: a revision of this repository")
    parser.add_argument("--new", type=Path, default=ROOT, help="default: this checkout")
    parser.add_argument("--cases", help="names with commas between, to be printed; default: all")
    parser.add_argument("--keep", type=Path, help="folder of what the old checkout comes to")
    parser.add_argument(
        "--without-words",
        action="store_true",
        help="leave out numbers in sentences, of reports too",
    )
    options = parser.parse_args(arguments)
    target = options.output if options.cases else output_folder(options)
    chosen = options.cases or (QUICK if options.quick else None)
    chosen = ["--cases", chosen] if chosen else []
    with checkout(options) as checked_out, tempfile.TemporaryDirectory() as root:
        old, new = options.keep or Path(root) / "old", Path(root) / "new"
        claim(old, checked_out, options.fresh)
        run_side(checked_out, old, *chosen)
        run_side(options.new, new, *chosen, "--files", old.resolve())
        sides = [read_json(folder / "side.json") for folder in (old, new)]
        cases = [name for name in sides[1]["cases"] if name in sides[0]["cases"]]
        with_words = not options.without_words
        compared = {name: compare(old / name, new / name, with_words) for name in cases}
        names = options.old_revision or revision(checked_out), revision(options.new)
    text = report(names, [side["kernels"] for side in sides], compared, with_words)
    if target:
        keep("same_bits.md", text, target)
    else:
        print(text)
    return int(any(case.differences for case in compared.values()))


@contextlib.contextmanager
def checkout(options):
    """Yields the folder of the old checkout, a temporary one where a revision was asked for."""
    if options.old:
        yield options.old
        return
    command = ["git", "-C", ROOT, "archive", options.old_revision, "tfbnn"]
    archive = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        yield Path(folder)


def claim(folder, checked_out, fresh):
    """Makes the folder of a side, or refuses one that other code or another machine filled."""
    label, package = folder / "made_by.json", Path(checked_out) / "tfbnn"
    made_by = {
        "package": digest(path.read_bytes() for path in sorted(package.rglob("*.py"))),
        "cases": digest((HERE / f"{name}.py").read_bytes() for name in SCRIPTS),
        "machine": machine(),
    }
    if label.exists():
        if fresh:
            shutil.rmtree(folder)
        elif read_json(label) != made_by:
            changed = [name for name, value in made_by.items() if read_json(label)[name] != value]
            raise SystemExit(
                f"{folder} holds results of another {', '.join(changed)}. Pass --fresh to forget "
                "them, or another folder."
            )
    folder.mkdir(parents=True, exist_ok=True)
    label.write_text(json.dumps(made_by))


def run_side(checked_out, folder, *arguments):
    """Runs side.py on the package of a checkout; what it complains of is in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    surroundings = {"PYTHONPATH": str(Path(checked_out).resolve()), "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, HERE / "side.py", folder, *arguments]
    log = folder / "stderr.txt"
    with log.open("w") as file:
        done = subprocess.run(command, env=os.environ | surroundings, stderr=file)
    if done.returncode:
        raise SystemExit(f"{log.read_text()[-2000:]}\nThe fits with {checked_out} did not end.")


class Compared(NamedTuple):
    """Result of comparing the two sides of a case.

    Attributes:
        found: Dict name -> array, what the new side has made.
        of_old: The same, what the new side has made of files of the old one.
        differences: Sentences.
        ended: Names of entries of JSON that only the old side has.
        added: Names of those that only the new side has.
    """

    found: dict
    of_old: dict
    differences: list
    ended: list
    added: list


def compare(old, new, with_words=True):
    """A Compared of the folders of a case; without words, numbers in sentences are left out."""
    paths = old / "found.npz", new / "found.npz", new / "of_others.npz"
    raw = [load(path) for path in paths]
    failures = [str(side["failure"]).splitlines()[-1] for side in raw if "failure" in side]
    expected, found, of_old = (facts(side, with_words) for side in raw)
    own = {name: array for name, array in expected.items() if name.startswith(OF_FILES)}
    resumed = {name: array for name, array in found.items() if name.startswith(RESUMED)}
    whole = {name: found.get(name.split("/", 1)[1]) for name in resumed}
    differences, ended, added = [], [], []
    for what, a, b in (("", expected, found), ("old ", own, of_old)):
        (names, gone), (other_names, come) = one_sided(a, b), one_sided(b, a)
        ended += names
        added += other_names
        differences += differing(what, a, b, gone | come)
    differences += differing("new ", whole, resumed)
    return Compared(found, of_old, failures + differences, ended, added)


def differing(what, a, b, ignored=()):
    """One sentence for each name at which two dicts name -> array differ."""
    return [
        f"{what}{name}: {how}"
        for name in a | b
        if name not in ignored and (how := difference(a.get(name), b.get(name)))
    ]


def difference(old, new):
    """Describe how two arrays differ, in words; return None for the same bits."""
    if old is None or new is None:
        return f"only in the {'new' if old is None else 'old'}"
    if np.ndim(new) == 0 and new.dtype.kind == "U":
        return None if old == new else text_difference(str(old), str(new))
    if (old.dtype, old.shape) != (new.dtype, new.shape):
        return f"{old.dtype}{list(old.shape)} became {new.dtype}{list(new.shape)}"
    if old.tobytes() == new.tobytes():
        return None
    if old.dtype.kind not in "fiu":
        return "other bytes"
    apart = np.abs(old.astype(float) - new)
    return f"{np.count_nonzero(apart)} of {apart.size} differ, by at most {np.nanmax(apart):.3g}"


def text_difference(old, new):
    """The first line in which two texts differ."""
    lines = zip(old.splitlines() + [""], new.splitlines() + [""])
    pair = next(((a, b) for a, b in lines if a != b), ("", "other length"))
    return f"{pair[0].strip()[-200:]!r} became {pair[1].strip()[-200:]!r}"


def report(names, kernels, compared, with_words=True):
    """The page that is kept, of pairs (old, new) of revisions and kernels, and of dict case -> Compared."""
    words = "except for their numbers and the verdict"
    if not with_words:
        words = "except for the verdict; numbers in sentences are not compared, entries of JSON are"
    lines, listed = [], []
    for name, (found, of_old, differences, *_) in compared.items():
        kinds = Counter(re.split("/| entry ", key)[0] for key in found)
        files = sum(kinds.pop(kind, 0) for kind in OF_FILES)
        fit = ", ".join([str(kinds.total()), *(kind for kind in kinds if kind not in USUAL)])
        draws = digest([found["draws"].tobytes()])[:12] if "draws" in found else "none"
        equal = f"**NO**, {len(differences)} differences" if differences else "yes"
        lines.append([name, fit, files, len(of_old), draws, equal])
        listed += [f"- {name}: {text}" for text in differences[:LISTED]]
        if len(differences) > LISTED:
            listed.append(f"- {name}: and {len(differences) - LISTED} more")
    equal = sum(not case.differences for case in compared.values())
    header = ["case", "the fit", "its files", "old files", "draws", "equal"]
    total = f"{equal} of {len(compared)} cases are equal in every bit."
    left_out = {
        "entries": one_side_only(
            "entries of JSON",
            {entry(name) for case in compared.values() for name in case.ended},
            {entry(name) for case in compared.values() for name in case.added},
        ),
        "kernels": one_side_only("kernels", *map(set, kernels)),
    }
    introduction = INTRODUCTION.format(old=names[0], new=names[1], words=words, **left_out)
    parts = [f"{introduction}\n{total}", markdown(header, lines)]
    return "\n\n".join(parts + ["\n".join(listed)] * bool(listed))


def entry(name):
    """The name of an entry of JSON without the files that it is in."""
    text, path = name.split(" entry ")
    return f"{text.split('/')[-1]}/{path}"


def one_side_only(what, old, new):
    """A line on what only one side has."""
    pairs = (("old", sorted(old - new)), ("new", sorted(new - old)))
    parts = [f"of the {side}, {', '.join(names)}" for side, names in pairs if names]
    return f"{what} that only one side has: {'; '.join(parts) or 'none'}"


def digest(parts):
    """SHA-256 of bytes one after the other."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()


def load(path):
    """The arrays that side.py wrote, dict name -> array."""
    with np.load(path) as file:
        return dict(file)


def read_json(path):
    """The content of a JSON file."""
    return json.loads(path.read_text())


if __name__ == "__main__":
    sys.exit(main())
