"""Table and figure of `run.py`, of the rows of all machines."""

from statistics import median

from benchmarks.lib.common import keep, markdown
from benchmarks.studies.cpu_gpu.limit import least_seconds, least_traffic
from tfbnn.plots.canvas import line_looks, styled_figure

__all__ = ["NUM_ROWS", "report"]

NUM_ROWS = 11_746
# Hidden units and seconds of a transition of 512 leapfrog steps on a P100, from the thesis.
P100, P100_STEPS = {1024: 0.521, 8192: 3.734}, 512
MODES = ("XLA", "graph")
RATES = ("operation", "tanh", "byte")
KNOWN = {"key", "kind", "device", "chains", "width", "compilation", "machine", *RATES, *MODES}


def report(rows, folder):
    """Prints and keeps everything under `folder`."""
    rows = with_one_rate(rows)
    parts = [
        f"# Time of a gradient of 5-n-1 on {NUM_ROWS} rows",
        "Times are milliseconds per gradient of HMC, medians of runs in turns. With several chains in one program, "
        "times are divided by their number. P is the number of parameters. The limit is the time of the matrix "
        "products and the tanh at the rates of the device, on a GPU plus the time to move activations through its "
        "memory (traffic). XLA is one program that XLA compiles, graph is TensorFlow without XLA.",
    ]
    for chains in sorted({row["chains"] for row in rows}):
        found = by_device([row for row in rows if row["chains"] == chains])
        for device, by_width in found.items():
            parts += [f"## {device}, {in_words(chains)}", device_table(by_width)]
        parts += gains(found, chains)
        if others := rival_lines(found):
            parts += ["## Other packages on the same density, 1 chain, CPU", others]
    parts += ["## Rates and versions", "\n".join(rate_lines(by_device(rows)))]
    keep("cpu_gpu.md", "\n\n".join(parts), folder)
    figure(by_device([row for row in rows if row["chains"] == 1]), folder / "cpu_gpu.png")


def in_words(chains):
    """A number of chains."""
    return f"{chains} chain{'s' if chains > 1 else ''}"


def with_one_rate(rows):
    """The rows, each with the medians of its device's rates: a limit is the device's."""
    found = []
    for row in rows:
        of_device = [other for other in rows if other["device"] == row["device"]]
        measured = {name: [one[name] for one in of_device if name in one] for name in RATES}
        found.append(row | {name: median(rates) for name, rates in measured.items() if rates})
    return found


def by_device(rows):
    """Dict device -> dict width -> row, processors first."""
    found = {}
    for row in sorted(rows, key=lambda row: (row["kind"], row["device"], row["width"])):
        found.setdefault(row["device"], {})[row["width"]] = row
    return found


def device_table(by_width):
    """Times of the modes beside the parts of the limit."""
    first = next(iter(by_width.values()))
    traffic = ["traffic ms"] if "byte" in first else []
    modes = [mode for mode in MODES if any(mode in row for row in by_width.values())]
    header = ["n", "P", "products ms", "tanh ms", *traffic, "limit ms"]
    for mode in modes:
        header += [f"{mode} ms", f"{mode} / limit", f"{mode} compile s"]
    lines = []
    for width, row in by_width.items():
        parts = limit_parts(row)
        line = [width, 7 * width + 1, *map(milliseconds, (*parts, sum(parts)))]
        for mode in modes:
            cells = ["", "", ""]
            if mode in row:
                ratio, compilation = row[mode] / sum(parts), row["compilation"][mode]
                cells = [milliseconds(row[mode]), f"{ratio:.1f}", f"{compilation:.1f}"]
            line += cells
        lines.append(line)
    return markdown(header, lines)


def limit_parts(row):
    """Seconds of the products, of the tanh, and on a GPU of the traffic."""
    layers = [5, row["width"], 1]
    parts = least_seconds(layers, NUM_ROWS, row["operation"], row["tanh"])
    return (*parts, least_traffic(layers, NUM_ROWS) * row["byte"]) if "byte" in row else parts


def gains(found, chains):
    """Return a section on how many times faster each GPU is than each processor, both by XLA."""
    kinds = {device: next(iter(rows.values()))["kind"] for device, rows in found.items()}
    processors, gpus = (
        [device for device, kind in kinds.items() if kind == wanted] for wanted in ("CPU", "GPU")
    )
    pairs = [(processor, gpu) for gpu in gpus for processor in processors]
    if not pairs:
        return []
    timed = [{n for n, row in rows.items() if "XLA" in row} for rows in found.values()]
    widths = sorted(set.intersection(*timed))
    lines = [
        [n, *(f"{found[a][n]['XLA'] / found[b][n]['XLA']:.1f}" for a, b in pairs)] for n in widths
    ]
    header = ["n", *(f"time on {processor} / time on {gpu}" for processor, gpu in pairs)]
    return [f"## Speed-up of a GPU, {in_words(chains)}", markdown(header, lines)]


def rival_lines(found):
    """The table of the rivals, empty where none was timed."""
    rows = [row for by_width in found.values() for row in by_width.values() if set(row) - KNOWN]
    names = list(dict.fromkeys(name for row in rows for name in row if name not in KNOWN))
    lines = []
    for row in rows:
        others = [row[name] for name in names]
        ratios = [f"{row['XLA'] / other:.2f}" for other in others]
        lines.append([row["width"], *map(milliseconds, (row["XLA"], *others)), *ratios])
    header = ["n", "tfbnn ms", *(f"{name} ms" for name in names)]
    return markdown([*header, *(f"tfbnn / {name}" for name in names)], lines) if lines else ""


def rate_lines(found):
    """Yield lines on what the limits are made of, and on where and with what each device was timed."""
    for device, by_width in found.items():
        row = next(iter(by_width.values()))
        memory = f", {1e-9 / row['byte']:.0f} GB/s in its memory" if "byte" in row else ""
        where = sorted({row["machine"] for row in by_width.values()})
        yield (
            f"- {device}: {1e-9 / row['operation']:.0f} GFLOP/s in a float32 product of matrices, "
            f"{1e9 * row['tanh']:.2g} ns per tanh on all cores{memory}; {'; '.join(where)}"
        )


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g}"


def figure(found, path):
    """Seconds per transition of 512 leapfrog steps against width, on log-log axes."""
    with styled_figure(1, 1, (6.4, 4.6)) as (canvas, panels):
        _draw(panels[0, 0], found)
        canvas.savefig(path, dpi=120)


def _draw(axes, found):
    looks, dashes = iter(line_looks(24)), iter(("--", ":", "-.") * 3)
    for device, by_width in found.items():
        for mode in MODES:
            points = {n: P100_STEPS * row[mode] for n, row in by_width.items() if mode in row}
            if points:
                look = next(looks) | {"marker": "o", "label": f"{device}, {mode}"}
                axes.loglog(list(points), list(points.values()), **look)
        limit = [P100_STEPS * sum(limit_parts(row)) for row in by_width.values()]
        axes.loglog(list(by_width), limit, next(dashes), color="k", label=f"{device}, limit")
    axes.loglog(list(P100), list(P100.values()), "k^", label="P100 (thesis)")
    axes.set(xlabel="hidden units n of 5-n-1", ylabel="seconds per transition (L = 512)")
    axes.legend(fontsize=7)
