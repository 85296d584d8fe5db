"""Table and figure of benchmarks/studies/relu_step_size/run.py."""

import math

import numpy as np

from benchmarks.lib.common import markdown
from tfbnn.plots.canvas import BLUE, GREEN, ORANGE, styled_figure
from tfbnn.spec.distributions import normal_cdf

__all__ = ["figure", "report"]

# Published: the acceptance where step size times acceptance is largest (a lower bound of the cost
# of an accepted proposal), that where step size over the mean number of proposals is (an upper
# one), and the exponent of d in the step size of a given acceptance.
PUBLISHED = {"kinks": (0.45, 0.715, -0.5), "normal": (0.651, 0.8, -0.25)}
# Where the efficiency is at least this much of its maximum, a cubic is laid through its logarithm:
# a parabola, which is symmetric, would put the limit's own maximum at 0.46 to 0.48 in place of 0.452.
NEAR_MAXIMUM, FEWEST_POINTS = 0.75, 5
DRAWN_DIMENSION = "1024"
COLOURS = dict(zip(("slopes 1 and 1", "slopes 1/2 and 2", "normal"), (ORANGE, GREEN, BLUE)))

SETUP = """\
Leapfrog HMC with the travel time T = {time:g} samples d independent components. Each has the same potential
U: linear on both sides of a kink at 0, where the slope changes from -a to b ("slopes a and b"), or q^2 / 2
("normal"). Trajectories start at exact draws. For each step size eps = T / L there are {components:,}
components, and thus {components:,} / d trajectories. Each number is the mean over eight parts of these, with
its standard error. Published numbers are those of Dinh, Ho and Nguyen 2024, arXiv:2410.22065, proposition 3.5
and figures 4 and 5, for the limit of many dimensions. For the normal density they are those that the paper
cites (Beskos et al. 2013, Betancourt et al. 2014)."""

FINDINGS = """\
## What is seen

{findings}"""


def report(rows, travel_time):
    """The whole text."""
    setup = SETUP.format(time=travel_time, components=rows[0]["components"])
    parts = ["# Step sizes of leapfrog HMC on densities with kinks", setup]
    parts += [optima(rows), scaling(rows), variances(rows, travel_time)]
    return "\n\n".join(parts)


def optima(rows):
    """Acceptance at the most efficient step sizes, by both bounds of the cost."""
    lines = []
    for name, group in by_density(rows).items():
        first, second, _ = published(name)
        for dimension in group[0]["acceptance"]:
            steps, acceptance, proposals = curves(group, dimension)
            limit = 2.0 * normal_cdf(-0.5 * np.sqrt(float(dimension) * column(group, "variance")))
            lines.append(
                [
                    name,
                    dimension,
                    shown(optimum(steps, acceptance, steps[:, None] * acceptance)),
                    first,
                    shown(optimum(steps, acceptance, steps[:, None] / proposals)),
                    second,
                    f"{np.abs(acceptance.mean(axis=1) - limit).max():.3f}",
                ]
            )
    header = [
        "density",
        "d",
        "acceptance where eps E[A] is largest",
        "published",
        "acceptance where eps / E[1 / A] is largest",
        "published",
        "largest difference of E[A] from its limit",
    ]
    return (
        "## The most efficient acceptance\n\n"
        "The most efficient step size maximises eps E[A] or eps / E[1 / A], where A is the probability that a proposal "
        "is accepted and E[A] the acceptance. The table has the acceptance at both step sizes. Its limit for many dimensions is "
        "2 Phi(-sqrt(d V) / 2), where V is the mean square energy error of one component. A cell is empty if the maximum is at "
        "the end of the step sizes, or if fewer than five step sizes are near it.\n\n"
        + markdown(header, lines)
    )


def scaling(rows):
    """Step sizes of the published acceptance against the dimension."""
    lines = []
    for name, group in by_density(rows).items():
        target, _, exponent = published(name)
        found = {d: step_at(group, d, target) for d in group[0]["acceptance"]}
        slope, error = fitted_exponent(found)
        cells = [shown(values, 4) for values in found.values()]
        lines.append([name, target, *cells, f"{slope:.3f} +- {error:.3f}", exponent])
    header = [
        "density",
        "acceptance",
        *(f"eps at d = {d}" for d in rows[0]["acceptance"]),
        "exponent of d",
        "published exponent",
    ]
    return "## Step sizes of a given acceptance\n\n" + markdown(header, lines)


def variances(rows, travel_time):
    """The error of one component against what theorem 3.3 gives for it."""
    lines = []
    for name, group in by_density(rows).items():
        if name == "normal":
            continue
        left, right = slopes(name)
        # Flux through the kink times E[p^2] of what crosses times the mean square of the time to
        # the middle of the step, all by theorem 3.3: p (eps / 2 - eps_1) (left + right) each.
        flux = left * right / (left + right) * math.sqrt(2.0 / math.pi)
        expected = travel_time * flux * 2.0 * (left + right) ** 2 / 12.0
        scaled = column(group, "variance") / column(group, "step_size") ** 2
        lines.append([name, f"{scaled[-1]:.3f}", f"{scaled[0]:.4f}", f"{expected:.4f}"])
    largest, smallest = (f"eps = {group[index]['step_size']:.3g}" for index in (-1, 0))
    return (
        "## Mean square energy error of one component, divided by eps^2\n\n"
        "Theorem 3.3 gives T sqrt(2 / pi) a b (a + b) / 6, if each crossing of the kink has an independent uniform time "
        "within its step.\n\n" + markdown(["density", largest, smallest, "theorem 3.3"], lines)
    )


def by_density(rows):
    """Rows by density, in order of the step size."""
    found = {}
    for row in sorted(rows, key=lambda row: row["step_size"]):
        found.setdefault(row["density"], []).append(row)
    return {name: found[name] for name in COLOURS if name in found}


def published(name):
    return PUBLISHED.get(name, PUBLISHED["kinks"])


def slopes(name):
    """Return the numbers a and b of the name "slopes a and b"."""
    fractions = name.removeprefix("slopes ").split(" and ")
    return [
        float(top) / float(bottom or 1) for top, _, bottom in (f.partition("/") for f in fractions)
    ]


def column(group, field):
    return np.array([row[field] for row in group])


def curves(group, dimension):
    """Step sizes [n], acceptance and proposals until one is accepted [n, parts], of one d."""
    both = (
        np.array([row[name][dimension] for row in group]) for name in ("acceptance", "proposals")
    )
    return column(group, "step_size"), *both


def optimum(steps, acceptance, efficiency):
    """Acceptance [parts] where the efficiency [n, parts] is largest, empty if too few are near it."""
    means, found = efficiency.mean(axis=1), []
    near = means >= NEAR_MAXIMUM * means.max()
    if means.argmax() in (0, len(means) - 1) or near.sum() < FEWEST_POINTS:
        return np.array([])
    logs = np.log(steps)
    grid = np.linspace(*logs[near][[0, -1]], 1000)
    for of_part, rates in zip(efficiency.T, acceptance.T):
        curve = np.polyfit(logs[near], np.log(of_part[near]), 3)
        found.append(np.interp(grid[np.polyval(curve, grid).argmax()], logs, rates))
    return np.array(found)


def step_at(group, dimension, target):
    """Step size [parts] at which the acceptance is the target, empty if no row is beyond it."""
    steps, acceptance, _ = curves(group, dimension)
    means = acceptance.mean(axis=1)
    if not means.min() < target < means.max():
        return np.array([])
    return np.exp([np.interp(-target, -rates, np.log(steps)) for rates in acceptance.T])


def fitted_exponent(found):
    """(slope of log step against log d, its standard error over parts); `found`: d -> steps."""
    known = {int(dimension): steps for dimension, steps in found.items() if len(steps)}
    logs = np.log(np.array(list(known.values())))
    slopes = np.polyfit(np.log(list(known)), logs, 1)[0]
    return slopes.mean(), standard_error(slopes)


def standard_error(values):
    return np.std(values, ddof=1) / math.sqrt(len(values))


def shown(values, digits=3):
    """Mean and standard error, or nothing."""
    if not len(values):
        return ""
    return f"{np.mean(values):.{digits}f} +- {standard_error(values):.{digits}f}"


def figure(rows, path):
    """Three panels: both efficiencies against acceptance, and step sizes against d."""
    with styled_figure(1, 3, (3.6, 3.0)) as (canvas, panels):
        bounds = ("step size * acceptance", "step size / proposals")
        for which, (axes, title) in enumerate(zip(panels.ravel(), bounds)):
            for name, group in by_density(rows).items():
                _efficiency(axes, name, group, which)
            axes.set(title=f"{title}, d = {DRAWN_DIMENSION}", xlabel="acceptance", ylim=(0, 1.1))
        axes = panels.ravel()[-1]
        for name, group in by_density(rows).items():
            _steps(axes, name, group)
        axes.set(title="step size of a given acceptance", xlabel="d")
        for axes in panels.ravel():
            axes.grid(alpha=0.3)
            axes.legend(fontsize="small")
        canvas.savefig(path, dpi=120)


def _efficiency(axes, name, group, which):
    """Points of one density, the limit of many dimensions, the published optimum."""
    steps, acceptance, proposals = curves(group, DRAWN_DIMENSION)
    rates = acceptance.mean(axis=1)
    measured = steps * (rates, 1.0 / proposals.mean(axis=1))[which]
    usable = rates > 0.02
    scale = measured[usable].max()
    look = {"color": COLOURS[name], "marker": "o", "markersize": 3, "linestyle": ""}
    axes.plot(rates[usable], measured[usable] / scale, **look, label=name)
    spread = np.linspace(0.02, 5.0, 500)  # standard deviation of the energy error
    step = np.sqrt(spread) if name == "normal" else spread
    inverse = normal_cdf(-0.5 * spread) + np.exp(spread**2) * normal_cdf(1.5 * spread)
    limit = 2.0 * normal_cdf(-0.5 * spread)
    efficiency = step * (limit, 1.0 / inverse)[which]
    axes.plot(limit, efficiency / efficiency.max(), color=COLOURS[name], linewidth=0.8)
    axes.axvline(published(name)[which], color=COLOURS[name], linestyle=":")


def _steps(axes, name, group):
    """Step sizes, and a line with the published exponent through the last of them."""
    target, _, exponent = published(name)
    found = {int(d): step_at(group, d, target) for d in group[0]["acceptance"]}
    known = {d: steps.mean() for d, steps in found.items() if len(steps)}
    dimensions, steps = np.array(list(known)), np.array(list(known.values()))
    look = {"color": COLOURS[name], "marker": "o", "markersize": 3, "linestyle": ""}
    axes.loglog(dimensions, steps, **look, label=f"{name}, {target:g}")
    line = steps[-1] * (dimensions / dimensions[-1]) ** exponent
    axes.loglog(dimensions, line, color=COLOURS[name], linewidth=0.8)
