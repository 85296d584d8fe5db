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
    header = ["", "us per iteration", "iterations per second", "per second of processor time"]
    absent = f"\n\nNot installed: {', '.join(missing)}." if missing else ""
    return "\n\n".join(
        [
            f"# MALA on XOR: 2-2-1, four rows, {num_chains} chains",
            markdown(header, lines),
            "One iteration advances all chains. Best of alternating runs; compilation is not "
            "counted. `fit_posterior` and its block keep draws and six statistics of every "
            "transition and hash a random key for it; its density is summed in float64. The others "
            f"keep draws only, in float32.{absent}",
            "## When chains had better share a program",
            _sharing(shared),
            "Microseconds of processor time per iteration of all chains in one program, and the "
            "gain over as many programs with one chain each on one core. Apart, chains occupy a "
            "core each, so that two cores make up for a gain of 2; and draws do not depend on the "
            "number of chains. Hence the rule: chains share a program on a CPU if they are eight "
            "or more and parameters times rows are fewer than 1000.",
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
