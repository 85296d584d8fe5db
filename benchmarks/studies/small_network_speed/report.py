"""Tables of benchmarks/studies/small_network_speed/run.py."""

from benchmarks.lib.common import markdown

__all__ = ["report"]


def report(speeds, shared, num_chains, missing):
    """The whole text.

    Args:
        speeds: Dict name -> (wall, processor) seconds per iteration of all chains.
        shared: Rows of (layers, number of rows, {chains: processor seconds per iteration}).
        num_chains: Chains of the first table.
        missing: Optional packages that were not there to compare with.
    """
    lines = [
        [name, f"{1e6 * wall:.2f}", f"{1.0 / wall:,.0f}", f"{1.0 / processor:,.0f}"]
        for name, (wall, processor) in speeds.items()
    ]
    header = ["program", "wall-clock time per iteration, us", "iterations per second", "iterations per processor second"]  # fmt: skip
    absent = f"\n\nNot installed: {', '.join(missing)}." if missing else ""
    return "\n\n".join(
        [
            f"# Speed of MALA on XOR: 2-2-1, four rows, {num_chains} chains",
            markdown(header, lines),
            "An iteration advances all chains. Times are the best of alternating runs, without compilation. "
            "`fit_posterior` and its compiled block keep draws and six statistics of every transition, compute a random key "
            "for it by a hash, and sum the density in float64. The others keep only draws, in "
            f"float32.{absent}",
            "## Chains in one program and in several",
            _sharing(shared),
            "Cells have the microseconds of processor time per iteration of all chains in one program. In brackets is the "
            "gain: the time of as many programs with one chain each on one core, divided by this time. Separate "
            "programs run on a core each, so two cores make up for a gain of 2, and their draws do not depend on the number of "
            "chains. Therefore chains share a program on a CPU only if there are eight or more, and parameters times rows "
            "are fewer than 1000.",
        ]
    )


def _sharing(shared):
    chains = list(shared[0][2])
    lines = []
    for layers, num_rows, seconds in shared:
        parameters = sum((a + 1) * b for a, b in zip(layers, layers[1:]))
        alone = seconds[1]
        cells = [f"{1e6 * s:.1f} ({n * alone / s:.1f})" for n, s in seconds.items()]
        lines.append(["-".join(map(str, layers)), num_rows, parameters * num_rows, *cells])
    header = ["network", "rows", "parameters x rows", *(f"chains: {n}" for n in chains)]
    return markdown(header, lines)
