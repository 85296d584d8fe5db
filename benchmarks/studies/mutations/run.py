"""Which check of the suite sees which seeded bug: benchmarks/results/mutations.md, in minutes.

Run from a checkout with the package installed: python -m benchmarks mutations
"""

import os
import warnings

from benchmarks.lib.common import keep, markdown

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
LAYERS = {
    "B": "B statistical",
    "A": "A deterministic",
    "engine": "engine test",
}

INTRODUCTION = """\
# Seeded bugs and the checks that detect them

Each row is a bug that is put into the library by monkeypatching (`tests/support/bugs`) and tried against
every check that could detect it.

- Layer A checks single transitions. Its column has the checks that failed, with the size of the error or a p
  value, or the number of checks if none failed ("silent"). Tests of the engine are in the same column.
- Layer B starts from exact draws, makes ten transitions and compares the result with the exact distribution:
  a skewed density in three dimensions (B skewed), and the joint distribution of weights and rows of a
  logistic regression (B joint). Cells are p values at 4 000 and at 20 000 replicates, corrected for the
  number of statistics; a single number is of 4 000 replicates. A p value below {alarm:.0e} is an alarm.
- Other B: the joint distribution of a line with learned noise and prior scales (hierarchical), the swaps of a
  power posterior (sweep), and the distributions of its rungs.

One alarm catches a bug. The last rows have no bug, and must raise no alarm. The two harmless changes leave
the target invariant, so layer B must raise no alarm; layer A, which checks the mechanism, is not applied.
"""


def main():
    """Examines all bugs and all kernels without fault, and keeps the table."""
    warnings.simplefilter("ignore")
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    from tests.support.bugs.mutation import (
        case_checks,
        checks_for,
        examine,
        seeded,
        statistical_checks,
    )
    from tests.support.bugs.table import BUGS, HARMLESS
    from tests.support.kernels.cases import CASES
    from tests.support.kernels.invariance import ALARM

    def all_of(checks):
        return {name: examine(check) for name, check in checks.items()}

    rows, caught = [], 0
    for name, bug in BUGS.items():
        with seeded(bug):
            seen = all_of(checks_for(bug))
        alarms = any(alarm for alarm, _ in seen.values())
        caught += alarms
        verdict = "caught" if alarms else f"SURVIVED: {bug.survives}"
        rows.append(row(name, bug.changes, seen, verdict))
    for name, bug in HARMLESS.items():
        with seeded(bug):
            seen = all_of(statistical_checks(bug.case))
        rows.append(row(name, bug.changes, seen, silence(seen, "harmless")))
    clean = {name: case_checks(name) for name in CASES}
    clean["density and engine"] = {
        what: check for bug in BUGS.values() for what, check in bug.checks.items()
    }
    for name, checks in clean.items():
        seen = all_of(checks)
        rows.append(row(name, "nothing", seen, silence(seen, "no fault")))
    header = ["bug", "change", "A or engine test"]
    header += [
        "B skewed: p at 4 000 / 20 000",
        "B joint: p at 4 000 / 20 000",
        "other B: p",
        "layers with an alarm",
        "verdict",
    ]
    total = f"{caught} of {len(BUGS)} bugs are caught."
    keep("mutations.md", f"{INTRODUCTION.format(alarm=ALARM)}\n{total}\n\n{markdown(header, rows)}")


def row(name, changes, seen, verdict):
    """One line of the table, of a dict from checks to (alarm, what was seen)."""

    def p(check):
        return " / ".join(seen[what][1] for what in (check, f"{check}, large") if what in seen)

    targets = ("B skewed", "B joint")
    others = [
        f"{what.removeprefix('B ')}: {text}"
        for what, (_, text) in seen.items()
        if what.startswith("B") and not what.startswith(targets)
    ]
    exact = {what: found for what, found in seen.items() if not what.startswith("B")}
    failed = [
        f"{what.removeprefix('A ')} ({'p ' * text.startswith('<')}{text})"
        for what, (alarm, text) in exact.items()
        if alarm
    ]
    layers = [
        layer
        for start, layer in LAYERS.items()
        if any(alarm and what.startswith(start) for what, (alarm, _) in seen.items())
    ]
    silent = f"silent ({len(exact)})" if exact else "not asked"
    return [
        name,
        changes.replace("|", "\\|"),
        "; ".join(failed) or silent,
        *(p(check) or "-" for check in targets),
        "; ".join(others) or "-",
        ", ".join(layers) or "none",
        verdict,
    ]


def silence(seen, words):
    """The verdict on what must raise no alarm."""
    raised = [what for what, (alarm, _) in seen.items() if alarm]
    return f"FALSE ALARM of {', '.join(raised)}" if raised else f"{words}, no alarm"


if __name__ == "__main__":
    main()
