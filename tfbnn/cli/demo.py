"""Fit a small network to cross sections that are computed on the spot, and show what comes after.

That is report, test, saved model, one prediction, figures. Takes some minutes on two cores.
"""

import argparse
import dataclasses
import os
import shlex
import textwrap
import time
import warnings
from typing import Any

import numpy as np

from tfbnn.cli.columns import fit_columns, one_as_vector
from tfbnn.cli.console import DONE, import_tensorflow
from tfbnn.cli.evaluate import scores_text
from tfbnn.cli.fit_options import DEFAULT_LAYERS
from tfbnn.cli.outputs import FOLDER, MODEL, check_output
from tfbnn.cli.plot import save_figures
from tfbnn.data.csv_tables import write_csv
from tfbnn.data.tables import read_table
from tfbnn.datasets import Dataset, neutralino_pairs
from tfbnn.diagnostics.problem import Interface
from tfbnn.exceptions import ConvergenceWarning
from tfbnn.fit.model import BayesianMLP, load

# As large as the statistical error of a very short Monte Carlo run.
_SMEARING = 0.2


@dataclasses.dataclass(frozen=True)
class Size:
    """How much the demo computes; tests make it small.

    Attributes:
        num_rows: Of the table.
        num_burnin_steps, num_results: Of each chain. A default fit would go on for the whole of its
            budget: on this table chains do not mix within minutes, and the scores are there before.
        options: Further arguments of the fit.
    """

    num_rows: int = 2000
    num_burnin_steps: int = 300
    num_results: int = 200
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


SIZE = Size()
TRAIN, TEST = "train.csv", "test.csv"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument(
        "-o", dest="output", metavar="FOLDER", default="tfbnn-demo", help="default: tfbnn-demo"
    )


def run(args: argparse.Namespace) -> int:
    """Tells the story."""
    began = time.perf_counter()
    path = os.path.join(args.output, "demo.h5")
    check_output(args.output, FOLDER)
    _refuse_others(args.output, path)
    os.makedirs(args.output, exist_ok=True)
    exact = neutralino_pairs(SIZE.num_rows)
    data = smear(exact)
    _show_data(data, args.output)
    model = _fit(os.path.join(args.output, TRAIN), data.target_name)
    model.save(path)
    _show_test(model, data, exact)
    _show_prediction(path, data, exact)
    _show_figures(model, data, args.output)
    _show_next_steps(args.output, data.target_name, time.perf_counter() - began)
    return DONE


def _refuse_others(folder: str, model: str) -> None:
    """Refuses a folder with files of somebody's own, which may have the names of the demo's."""
    if os.path.isdir(folder) and os.listdir(folder):
        if not os.path.isfile(model):
            raise ValueError(
                f"-o {folder} holds other files, expected a new or empty folder or that of an "
                "earlier demo. Choose another."
            )
        check_output(model, MODEL)


def smear(exact: Dataset) -> Dataset:
    """The table with the errors of a short Monte Carlo run, the same at every call."""
    generator = np.random.default_rng(0)
    factors = np.exp(_SMEARING * generator.standard_normal(len(exact)))
    return dataclasses.replace(exact, y=exact.y * factors)


def _show_data(data: Dataset, folder: str) -> None:
    _heading("1. The data")
    _paragraph(
        f"{len(data)} supersymmetric models. Each is described by the lightest neutralino's "
        "signed mass in GeV and its four mixings N11 .. N14; the target is the leading-order "
        "cross section of p p -> chi10 chi10 at 13 TeV, here from "
        f"{data.y.min():.2g} to {data.y.max():.3g} fb. To make it realistic, every cross section "
        f"is smeared by {100 * _SMEARING:.0f} %, the error of a very short Monte Carlo run. The "
        "network is told neither the formula nor the size of that error."
    )
    for name, (x, y) in ((TRAIN, data.train), (TEST, data.test)):
        path = os.path.join(folder, name)
        columns = (*data.feature_names, data.target_name)
        write_csv(path, columns, np.column_stack([x, y]), digits=9)
        print(f"{path}: {len(x)} rows")


def _fit(path: str, target: str) -> BayesianMLP:
    """The fit of `tfbnn fit` with nothing given but the lengths of the chains, bit by bit."""
    _heading("2. The network")
    table = read_table(path)
    x = table.select([name for name in table.columns if name != target])
    model = BayesianMLP([len(x.columns), *DEFAULT_LAYERS, 1])
    model.summary()
    print()
    _paragraph(
        "Instead of one best set of weights, we sample many: each sampled network fits the data "
        "about as well as the noise allows, and where they differ, the prediction is uncertain. "
        "The size of the noise is sampled along with the weights. Nothing is set by hand here but "
        "the length of the chains: what suits the rows is chosen, and the report says what and why."
    )
    _heading("3. Sampling (the long part)")
    import_tensorflow()
    y = one_as_vector(table.select([target]).values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report says the same
        lengths: dict[str, Any] = {
            "num_burnin_steps": SIZE.num_burnin_steps,
            "num_results": SIZE.num_results,
        }
        run = fit_columns(model, (x, y, None), [target], [], **lengths, **SIZE.options)
    print(run.report(interface=Interface(is_command_line=True, command=_same_fit(path, target))))
    print()
    _paragraph(
        "How to read this: four independent chains should end up with the same predictions. "
        "R-hat compares them: 1 is perfect, and an analysis should ask for less than 1.01. ESS is "
        "the number of independent draws that the correlated ones are worth. Lines with ! say what "
        "falls short, and what to do next. Section 4 tells how good the predictions are."
    )
    return model


def _show_test(model: BayesianMLP, data: Dataset, exact: Dataset) -> None:
    _heading("4. The test, on rows the network has not seen")
    x, y = data.test
    print(scores_text(model.evaluate(x, y), [data.target_name], {}))
    print()
    pipeline = model.posterior.y_pipeline
    # At y = 1 fb the derivative of the transform turns its units into relative ones.
    unit = pipeline.derivative(np.ones((1, 1))).item()
    noise = np.exp(model.posterior.log_noise_scale).mean() / unit
    mean, stddev = model.predict(x, space="transformed").columns
    pulls = (pipeline.forward(exact.test[1][:, None]) - mean) / stddev
    _paragraph(
        f"Noise found: {100 * noise:.1f} % per row, put in: {100 * _SMEARING:.0f} %. The exact "
        "cross sections, which the network never saw, are within one error bar of the function "
        f"for {100 * np.mean(abs(pulls) < 1):.0f} % of the rows and within two for "
        f"{100 * np.mean(abs(pulls) < 2):.0f} %; perfect would be 68 % and 95 %."
    )


def _show_prediction(path: str, data: Dataset, exact: Dataset) -> None:
    _heading("5. One prediction, from the saved file")
    model = load(path)
    x, y = data.test[0][:1], exact.test[1][0]
    mean, stddev = (values.item() for values in model.predict(x))
    point = ", ".join(f"{name} = {v:.4g}" for name, v in zip(data.feature_names, x[0]))
    print(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB, loads without TensorFlow")
    print(point)
    print(f"predicted  {mean:.4g} +- {stddev:.2g} fb")
    print(f"exact      {y:.4g} fb, off by {(y - mean) / stddev:+.1f} error bars")


def _show_figures(model: BayesianMLP, data: Dataset, folder: str) -> None:
    _heading("6. Figures")
    try:
        paths = save_figures(model, (*data.test, None), folder)
    except ImportError as error:
        _paragraph(f"No figures: {error}")
        return
    for path in paths:
        print(path)


def _show_next_steps(folder: str, target: str, seconds: float) -> None:
    model, train, test = (os.path.join(folder, name) for name in ("demo.h5", TRAIN, TEST))
    _heading(f"Done in {seconds:.0f} s. What next?")
    print(f"tfbnn info {model}")
    print(f"tfbnn predict {model} {test} --quantiles 0.16,0.84")
    print(f"tfbnn report {model} {test} -o {os.path.join(folder, 'report.html')}")
    print(_same_fit(train, target))
    print("    # the fit of this demo; without the numbers, until the draws are good enough")
    print(f"tfbnn evaluate mine.h5 {test}")
    print("tfbnn fit --help")


def _same_fit(path: str, target: str) -> str:
    """The command that makes the fit of the demo."""
    lengths = f"--num-burnin-steps {SIZE.num_burnin_steps} --num-results {SIZE.num_results}"
    return f"tfbnn fit {shlex.quote(path)} --target {target} {lengths} -o mine.h5"


def _heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def _paragraph(text: str) -> None:
    print(textwrap.fill(text, width=88), flush=True)
