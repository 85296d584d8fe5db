"""Tables of benchmarks/studies/relu_inefficiency/run.py."""

import numpy as np

from benchmarks.lib.common import markdown
from benchmarks.studies.relu_inefficiency.local_error import error_table
from benchmarks.studies.relu_inefficiency.published import ACCEPTANCE, ERRORS, OPTIMUM, STEP_SIZES

__all__ = ["efficiency_curve", "mean_acceptance", "report", "standard_error", "start_name"]

# A chain that accepts less than this has not left its start.
STUCK = 0.01

SETUP = """\
The networks are 1-50-1 unless the table says otherwise, with the prior N(0, 1) for every weight. There are
100 rows, with x uniform on (0, 4) and y ~ N(cos 2x, 0.1^2), and the likelihood is Gaussian with scale 0.1.
HMC has an identity mass matrix, a fixed step size eps and a fixed number of leapfrog steps L, without jitter.
Five chains make 100 transitions of burn-in and 2000 draws in float32. There is one data set, seed 0, unless
the text says five. Chains start from s N(0, 1), from draws of the prior, or from ADAM (500 full-batch steps).
The activation leaky_relu has the slope 0.2, leaky_relu_0.01 the slope 0.01.

Acceptances are means over all chains, with their standard error. "1 stuck" means that one chain did not leave
its start; stuck chains are part of the mean. Published numbers are those of Dinh, Ho and Nguyen 2024,
arXiv:2410.22065, table 2 and section 4.1. Their standard errors are over five runs. The paper does not say
where chains start. The figure has only the slope 0.2 of leaky ReLU. Rows of leaky_relu_0.01 were made on an
AMD EPYC at abfbe1b, all others on an Intel Xeon at 6f5451d or before."""

FINDINGS = """\
## Results

Sigmoid: the acceptance agrees with the published one within 0.013 at every step size and for all starts. The
most efficient step size is 0.003, with an acceptance of 0.75 to 0.78 (published: 0.755).

ReLU, acceptance: the starts decide. At draws of the prior the energy is thousands of times that of the
posterior. From there no chain moves from eps = 0.0015 on, and only some chains move at 0.001. Chains from s
N(0, 1) with s from 0.1 to 0.5 move. With ReLU, their acceptance is within 0.060 of the published one, with
one exception: at eps = 0.0015 and L = 200 it is 0.28 +- 0.01 (25 chains), published as 0.16 +- 0.07, a
difference of 1.6 standard errors. At eps = 0.001 and L = 1000 the difference is 2.6 standard errors (0.47 +-
0.02 and 0.53 +- 0.01).

Leaky ReLU, acceptance: the paper does not say which slope it has. The slope 0.01 of PyTorch and JAX agrees up
to eps = 0.001, and accepts more from 0.0015 on: 0.09 +- 0.03 instead of 0.00 at 0.002 with L = 200. The slope
0.2 of TensorFlow agrees from 0.0015 on, and accepts less at 0.001. With L = 200 the acceptance is 0.52 +-
0.04 instead of 0.65, or 0.59 without the three of 25 chains that are stuck. With longer trajectories it is
smaller by 0.03 to 0.07. Neither slope agrees everywhere.

Width and depth: acceptance falls with both until chains are stuck.

Efficiency (stuck chains are counted): from 0.5 N(0, 1) the most efficient step size of networks with kinks is
0.001. Its acceptance is 0.74 with ReLU (published: 0.65), and 0.71 and 0.75 with leaky ReLU of slope 0.2 and
0.01 (published: 0.72). From the prior and from ADAM the most efficient step size is 0.00075. The maximum is
flat: for ReLU, 1000 eps * acceptance is 0.74 at 0.001 and 0.73 at 0.0011, where the acceptance is 0.67.
Sigmoid is more than three times as efficient as ReLU; the paper says more than four times.

One step: the energy error is of third order with sigmoid, and of first order in steps that cross a kink. The
share of these steps grows with eps, too, so the mean over all steps is of second order. Above 1e-4 the
third-order error of the smooth pieces dominates."""


def report(found):
    """The whole text; `found` is a dict of study -> the rows that there are."""
    parts = ["# Leapfrog HMC on smooth and on ReLU networks", SETUP]
    parts += [part(found[name]) for name, part in PARTS.items() if found[name]]
    return "\n\n".join([*parts, FINDINGS])


def mean_acceptance(row):
    """Over all chains."""
    return float(np.mean(row["acceptance"]))


def start_name(start):
    """Return the name of a start of chains in tables and figure."""
    return start if isinstance(start, str) else f"{start:g} N(0, 1)"


def scale(rows):
    """Acceptance by the scale of the starts."""
    lines = [[start_name(row["start"]), with_error(row)] for row in rows]
    published = ACCEPTANCE["relu"][200][STEP_SIZES.index(0.001)]
    return (
        "## The scale of the starts\n\n"
        f"This table is for ReLU, L = {rows[0]['num_leapfrog_steps']} and eps = 0.001, where the paper has {published:g}. "
        "The next tables have the scale whose acceptance is closest.\n\n"
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
        published = " +- ".join(
            f"{numbers[step]:.3f}"
            for table in (ACCEPTANCE, ERRORS)
            if step in (numbers := by_step(table, activation, length))
        )
        together = {"acceptance": [rate for row in group for rate in row["acceptance"]]}
        count = len(together["acceptance"])
        cells = [f"{step:g}", published, with_error(together), count]
        lines.append([activation, length, *cells])
    return (
        "## More chains where the standard error is above 0.04\n\nAcceptances are those of all "
        "chains, including those of the table above.\n\n"
        + markdown(["activation", "L", "eps", "published", "measured", "chains"], lines)
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
            beside(published.get(step), with_error(measured[step])) if step in measured else ""
            for step in STEP_SIZES
        ]
        lines.append([activation, length, *cells])
    header = ["activation", "L", *(f"eps {step:g}" for step in STEP_SIZES)]
    return markdown(header, lines)


def beside(published, measured):
    """A cell of both; the measured one alone if nothing is published."""
    return measured if published is None else f"{published:.3f} / {measured}"


def with_error(row):
    """Mean over chains and its standard error, and how many never left their start."""
    rates = np.array(row["acceptance"])
    stuck = int(np.sum(rates < STUCK))
    note = f", {stuck} stuck" if stuck else ""
    return f"{rates.mean():.3f} +- {standard_error(row):.3f}{note}"


def standard_error(row):
    """Return the standard error of the mean over chains."""
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
        "stuck chains",
        "most efficient eps",
        "its acceptance (range over data sets)",
        "published acceptance",
        "its 1000 eps * acceptance",
    ]
    return (
        "## Efficiency at the travel time eps L = 0.1\n\n"
        "The efficiency is eps times the acceptance. Means are over five data sets with five chains each. Stuck chains "
        "are counted over all step sizes. The published number is the acceptance at the most efficient step size.\n\n"
        + markdown(header, lines)
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
        ["network", "parameters", *activations], lines
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
