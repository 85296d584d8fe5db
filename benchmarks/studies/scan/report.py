"""Table of `run.py`."""

from benchmarks.lib.common import keep, markdown

__all__ = ["report"]

TITLES = {
    "made": "Two processes at leading order, of the package's own",
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
            f"`tfbnn slha table`, all fits and `tfbnn slha make` took {row['make']:.0f} s, each fit with "
            f"{'`' + row['fit'] + '`' if row['fit'] else 'nothing else than data and target'}. Inputs are those of "
            "`datasets.cross_sections.symmetries`; scores are of the medians and the "
            "distributions that the folder predicts.",
            _scores(row["scores"]),
            f"{row['points']} points, all processes; commands are whole processes, with their "
            f"start. The load of the machine was {row['machine_load']:.1f}, so that CPU seconds say "
            "more than seconds. Spectra have the blocks that are needed and no others; long ones take "
            "longer.",
            _ways(row["ways"], len(row["scores"])),
            "Ranks that share a folder and a host, with OMP_NUM_THREADS=1, as GAMBIT calls them; "
            "times are of the CPU. RSS is what a rank takes by itself, PSS less what it shares with others; the first row "
            "is an interpreter with NumPy and h5py.",
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
        "process", "test rows", "relative error: median", "mean", "90 % below", "RMSE of log10",
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
    header = ("way", "points", "s", "CPU s", "CPU ms per point", "CPU ms per cross section")
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
    header = ("ranks", "CPU s to load", "CPU ms per point", "RSS, MB", "PSS, MB")
    return markdown(header, table)
