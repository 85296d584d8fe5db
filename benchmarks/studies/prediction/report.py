"""Table and histogram of `run.py`."""

import numpy as np

from benchmarks.lib.common import gpu_name, keep, markdown
from tfbnn.plots.canvas import line_looks, styled_figure
from tfbnn.system.threads import num_cores

__all__ = ["report"]

# Sizes of 4-byte numbers.
_WORD = 4
NUM_NETWORKS = 1000


def report(predictions, loads, colds, limits, folder):
    """Prints and keeps everything under `folder`."""
    text = "\n\n".join(
        [
            "# Predictions of 1000 networks",
            _predictions(predictions, limits),
            _loads(loads),
            _colds(colds),
        ]
    )
    keep("prediction.md", text, folder)
    _histogram(loads, folder / "prediction_load.png")


def _name(layers):
    return "-".join(map(str, layers))


def _predictions(rows, limits):
    table = [
        (
            _name(row["layers"]),
            row["points"],
            f"{1e3 * row['original']:.3g}",
            f"{1e3 * row['transformed']:.3g}",
            f"{1e3 * row['tensorflow']:.3g}",
            f"{1e3 * row['xla']:.3g}",
            f"{row['transformed'] / row['xla']:.2f}",
            f"{1e3 * _bound(row, limits):.2g}",
            f"{row['transformed'] / _bound(row, limits):.1f}",
        )
        for row in rows
    ]
    where = f" on {gpu}" if (gpu := gpu_name()) else ""
    header = (
        "network", "points", "NumPy, ms", "NumPy, transformed targets, ms",
        f"TensorFlow{where}, ms", f"XLA{where}, ms", "NumPy / XLA", "bound, ms", "NumPy / bound",
    )  # fmt: skip
    return (
        "A prediction is the mean and standard deviation of all networks at some points. Times are medians of runs "
        "in turns. TensorFlow computes all that a prediction returns, and XLA only these two, both for transformed "
        "targets. Compare them with the fourth column, NumPy for transformed targets; the ratios are those of this column. The bound "
        f"is the larger of two times: that to read all weights once at {limits['bytes'] / 1e9:.1f} GB/s (one thread, "
        f"measured), and that of the multiplications at {limits['products'] / 1e9:.0f} G/s (a large product on all "
        f"cores) and of tanh at {limits['tanh'] / 1e9:.1f} G/s per core on {num_cores()} cores.\n\n"
        + markdown(header, table)
    )


def _bound(row, limits):
    layers = row["layers"]
    weights = sum((a + 1) * b for a, b in zip(layers[:-1], layers[1:])) * NUM_NETWORKS
    units = sum(layers[1:-1]) * NUM_NETWORKS
    reading = weights * _WORD / limits["bytes"]
    computing = weights / limits["products"] + units / (limits["tanh"] * num_cores())
    return max(reading, computing * row["points"])


def _loads(rows):
    table = [
        (
            _name(row["layers"]),
            f"{row['bytes'] / 1e6:.1f}",
            f"{1e3 * np.median(row['load']):.1f}",
            f"{1e3 * np.median(row['plain']):.1f}",
            f"{np.median(row['load']) / np.median(row['plain']):.2f}",
        )
        for row in rows
    ]
    header = ("network", "size of the file, MB", "tfbnn.load, ms", "h5py alone, ms", "ratio")
    return (
        "Loading a model is compared with reading all datasets of the file by h5py alone.\n\n"
        + markdown(header, table)
    )


def _colds(rows):
    table = [
        (
            _name(row["layers"]),
            f"{row['predict']:.2f}",
            f"{row['empty']:.2f}",
            f"{row['libraries']:.2f}",
            f"{row['predict'] - row['empty']:.2f}",
        )
        for row in rows
    ]
    header = (
        "network", "whole process, s", "empty interpreter, s", "import of numpy and h5py, s",
        "whole process minus empty interpreter, s",
    )  # fmt: skip
    text = "A whole process imports tfbnn, loads the file and predicts one point. Other processes do less."
    return f"{text}\n\n{markdown(header, table)}"


def _histogram(rows, path):
    with styled_figure(1, 1, (6.0, 3.5)) as (canvas, panels):
        axes = panels[0, 0]
        for row, look in zip(rows, line_looks(len(rows))):
            look |= {"histtype": "step", "label": _name(row["layers"])}
            axes.hist(1e3 * row["load"], bins=20, **look)
        axes.set(xlabel="tfbnn.load, ms", ylabel="loads", xscale="log")
        axes.legend()
        canvas.savefig(path, dpi=150)
