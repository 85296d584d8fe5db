"""A Keras copy of a perceptron beside the perceptron: log density, and time of a gradient.

    python -m benchmarks keras_models [--quick --output FOLDER]

One chain, 11 746 rows, 5-20-20-1, tanh. Three sides of one posterior: `BayesianMLP`; a
`keras.Sequential` of Dense layers in `BayesianModel`, which recognises it; and the same layers in a
subclassed model, which it cannot recognise, so that Keras computes it. Compiled programs of gradient
steps alternate in one process. The other models of the tests follow, for their size.
"""

import argparse
import time
import warnings

import numpy as np

from benchmarks.lib.common import add_common_options, in_turns, keep, markdown, output_folder

warnings.filterwarnings("ignore")
NUM_ROWS, REPEATS, LAYER_SIZES = 11_746, 15, [5, 20, 20, 1]
# Gradients of a timed run, and of one of the other models, which see fewer rows.
COUNT, OTHER_ROWS, OTHER_COUNT = 50, 1000, 10


def rows(num_rows):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(num_rows, LAYER_SIZES[0]))
    return x, np.sin(x[:, :1] + x[:, 1:2]) + 0.05 * generator.normal(size=(num_rows, 1))


def specs(dtype):
    """Dict side -> spec of the same posterior."""
    import keras
    from keras import layers

    import tfbnn
    from tfbnn.priors import Normal

    def dense():
        hidden = [layers.Dense(width, activation="tanh") for width in LAYER_SIZES[1:-1]]
        return [*hidden, layers.Dense(LAYER_SIZES[-1])]

    class Copy(keras.Model):
        def __init__(self, **named):
            super().__init__(**named)
            self.inside = dense()

        def call(self, x):
            for layer in self.inside:
                x = layer(x)
            return x

    copy = Copy()
    copy(np.zeros((1, LAYER_SIZES[0]), "float32"))
    settings = dict(prior=Normal(1.0), parameterization="ntk", dtype=dtype)
    settings |= dict(x_transform=None, y_transform=None)
    stack = keras.Sequential([keras.Input((LAYER_SIZES[0],)), *dense()])
    return {
        "BayesianMLP": tfbnn.BayesianMLP(LAYER_SIZES, **settings).spec,
        "Keras, Sequential": tfbnn.BayesianModel(stack, **settings).spec,
        "Keras, subclassed": tfbnn.BayesianModel(copy, **settings).spec,
    }


def differences(num_rows, dtype):
    """Dict side -> largest relative differences of log density and gradient from the perceptron."""
    import tensorflow as tf

    from tfbnn.engine.density.data import make_data
    from tfbnn.engine.density.potential import Potential
    from tfbnn.engine.density.value_and_gradient import compiled_value_and_gradient

    found, data = {}, make_data(*rows(num_rows), None, dtype)
    for side, spec in specs(dtype).items():
        theta = 0.3 * np.random.default_rng(1).normal(size=(4, spec.num_parameters))
        values = compiled_value_and_gradient(Potential(spec))(tf.constant(theta, dtype), data)
        found[side] = [value.numpy().astype(float) for value in values]
    expected, slopes = found["BayesianMLP"]
    return {
        side: (
            float(np.abs(value / expected - 1).max()),
            float(np.abs(gradient - slopes).max() / np.abs(slopes).max()),
        )
        for side, (value, gradient) in found.items()
    }


def timed(spec, x, y, count):
    """(Function () -> milliseconds per gradient, compile seconds) of one chain, compiled by XLA."""
    import tensorflow as tf

    from tfbnn.engine.basis.compile import compiled
    from tfbnn.engine.density.data import make_data
    from tfbnn.engine.density.potential import Potential

    potential, data = Potential(spec), make_data(x, y, None, spec.dtype)

    def steps(theta, data):
        def one(index, theta):
            return index + 1, theta + 1e-7 * potential.value_and_gradient(theta, data)[1]

        return tf.while_loop(lambda index, _: index < count, one, (tf.constant(0), theta))[1]

    program = compiled(steps, jit_compile=True)
    start = 0.1 * np.random.default_rng(1).normal(size=(1, spec.num_parameters))
    theta = tf.constant(start, spec.dtype)
    began = time.perf_counter()
    program(theta, data).numpy()
    compilation = time.perf_counter() - began

    def run():
        began = time.perf_counter()
        program(theta, data).numpy()
        return 1e3 * (time.perf_counter() - began) / count

    return run, compilation


def compare(num_rows, repeats, count):
    """Lines of the table of the perceptron and its copies."""
    by_dtype = {dtype: differences(num_rows, dtype) for dtype in ("float32", "float64")}
    x, y = rows(num_rows)
    runs = {side: timed(spec, x, y, count) for side, spec in specs("float32").items()}
    found = in_turns({side: run for side, (run, _) in runs.items()}, repeats)
    reference = np.array(found["BayesianMLP"])
    return [
        [
            side,
            *(f"{value:.1e}" for dtype in by_dtype for value in by_dtype[dtype][side]),
            f"{np.median(times):.2f}",
            f"{np.median(np.array(times) / reference):.3f}",
            f"{runs[side][1]:.1f}",
        ]
        for side, times in found.items()
    ]


def others(num_rows, repeats, count):
    """Lines of the table of the other models of the tests."""
    from tests.support.keras_models import KINDS

    lines = []
    for name, kind in KINDS.items():
        spec = kind.model().spec
        x, y = kind.rows(num_rows)
        run, compilation = timed(spec, x.reshape(num_rows, -1), np.reshape(y, (-1, 1)), count)
        lines.append(
            [
                name,
                f"{spec.num_parameters}",
                "yes" if spec.network.no_jacobian is None else "no",
                "no" if spec.readout is None else "yes",
                f"{np.median([run() for _ in range(repeats)]):.2f}",
                f"{compilation:.1f}",
            ]
        )
    return lines


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    num_rows, repeats, count = (500, 3, 5) if options.quick else (NUM_ROWS, REPEATS, COUNT)
    header = [
        "model",
        "error of the log density, float32",
        "error of the gradient, float32",
        "error of the log density, float64",
        "error of the gradient, float64",
        "ms per gradient",
        "time / that of BayesianMLP",
        "compilation, s",
    ]
    other_header = [
        "model",
        "parameters",
        "derivatives per row",
        "readout",
        "ms per gradient",
        "compilation, s",
    ]
    lines = compare(num_rows, repeats, count)
    more = others(100 if options.quick else OTHER_ROWS, repeats, min(count, OTHER_COUNT))
    keep(
        "keras_models.md",
        f"# Keras copies of {'-'.join(map(str, LAYER_SIZES))}, one chain, {num_rows} rows\n\n"
        f"{markdown(header, lines)}\n\nAll three models have the same posterior. Keras computes "
        "the subclassed model; the Sequential model is recognised as a perceptron. Errors are the largest relative "
        f"differences from `BayesianMLP` at four networks. Times are medians of {repeats} runs of {count} gradients in "
        "float32, compiled by XLA, in which the models take turns; the ratio is the median of the ratios.\n\n"
        "## Other models\n\n"
        f"{markdown(other_header, more)}\n\nThe models are those of `tests/support/keras_models.py`, "
        f"on {100 if options.quick else OTHER_ROWS} rows. The first is recognised as a perceptron. The columns say "
        "whether derivatives of the outputs per row, and the readout (a linear last layer), are available.",
        folder,
    )


if __name__ == "__main__":
    main()
