"""Sections on the chains: have they converged?"""

from __future__ import annotations

from collections.abc import Iterator

from tfbnn.diagnostics.diagnosis import Diagnosis, lower, rows_texts, upper
from tfbnn.plots.chains import draw_rhats, draw_sizes, draw_traces, find_traces
from tfbnn.plots.page.content import Section, Table, facts
from tfbnn.plots.page.subject import WIDTH, Grid, Subject, drawing

_LAYOUT = {"width_ratios": [4, 1], "sharey": "row"}


def convergence(subject: Subject) -> Section:
    """R-hat and effective sample sizes, of the function first."""
    anchor, title = "convergence", "Convergence"
    diagnosis = subject.diagnosis
    if diagnosis is None:
        return Section(anchor, title, [f"{subject.ensemble.no_chains}: nothing can converge."])
    size = WIDTH, 2.9
    drawings = [
        drawing(
            "rhat",
            "R-hat of the predictions at the reference inputs. 1 means that the chains agree.",
            size,
            draw_rhats,
            diagnosis,
        ),
        drawing(
            "ess",
            "Effective number of draws behind the predictions there, of all chains together.",
            size,
            draw_sizes,
            diagnosis,
        ),
    ]
    lines = [*_numbers(diagnosis)]
    return Section(anchor, title, (), facts(lines), [_table(diagnosis)], drawings)


def _table(diagnosis: Diagnosis) -> Table:
    """Numbers of the predictions, and of the weights."""
    rows = []
    for name, rhat, size in (
        ("predictions, bulk", diagnosis.rhat_function, diagnosis.ess_function),
        ("predictions, tail", diagnosis.rhat_function[:0], diagnosis.tail_ess_function),
        ("weights (secondary)", diagnosis.rhat_parameters, diagnosis.ess_parameters),
    ):
        rhats, sizes = upper(rhat), lower(size)
        rows.append(
            (
                name,
                *(f"{rhats[key]:.3f}" if rhat.size else "" for key in ("median", "q95", "max")),
                *(f"{sizes[key]:.0f}" for key in ("min", "median")),
            )
        )
    header = ("", "R-hat median", "95 %", "max", "ESS min", "median")
    return Table("Do the chains agree, and what are their draws worth?", header, rows)


def _numbers(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    yield (
        "Log density",
        f"R-hat {diagnosis.rhat_log_prob:.3f}, ESS {diagnosis.ess_log_prob:.0f}",
    )
    gaps = upper(diagnosis.mean_gap)
    yield (
        "Means of the chains",
        f"differ by {gaps['median']:.2g} standard deviations (median), at most {gaps['max']:.2g}",
    )
    yield (
        "Divergent transitions",
        f"{diagnosis.num_divergent} of {diagnosis.num_transitions}",
    )
    rows = None if diagnosis.fit is None else diagnosis.fit.rows
    if rows is not None:
        yield from (("Rows of the fit" if not n else "", t) for n, t in enumerate(rows_texts(rows)))


def traces(subject: Subject) -> Section:
    """Draw by draw."""
    anchor, title = "traces", "Traces"
    if subject.diagnosis is None:
        return Section(anchor, title, [f"{subject.ensemble.no_chains}: there is nothing to trace."])
    found = find_traces(subject.model)
    caption = (
        "Log density and predictions at reference inputs, draw by draw; on the right, how the draws "
        "are distributed. Chains that agree overlap."
    )
    figure = drawing(
        "traces",
        caption,
        (WIDTH + 0.6, 1.4 * len(found) + 0.4),
        draw_traces,
        found,
        grid=Grid(len(found), 2, _LAYOUT),
    )
    return Section(anchor, title, drawings=[figure])
