"""Table of `run.py`."""

from benchmarks.lib.common import keep, markdown

__all__ = ["report"]

TITLES = {
    "made": "Two processes at leading order, which the package computes",
    "real": "One process at next-to-leading order",
}


def report(rows, folder):
    """Prints and keeps the table of the rows so far, by name."""
    parts = ["# A scan of points by `tfbnn slha`", *(part(name, rows[name]) for name in rows)]
    keep("scan.md", "\n\n".join(parts), folder)


def part(name, row):
    """All about one folder of processes."""
    return "\n\n".join(
        [
            f"## {TITLES[name]}",
            f"`tfbnn slha table`, all fits and `tfbnn slha make` took {row['make']:.0f} s. The fits have "
            f"{'`' + row['fit'] + '`' if row['fit'] else 'no options other than data and target'}, and the inputs of "
            "`datasets.cross_sections.symmetries`. Scores are of the predictions of the process folder on new points: "
            "relative errors (median, mean and 90 % quantile) of the predicted medians, and the share of points "
            "within 1 and 2 sigma of the predicted distributions.",
            _scores(row["scores"]),
            f"The next table has the times for {row['points']} points and all processes. Times of commands include their "
            f"start. The load average of the machine was {row['machine_load']:.1f}, so compare CPU times rather than "
            "wall-clock times. Spectra have only the blocks that are needed; whole spectra take longer.",
            _ways(row["ways"], len(row["scores"])),
            "Ranks are processes on one host that read the same folder, with OMP_NUM_THREADS=1, and predict point by "
            "point, as GAMBIT does. RSS is the memory of a rank. PSS counts memory that n processes share as 1/n. The "
            "first row is a Python interpreter with NumPy and h5py, without networks.",
            _ranks(row["ranks"]),
        ]
    )


def _scores(scores):
    table = [
        (
            pids,
            found["rows"],
            *(_percent(found[f"relative_error_{name}"]) for name in ("median", "mean", "q90")),
            f"{found['rmse_log10']:.4f}" if found["rmse_log10"] is not None else "",
            ", ".join(f"{share:.3f}" for share in found["within"]),
        )
        for pids, found in scores.items()
    ]
    header = (
        "process", "test rows", "relative error: median", "mean", "90 %", "RMSE of log10",
        "within 1, 2 sigma",
    )  # fmt: skip
    return markdown(header, table)


def _percent(value):
    return f"{100 * value:.2f} %"


def _ways(ways, num_processes):
    table = [
        (
            what,
            count,
            f"{seconds:.2f}",
            f"{cpu:.2f}",
            f"{1000 * cpu / count:.3f}",
            f"{1000 * cpu / count / num_processes:.3f}",
        )
        for what, (seconds, cpu, count) in ways.items()
    ]
    header = (
        "method", "points", "wall-clock time, s", "CPU time, s", "CPU time per point, ms",
        "CPU time per cross section, ms",
    )  # fmt: skip
    return markdown(header, table)


def _ranks(ranks):
    table = [
        (
            row["ranks"] or "none",
            f"{row['load']:.2f}" if row["ranks"] else "",
            f"{1000 * row['point']:.2f}" if row["ranks"] else "",
            f"{row['rss']:.0f}",
            f"{row['pss']:.0f}",
        )
        for row in ranks
    ]
    header = ("ranks", "CPU time to load, s", "CPU time per point, ms", "RSS, MB", "PSS, MB")
    return markdown(header, table)
