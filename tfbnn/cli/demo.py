"""Fit a small network to generated cross sections, and show what to do with it.

The demo prints the report, tests the network, saves and loads it, predicts one point and draws figures. It
takes a minute or two on two cores.
"""

import argparse
import dataclasses
import os
import shlex
import textwrap
import time
from typing import Annotated

import numpy as np

from tfbnn.cli.console import DONE
from tfbnn.cli.outputs import FOLDER, MODEL, check_output
from tfbnn.data.tables import table_writer
from tfbnn.datasets import Dataset, neutralino_pairs
from tfbnn.fit.loading import load
from tfbnn.posterior.sampled_model import SampledModel

# As large as the statistical error of a very short Monte Carlo run.
_SMEARING = 0.2
NUM_ROWS = 2000
# Options of the fit. Without any, a fit compares networks first, and takes two minutes on this table.
GIVEN = ("--layers", "50", "--num-burnin-steps", "300", "--num-results", "200")


class Options:
    """Options of the command.

    Attributes:
        output: Folder for the files of the demo, default: tfbnn-demo.
    """

    output: Annotated[str, {"flags": ("-o",), "metavar": "FOLDER"}] = "tfbnn-demo"


def run(args: argparse.Namespace) -> int:
    """Run all steps of the demo."""
    began = time.perf_counter()
    names = "demo.h5", "train.csv", "test.csv", "report.html"
    path, train, test, page = (os.path.join(args.output, name) for name in names)
    check_output(args.output, FOLDER)
    _refuse_others(args.output, path)
    os.makedirs(args.output, exist_ok=True)
    exact = neutralino_pairs(NUM_ROWS)
    data = smear(exact)
    _show_data(data, train, test)
    code = _fit(train, data.target_name, path)
    if code != DONE:
        return code
    model = load(path)
    _heading("3. The test, on rows the network has not seen")
    _command("evaluate", path, test)
    _heading("4. One prediction")
    _show_prediction(model, data, exact)
    _heading("5. Figures")
    _command("plot", path, test, "-o", args.output)
    _heading(f"Done in {time.perf_counter() - began:.0f} s. What next?")
    path, train, test, page = map(shlex.quote, (path, train, test, page))
    print(f"tfbnn info {path}")
    print(f"tfbnn predict {path} {test} --quantiles 0.16,0.84")
    print(f"tfbnn report {path} {test} -o {page}")
    print(f"tfbnn fit {train} --target {data.target_name} -o mine.h5    # compares networks first")
    return DONE


def _refuse_others(folder: str, model: str) -> None:
    """Refuse a folder with other files, which may have the names of the demo's files."""
    if os.path.isdir(folder) and os.listdir(folder):
        if not os.path.isfile(model):
            raise ValueError(
                f"-o {folder} holds other files, expected a new or empty folder or that of a "
                "finished demo. Choose another."
            )
        check_output(model, MODEL)


def smear(exact: Dataset) -> Dataset:
    """Return the table with the errors of a short Monte Carlo run; deterministic."""
    generator = np.random.default_rng(0)
    factors = np.exp(_SMEARING * generator.standard_normal(len(exact)))
    return dataclasses.replace(exact, y=exact.y * factors)


def _show_data(data: Dataset, train: str, test: str) -> None:
    _heading("1. The data")
    _paragraph(
        f"{len(data)} supersymmetric models: the lightest neutralino's signed mass in GeV, its mixings N11 .. "
        "N14, and as target the leading-order cross section of p p -> chi10 chi10 at 13 TeV, from "
        f"{data.y.min():.2g} to {data.y.max():.3g} fb, each smeared by {100 * _SMEARING:.0f} %."
    )
    for path, (x, y) in ((train, data.train), (test, data.test)):
        columns = (*data.feature_names, data.target_name)
        with table_writer(path, columns) as write:
            write(np.column_stack([x, y]))
        print(f"{path}: {len(x)} rows")


def _fit(train: str, target: str, path: str) -> int:
    """Fit with only the layers and the lengths of the chains given; return the exit code."""
    _heading("2. The network, sampled (the long part)")
    _paragraph(
        "Each sampled network fits as well as the noise allows; where they differ, the prediction is "
        "uncertain. Only the layers and the length of the chains are set by hand; the report says what was "
        "chosen, and why."
    )
    code = _command("fit", train, "--target", target, *GIVEN, "-o", path)
    _paragraph(
        "R-hat compares the chains: 1 is perfect. ESS is the number of independent draws that the correlated "
        "ones are worth. Lines with ! say what falls short, and what to do next."
    )
    return code


def _command(*words: str) -> int:
    """Show a command and run it; return the exit code."""
    from tfbnn.cli.app import run_command  # avoids a circular import

    print(f"$ {shlex.join(['tfbnn', *words])}", flush=True)
    code = run_command(words)
    print()
    return code


def _show_prediction(model: SampledModel, data: Dataset, exact: Dataset) -> None:
    x, y = data.test[0][:1], exact.test[1][0]
    mean, stddev = (values.item() for values in model.predict(x))
    print(", ".join(f"{name} = {v:.4g}" for name, v in zip(data.feature_names, x[0])))
    print(f"predicted  {mean:.4g} +- {stddev:.2g} fb")
    print(f"exact      {y:.4g} fb, off by {(y - mean) / stddev:+.1f} error bars")


def _heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def _paragraph(text: str) -> None:
    print(textwrap.fill(text, width=88), flush=True)
