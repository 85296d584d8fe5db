"""Networks that `tfbnn slha make` fits: one `tfbnn fit` per process, which can be gone on with.

    FOLDER.fits/1000022_1000023-1f0c9a63b7d2e485.h5        a finished fit
    FOLDER.fits/1000022_1000023-1f0c9a63b7d2e485.h5.run    one that was stopped

The second half of a name stands for the rows, columns and options of the fit, and for the content of
the files that these options name, so that a model is never taken for that of other rows.
"""

import argparse
import contextlib
import hashlib
import json
import os
import shlex
from typing import NoReturn

from tfbnn.cli import fit, resuming
from tfbnn.cli.console import DIAGNOSTICS_FAILED, DONE, FAILED, say
from tfbnn.cli.diagnose import verdict
from tfbnn.cli.parsing import Parser, parse_options
from tfbnn.data.tables import read_table
from tfbnn.fit.model import load
from tfbnn.hep.description import ProcessPlan
from tfbnn.spec.likelihoods import OPTIONS
from tfbnn.storage import RunFolder

# Of 'tfbnn fit': what the description or this command says.
_TAKEN = ("-o", "--target", "--features", "--output", "--resume", "--json", "--help", "-h")


class _FitParser(Parser):
    """The options of a fit as a description has them."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"fit: {message} See tfbnn fit --help.")


class Fit:
    """The fit of one process.

    Args:
        plan: ProcessPlan with a table.
        folder: Of the process folder that is made.
        strict: Whether the fit is to end with 3 where its model is not usable for error bars.

    Attributes:
        path: Of the fitted model.

    Raises:
        FileNotFoundError: When there is no such table.
        ValueError: For options that no fit has, and tables without the columns.
    """

    def __init__(self, plan: ProcessPlan, folder: str, strict: bool):
        self._folder = fits_folder(folder)
        self._args = _arguments(plan, strict)
        name = "{}_{}".format(*plan.pids)
        self.path = os.path.join(self._folder, f"{name}-{_fingerprint(plan, self._args)}.h5")
        self._args.model_file = self.path
        self._run_folder = f"{self.path}.run"

    def run(self) -> int:
        """Fits, goes on with a fit that was stopped, or finds it done; returns the exit code."""
        is_stopped = RunFolder.around(self._run_folder) is not None
        if os.path.exists(self.path) and not is_stopped:
            say(f"{self.path} is there already: the same rows, columns and options.")
            return self._verdict()
        os.makedirs(self._folder, exist_ok=True)
        code = FAILED
        try:
            code = self._resume() if is_stopped else fit.run(self._args)
        finally:
            if code not in (DONE, DIAGNOSTICS_FAILED) and not RunFolder.around(self._run_folder):
                self.remove()  # the draws that it had when it ended, which look like all of them
        return code

    def _verdict(self) -> int:
        """What a fit that is over would end with: a model says so, whoever asked when it was made."""
        if not self._args.strict:
            return DONE
        diagnosis = load(self.path).diagnose()
        say(f"Verdict on it: {diagnosis.headline}.")
        return verdict(diagnosis, strict=True)

    def _resume(self) -> int:
        parser = _FitParser(prog="tfbnn resume")
        resuming.add_options(parser)
        options = [self._run_folder, "-o", self.path, *(["--strict"] if self._args.strict else [])]
        return resuming.run(parse_options(parser, options))

    def remove(self) -> None:
        """Removes the model."""
        with contextlib.suppress(OSError):
            os.unlink(self.path)
            os.rmdir(self._folder)


def fits_folder(folder: str) -> str:
    """Where models are until all of them are fitted."""
    return f"{folder.rstrip('/')}.fits"


def _arguments(plan: ProcessPlan, strict: bool) -> argparse.Namespace:
    """The arguments of 'tfbnn fit' for a process but -o, its table looked at."""
    words = shlex.split(plan.fit)
    for word in words:
        if word.partition("=")[0] in _TAKEN:
            raise ValueError(
                f"fit: {word} is not for a description, which has table, target and inputs. Leave it out."
            )
    parser = _FitParser(prog="tfbnn fit")
    fit.add_options(parser)
    more = ["--strict"] if strict else []
    args = parse_options(parser, [str(plan.table), f"--target={plan.target}", *words, *more])
    _check_process(plan, args)
    args.features = list(plan.inputs)  # names may hold commas
    for name, path in _files(args).items():
        setattr(args, name, _existing(os.path.join(plan.folder, path)))
    for table in filter(None, [args.data, args.validation]):
        read_table(table, [*args.features, *args.target, *args.noise_column])
    return args


def _check_process(plan: ProcessPlan, args: argparse.Namespace) -> None:
    """Refuses a fit whose model `tfbnn.hep.Process` would refuse when it is done."""
    if OPTIONS[args.likelihood].has_classes:
        raise ValueError(
            f"fit: --likelihood {args.likelihood} is for class labels, and a cross section is a "
            "number. Choose another, or leave it out."
        )
    if args.categories:
        raise ValueError(
            f"fit: --categories {','.join(args.categories)} is not for a process, which takes "
            "numbers out of SLHA files. Leave it out."
        )
    if args.noise_column and plan.settings["include_noise"]:
        raise ValueError(
            f"fit: --noise-column {','.join(args.noise_column)} is known of the rows, not of new "
            "points. Add include_noise = false: errors are then of the function alone."
        )


def _existing(path: str) -> str:
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"fit: no file {path}; paths in a description are relative to where it lies."
        )
    return path


def _files(args: argparse.Namespace) -> dict[str, str]:
    """The files that options of a fit name: dict name of the argument -> path."""
    named = {name: getattr(args, name, None) for name in ("validation", "initial_state")}
    return {name: path for name, path in named.items() if path is not None and not _is_number(path)}


def _is_number(text: str) -> bool:
    """Whether --initial-state takes a text for a number, not for a file."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _fingerprint(plan: ProcessPlan, args: argparse.Namespace) -> str:
    """16 digits that stand for the rows, columns, options and other files of a fit."""
    rows, *others = (_digest(path) for path in [args.data, *_files(args).values()])
    parts = [rows, plan.target, list(plan.inputs), shlex.split(plan.fit), *others]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
