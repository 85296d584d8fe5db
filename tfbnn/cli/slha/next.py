"""Select the points to compute next: those with the largest predicted errors inside the training inputs.

Candidates are SLHA spectra, folders or tars of them, or with --table a table of points. They are sorted by
the largest predicted error of their processes, relative to the cross section. A process whose trust is -1
is ignored, because error bars promise nothing there. The output is CSV with one row per point.

examples:
  tfbnn slha next gauginos/ candidates/ -n 300 -o next.csv
  tfbnn slha next gauginos/ --table points.csv --id name --process 1000022,1000023
"""

import argparse
from typing import Annotated

import numpy as np

from tfbnn.cli.console import DONE, say
from tfbnn.cli.outputs import written_table
from tfbnn.cli.slha.evaluation import PointsOptions, open_points, predicted
from tfbnn.data.training_inputs import OUTSIDE
from tfbnn.data.validation import check_integer
from tfbnn.diagnostics.wording import counted
from tfbnn.system.arrays import Array


class Options(PointsOptions):
    """Options of the command.

    Attributes:
        num_points: Number of points to select; default: 100.
        output: Table to write, in the format of its ending.
    """

    num_points: Annotated[int, {"flags": ("-n", "--num-points"), "type": int, "metavar": "N"}] = 100
    output: Annotated[str | None, {"flags": ("-o",), "metavar": "OUT.csv"}] = None


def run(args: argparse.Namespace) -> int:
    """Predict all candidates, and write those with the largest errors."""
    check_integer("--num-points", args.num_points, minimum=1)
    predictor, _, batches = open_points(args, {})
    names: list[str] = []
    found: list[Array] = []
    for batch in batches:
        some, sections = predicted(predictor, batch, args.skip_bad)
        if sections is None:
            continue
        width = 0.5 * (sections.err_down + sections.err_up) / np.abs(sections.central)
        width = np.where(sections.trust > OUTSIDE, width, -np.inf)
        indices = np.argmax(width, axis=1)
        rows = np.arange(len(some))
        pids = np.array(sections.pids)[indices]
        found.append(np.column_stack([pids, width[rows, indices], sections.trust[rows, indices]]))
        names += some
    if not names:
        raise ValueError("No point is left. Repair the spectra.")
    values = np.concatenate(found)
    inside = np.flatnonzero(np.isfinite(values[:, 2]))
    if num_outside := len(names) - len(inside):
        say(
            f"Left out {counted(num_outside, 'point')} outside the training inputs of all processes."
        )
    chosen = inside[np.argsort(-values[inside, 2], kind="stable")][: args.num_points]
    with written_table(args.output, ["point", "pid1", "pid2", "relative_error", "trust"]) as write:
        write(values[chosen], [np.array(names)[chosen]])
    return DONE
