"""Compare a fit with nothing given with published results on functions without noise.

    python -m benchmarks functions [--functions borehole ...] [--per-input 20 80] [--draws 0 1 2] [--fresh]

Borehole (8 inputs), wing weight (10) and buckling load (4) are formulas of engineers. A draw of rows is a
scrambled Sobol sequence: 5000 test rows, then 20 or 80 training rows to an input. A Gaussian process and
TabPFN were scored so by others, on 20 draws of their own (kianswarehouse/GPvsPFN at ab7e546b,
experiments_kian/Problems/results/*/10_282/default). Three inputs of the column have levels, which that
process knew to be categories. results/functions.md holds the relative RMSE of both and of
`BayesianMLP().fit_posterior(x, y)`; that of a constant is 1. Finished rows are kept, so that a killed script
goes on where it was.

References:
    Morris, Mitchell and Ylvisaker 1993, Technometrics 35, 243, borehole. Forrester, Sobester and Keane 2008,
    Engineering Design via Surrogate Modelling, wing weight.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder, revision
from benchmarks.lib.default_ours import FEW_DRAWS
from benchmarks.lib.store import Store

NUM_TEST_ROWS = 5000


class Function(NamedTuple):
    """A function of some inputs.

    Attributes:
        value: Function of rows [N, D] -> [N].
        low, high: Range of each input; of those with levels, the numbers 0 and 1.
        levels: Dict column -> values that it takes, equally often.
        published: Dict training rows per input -> relative RMSE of (Gaussian process, TabPFN).
    """

    value: Callable
    low: tuple
    high: tuple
    levels: dict
    published: dict


def borehole(x):
    """Flow of water through a borehole, m^3 per year."""
    radius, reach, above, head_above, below, head_below, length, conductivity = x.T
    log = np.log(reach / radius)
    leak = 2 * length * above / (log * radius**2 * conductivity)
    return 2 * np.pi * above * (head_above - head_below) / (log * (1 + leak + above / below))


def wing(x):
    """Weight of the wing of a light aircraft, pounds."""
    area, fuel, aspect, sweep, pressure, taper, thickness, load, weight, paint = x.T
    cosine = np.cos(np.radians(sweep))
    shape = area**0.758 * fuel**0.0035 * (aspect / cosine**2) ** 0.6
    rest = pressure**0.006 * taper**0.04 * (100 * thickness / cosine) ** -0.3
    return 0.036 * shape * rest * (load * weight) ** 0.49 + area * paint


def buckling(x):
    """Load under which a column buckles, up to a factor."""
    length, modulus, ends, inertia = x.T
    return np.pi * modulus * inertia / (length * ends) ** 2


FUNCTIONS = {
    "borehole": Function(
        borehole,
        (0.05, 100.0, 63_070.0, 990.0, 63.1, 700.0, 1120.0, 9855.0),
        (0.15, 50_000.0, 115_600.0, 1110.0, 116.0, 820.0, 1680.0, 12_045.0),
        {},
        {20: (0.01794, 0.04506), 80: (0.001238, 0.03954)},
    ),
    "wing": Function(
        wing,
        (150.0, 220.0, 6.0, -10.0, 16.0, 0.5, 0.08, 2.5, 1700.0, 0.025),
        (200.0, 300.0, 10.0, 10.0, 45.0, 1.0, 0.18, 6.0, 2500.0, 0.08),
        {},
        {20: (0.01885, 0.04139), 80: (0.003136, 0.03322)},
    ),
    "buckling": Function(
        buckling,
        (0.6, 0.0, 0.0, 0.0),
        (1.0, 1.0, 1.0, 1.0),
        {1: (1.0, 2.0), 2: (1.0, 2.0, 3.0, 4.0), 3: (1.0, 2.0, 3.0)},
        {20: (0.01355, 0.3062), 80: (0.0004374, 0.1971)},
    ),
}


def rows_of(function, num_rows, draw):
    """(x, y) of training rows, and of the test rows, of one draw."""
    engine = qmc.Sobol(len(function.low), seed=draw)
    points = engine.random_base2(13)[: NUM_TEST_ROWS + num_rows]
    x = qmc.scale(points, function.low, function.high)
    generator = np.random.default_rng(draw)
    for column, levels in function.levels.items():
        for part in (slice(NUM_TEST_ROWS), slice(NUM_TEST_ROWS, None)):
            count = len(x[part])
            x[part, column] = generator.permutation(np.resize(levels, count))
    y = function.value(x)
    return (x[NUM_TEST_ROWS:], y[NUM_TEST_ROWS:]), (x[:NUM_TEST_ROWS], y[:NUM_TEST_ROWS])


def measure(name, per_input, draw, quick):
    """Scores of a fit with nothing given; a dict of JSON values."""
    import tensorflow  # noqa: F401 - before the clock

    import tfbnn

    function = FUNCTIONS[name]
    (x, y), (x_test, y_test) = rows_of(function, per_input * len(function.low), draw)
    model = tfbnn.BayesianMLP()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit_posterior(x, y, verbose=0, seed=draw, **(FEW_DRAWS if quick else {}))
        seconds = time.perf_counter() - began
    scores = model.evaluate(x_test, y_test)
    return {
        "relative_rmse": float(scores["rmse"]) / float(np.std(y_test)),
        "coverage": [float(scores["coverage"][k]) for k in (1, 2)],
        "network": f"{model.spec.architecture_text}, {model.spec.likelihood_name}",
        "seconds": seconds,
        "commit": revision(),
    }


def report(store):
    """The table as Markdown."""
    lines = []
    for name, function in FUNCTIONS.items():
        for per_input, published in function.published.items():
            prefix = f"{name}, {per_input}, "
            rows = [row for key, row in store.rows.items() if key.startswith(prefix)]
            if not rows:
                continue
            errors = [row["relative_rmse"] for row in rows]
            coverage = np.mean([row["coverage"] for row in rows], axis=0)
            lines.append(
                [
                    name,
                    per_input,
                    f"{np.mean(errors):.3g}{_range(errors)}",
                    len(errors),
                    "; ".join(sorted({row["network"] for row in rows})),
                    ", ".join(f"{share:.3f}" for share in coverage),
                    f"{np.mean([row['seconds'] for row in rows]):.0f}",
                    *(f"{value:.3g}" for value in published),
                ]
            )
    header = [
        "function",
        "rows per input",
        "relative RMSE",
        "training sets",
        "chosen network",
        "coverage of 1, 2 sigma",
        "time, s",
        "Gaussian process, published",
        "TabPFN, published",
    ]
    commits = dict.fromkeys(row["commit"] for row in store.rows.values())
    return (
        "# Functions without noise\n\n"
        "Relative RMSE is the RMSE on 5000 test rows, divided by the standard deviation of the target. It is the mean "
        "over random training sets, with its range if there are several. Coverage is the share of test rows within 1 and 2 "
        "predicted standard deviations (sigma). The published relative RMSEs are means over 20 other training sets "
        "(github.com/kianswarehouse/GPvsPFN at ab7e546b). Inf is a layer of infinite width.\n\n"
        f"{markdown(header, lines)}\n\nRows were made at {', '.join(commits)}."
    )


def _range(errors):
    """The least and the most of several errors."""
    return f" ({np.min(errors):.3g} to {np.max(errors):.3g})" if len(errors) > 1 else ""


def main(arguments=None):
    """Measures what is asked for, and keeps the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--functions", nargs="+", choices=list(FUNCTIONS), default=list(FUNCTIONS))
    parser.add_argument("--per-input", nargs="+", type=int, choices=(20, 80), default=(20, 80))
    parser.add_argument("--draws", nargs="+", type=int, default=(0, 1, 2))
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("functions", options.fresh, folder)
    for draw in options.draws:
        for per_input in options.per_input:
            for name in options.functions:
                key = f"{name}, {per_input}, draw {draw}"
                if key not in store:
                    store.add(key, measure(name, per_input, draw, options.quick))
                    print(key, store.rows[key], flush=True)
    keep("functions.md", report(store), folder)


if __name__ == "__main__":
    main()
