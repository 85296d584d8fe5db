"""Tables of benchmarks/studies/relu_inefficiency/run.py."""

import numpy as np

from benchmarks.lib.common import markdown
from benchmarks.studies.relu_inefficiency.local_error import error_table
from benchmarks.studies.relu_inefficiency.published import ACCEPTANCE, ERRORS, OPTIMUM, STEP_SIZES

__all__ = ["efficiency_curve", "mean_acceptance", "report", "standard_error", "start_name"]

# A chain that accepts less than this has not left its start.
STUCK = 0.01

SETUP = """\
1-50-1 unless the table says otherwise, N(0, 1) prior on every weight, 100 rows, x uniform on
(0, 4), y ~ N(cos 2x, 0.1^2), Gaussian likelihood with scale 0.1, HMC with identity mass, fixed step
size eps and number of leapfrog steps L, no jitter; five chains, 100 transitions of burn-in, 2000
draws, float32. The rows are those of one data set, seed 0, unless five data sets are named. Chains
start from s N(0, 1), from draws of the prior, or from ADAM (500 full-batch steps). Published: Dinh, Ho
and Nguyen 2024, arXiv:2410.22065, table 2 and section 4.1; s.e. there is over five runs, and where
chains started is not said. Means are over all chains, whether they left their start or not. The figure has
the slope 0.2 of leaky ReLU alone. Rows of leaky_relu_0.01 were made on an AMD EPYC at abfbe1b, all others on an
Intel Xeon at 6f5451d or before."""

FINDINGS = """\
## What is seen

Sigmoid: acceptance agrees with the published one within 0.013 at every step size, wherever chains start, and
the optimum of the efficiency curve lies at eps = 0.003 with an acceptance of 0.75 to 0.78 (0.755 published).

ReLU and leaky ReLU: where chains start decides. From the prior the energy is thousands of times that of the
posterior, and from eps = 0.0015 on no chain moves; which ones do at 0.001 is a matter of luck. From s N(0, 1)
with s of 0.1 to 0.5 they move, and acceptance is the published one within 0.060 with ReLU (the mean of
twenty-five chains where there are so many), but at 0.0015 with L = 200: 0.28 +- 0.01 for 0.16 +- 0.07, 1.6
standard errors of the difference; at 0.001 with L = 1000 it is 2.6 (0.47 +- 0.02 for 0.53 +- 0.01). Which leaky
ReLU is meant the paper does not say. The slope 0.01 of PyTorch and JAX agrees up to 0.001 and accepts more than the
paper from 0.0015 on: 0.09 +- 0.03 for 0.00 at 0.002 with L = 200. TensorFlow's 0.2 agrees from 0.0015 on and
accepts less at 0.001: with L = 200 0.52 +- 0.04 for 0.65, where three chains of twenty-five never left their start
(0.59 without them), and by 0.03 to 0.07 with longer ones. Neither is the paper's everywhere. Acceptance falls with
width and depth until chains stand still again.

Efficiency, chains that stand still counted: the most efficient of the step sizes is 0.001 with a kink from
0.5 N(0, 1), with an acceptance of 0.74 (ReLU; 0.65 published), 0.71 and 0.75 (leaky ReLU of slope 0.2 and 0.01;
0.72), and 0.00075 from the prior and from the end of ADAM. The curve is flat there: 1000 eps * acceptance of ReLU is 0.74 at 0.001 and
0.73 at 0.0011, where it accepts 0.67. Sigmoid is more than three times as efficient; the paper says more than four
times.

One step: the error is of third order with the sigmoid. With a kink it is of first order in the
steps that cross one. Their share grows with eps too, hence the second order of the mean over all
steps, until the third-order error of the smooth pieces takes over above 1e-4."""


def report(found):
    """The whole text; `found` is a dict of study -> the rows that there are."""
    parts = ["# Leapfrog HMC on smooth and on ReLU networks", SETUP]
    parts += [part(found[name]) for name, part in PARTS.items() if found[name]]
    return "\n\n".join([*parts, FINDINGS])


def mean_acceptance(row):
    """Over all chains."""
    return float(np.mean(row["acceptance"]))


def start_name(start):
    """Of where chains start, as tables and figure have it."""
    return start if isinstance(start, str) else f"{start:g} N(0, 1)"


def scale(rows):
    """Acceptance by the scale of the starts."""
    lines = [[start_name(row["start"]), with_error(row)] for row in rows]
    published = ACCEPTANCE["relu"][200][STEP_SIZES.index(0.001)]
    return (
        "## The scale of the starts\n\n"
        f"ReLU, L = {rows[0]['num_leapfrog_steps']}, eps = 0.001, where the paper has {published:g}. The "
        "scale that comes closest is that of the tables that follow.\n\n"
        + markdown(["start", "acceptance"], lines)
    )


def acceptance(rows):
    """Published against measured, one line per activation and L."""
    title = f"## Acceptance, published / measured, chains from {start_name(rows[0]['start'])}"
    return f"{title}\n\n{acceptance_table(rows)}"


def more_chains(rows):
    """The same with the chains of several seeds."""
    lines = []
    for (activation, length, step), group in by(
        rows, "activation", "num_leapfrog_steps", "step_size"
    ).items():
        published, error = (
            by_step(table, activation, length).get(step, np.nan) for table in (ACCEPTANCE, ERRORS)
        )
        together = {"acceptance": [rate for row in group for rate in row["acceptance"]]}
        count = len(together["acceptance"])
        cell = f"{published:.3f} +- {error:.3f} / {with_error(together)}"
        lines.append([activation, length, f"{step:g}", cell, count])
    return (
        "## Where five chains left a standard error above 0.04\n\nPublished / measured with all "
        "chains, those of the table above among them.\n\n"
        + markdown(["activation", "L", "eps", "acceptance", "chains"], lines)
    )


def prior(rows):
    """The same from draws of the prior."""
    title = "## Acceptance, published / measured, chains from the prior"
    return f"{title}\n\n{acceptance_table(rows)}"


def by_step(table, activation, length):
    """Dict step size -> published number, empty where there is none."""
    return dict(zip(STEP_SIZES, table.get(activation, {}).get(length, ())))


def acceptance_table(rows):
    lines = []
    for (activation, length), group in by(rows, "activation", "num_leapfrog_steps").items():
        measured = {row["step_size"]: row for row in group}
        published = by_step(ACCEPTANCE, activation, length)
        cells = [
            f"{published.get(step, np.nan):.3f} / {with_error(measured[step])}"
            if step in measured
            else ""
            for step in STEP_SIZES
        ]
        lines.append([activation, length, *cells])
    header = ["activation", "L", *(f"eps {step:g}" for step in STEP_SIZES)]
    return markdown(header, lines)


def with_error(row):
    """Mean over chains and its standard error, and how many never left their start."""
    rates = np.array(row["acceptance"])
    stuck = int(np.sum(rates < STUCK))
    note = f", {stuck} stuck" if stuck else ""
    return f"{rates.mean():.3f} +- {standard_error(row):.3f}{note}"


def standard_error(row):
    """Of the mean over chains."""
    rates = row["acceptance"]
    return float(np.std(rates, ddof=1) / len(rates) ** 0.5)


def efficiency_curve(rows):
    """Step sizes and mean acceptance there.

    Args:
        rows: Rows of one activation and one start, of any number of data sets.
    """
    groups = by(rows, "step_size")
    steps = np.array([step for (step,) in groups])
    return steps, np.array(
        [np.mean(list(map(mean_acceptance, group))) for group in groups.values()]
    )


def efficiency(rows):
    """The curve eps * acceptance and its maximum."""
    lines, all_steps = [], sorted({row["step_size"] for row in rows})
    for (activation, start), group in by(rows, "activation", "start").items():
        steps, rates = efficiency_curve(group)
        if {*steps} < {row["step_size"] for row in rows if row["activation"] == activation}:
            continue  # is still being run
        found = dict(zip(steps, rates))
        best = np.argmax(steps * rates)
        optima = [optimum(part) for part in by(group, "data").values()]
        lines.append(
            [
                activation,
                start_name(start),
                ", ".join(f"{found[s]:.2f}" if s in found else "-" for s in all_steps),
                f"{sum(rate < STUCK for row in group for rate in row['acceptance'])}"
                f" of {sum(len(row['acceptance']) for row in group)}",
                f"{steps[best]:g}",
                f"{rates[best]:.3f} ({min(optima):.3f} to {max(optima):.3f})",
                f"{OPTIMUM[activation]:g}",
                f"{1e3 * steps[best] * rates[best]:.2f}",
            ]
        )
    header = [
        "activation",
        "start",
        f"acceptance at eps = {', '.join(f'{1e3 * s:g}' for s in all_steps)} / 1000",
        "stuck",
        "best eps",
        "acceptance there (range over data sets)",
        "published",
        "1000 eps * acceptance there",
    ]
    return (
        "## Efficiency at the travel time eps L = 0.1\n\n"
        "Means on five data sets with five chains each; stuck: those that did not leave their start, at "
        "all step sizes together.\n\n" + markdown(header, lines)
    )


def optimum(rows):
    """Acceptance at the most efficient step size."""
    steps, rates = efficiency_curve(rows)
    return rates[np.argmax(steps * rates)]


def architecture(rows):
    """Acceptance against width and depth."""
    networks = by(rows, "hidden")
    activations = list(dict.fromkeys(row["activation"] for row in rows))
    lines = []
    for (hidden,), group in networks.items():
        cells = {row["activation"]: with_error(row) for row in group}
        layers = "-".join(map(str, (1, *hidden, 1)))
        lines.append([layers, group[0]["parameters"], *(cells.get(a, "") for a in activations)])
    length, step = rows[0]["num_leapfrog_steps"], rows[0]["step_size"]
    return f"## Width and depth, L = {length}, eps = {step:g}\n\n" + markdown(
        ["network", "P", *activations], lines
    )


def by(rows, *names):
    """Rows grouped by the values of some fields, in order of appearance."""
    groups = {}
    for row in rows:
        values = (row[name] for name in names)
        key = tuple(tuple(value) if isinstance(value, list) else value for value in values)
        groups.setdefault(key, []).append(row)
    return groups


PARTS = {
    "scale": scale,
    "acceptance": acceptance,
    "more chains": more_chains,
    "efficiency": efficiency,
    "architecture": architecture,
    "prior": prior,
    "local_error": error_table,
}
