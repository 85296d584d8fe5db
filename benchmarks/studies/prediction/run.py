"""Milliseconds per prediction of 1000 networks, seconds to load them, and a whole cold process.

    python -m benchmarks prediction [--quick --output FOLDER]

The networks of table 8.1 of the thesis (1 to 5 hidden layers of 50), with random weights, which do
not matter here; mean and standard deviation included. NumPy is timed against the backend of TensorFlow,
and against one program of XLA that computes no more than these two, in turns, both of them on a GPU
where there is one; loading against h5py reading the same bytes; a cold
process against an empty interpreter. Nothing here asserts a time. The table and the histogram of
loading times are benchmarks/results/prediction.*.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np

import tfbnn
from benchmarks.lib.common import add_common_options, output_folder
from benchmarks.studies.prediction.report import report
from tfbnn.data.training_inputs import summarise_inputs
from tfbnn.data.transforms import fit_pipeline
from tfbnn.posterior import forward
from tfbnn.posterior.ensemble import Ensemble

NUM_CHAINS, NUM_RESULTS, WIDTH = 4, 250, 50
POINTS = (1, 16, 256, 4096)
STATISTICS = ("lp", "acceptance_rate", "step_size", "n_steps", "diverging", "energy")
COLD = "import tfbnn; tfbnn.load({path!r}).predict([[0.1, 0.2, 0.3, 0.4, 0.5]])"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    options = parser.parse_args(arguments)
    depths = (1, 2) if options.quick else (1, 2, 3, 4, 5)
    repeats = 3 if options.quick else 25
    predictions, loads, colds = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for depth in depths:
            model = random_model([5, *[WIDTH] * depth, 1])
            path = str(Path(folder) / f"{depth}.h5")
            model.save(path)
            loads.append(time_loading(model, path, 4 * repeats))
            if depth in (1, 3):
                colds.append(time_cold(model, path, repeats // 2))
            for num_points in POINTS[:2] if options.quick else POINTS:
                predictions.append(time_prediction(model, num_points, repeats))
    report(predictions, loads, colds, limits(), output_folder(options))


def random_model(layers):
    """A fitted model [5, .., 1] with log10 targets whose networks are draws of a prior."""
    generator = np.random.default_rng(len(layers))
    model = tfbnn.BayesianMLP(
        layers, prior=tfbnn.priors.Normal(1.0), y_transform=["log10", "standardize"]
    )
    spec = model.spec
    x, y = generator.normal(size=(500, 5)), 10.0 ** generator.normal(size=(500, 1))
    shape = (NUM_CHAINS, NUM_RESULTS)
    x_pipeline = fit_pipeline(spec.x_transform, x, "x")
    ensemble = Ensemble(
        spec=spec,
        x_pipeline=x_pipeline,
        y_pipeline=fit_pipeline(spec.y_transform, y, "y"),
        draws=0.2 * generator.normal(size=(*shape, spec.layout.num_parameters)).astype("float32"),
        sample_stats={name: np.zeros(shape) for name in STATISTICS},
        chain_weights=np.full(NUM_CHAINS, 1.0 / NUM_CHAINS),
        x_reference=x[:200],
        training_inputs=summarise_inputs(x_pipeline.forward(x)),
    )
    return tfbnn.BayesianMLP.from_ensemble(ensemble)


def in_turns(functions, repeats, calls=1):
    """Seconds per call [functions, repeats] of functions that take turns, after one call each.

    Each turn has so many calls: a scan, too, finds the weights in the cache.
    """
    seconds = np.empty((len(functions), repeats))
    for function in functions:
        function()
    for index in range(repeats):
        for number, function in enumerate(functions):
            began = time.perf_counter()
            for _ in range(calls):
                function()
            seconds[number, index] = (time.perf_counter() - began) / calls
    return seconds


def time_prediction(model, num_points, repeats):
    """A row: model, points, seconds of NumPy in both spaces, of TensorFlow and of XLA alone."""
    x = np.random.default_rng(1).normal(size=(num_points, 5))
    functions = (
        lambda: predict(model, x, "original"),
        lambda: predict(model, x, "transformed"),
        lambda: predict(model, x, "transformed", by_tensorflow=True),
        xla_moments(model, x),
    )
    repeats = max(3, repeats // (1 + num_points // 1000))
    seconds = in_turns(functions, repeats, calls=1 if num_points > 100 else 20)
    names = ("original", "transformed", "tensorflow", "xla")
    medians = dict(zip(names, np.median(seconds, axis=1)))
    return {"layers": model.spec.layer_sizes, "points": num_points} | medians


def predict(model, x, space, by_tensorflow=False):
    """A prediction by NumPy or by TensorFlow, whatever its size and wherever it runs."""
    with mock.patch.object(forward, "_gpu_is_at_hand", lambda: by_tensorflow):
        with mock.patch.object(forward, "_GPU_VALUES", 1):
            return model.predict(x, space=space)


def xla_moments(model, x):
    """Mean and standard deviation in transformed space, float32, by one XLA program."""
    # The package's, which leaves all bits of float32 to products on a GPU.
    from tfbnn.engine.basis.libraries import tf

    spec, ensemble = model.spec, model.posterior
    # Split and laid out beforehand, as NumPy has them.
    weights = [
        (tf.constant(part[..., :-1]), tf.constant(part[..., -1:]))
        for part in ensemble.effective_weights
    ]

    @tf.function(jit_compile=True, autograph=False)
    def moments(columns):
        (kernel, bias), *others = weights
        hidden = tf.matmul(tf.reshape(kernel, [-1, kernel.shape[-1]]), columns)
        hidden = tf.reshape(hidden, [kernel.shape[0], WIDTH, -1]) + bias
        for kernel, bias in others:
            hidden = tf.matmul(kernel, tf.tanh(hidden)) + bias
        return tf.reduce_mean(hidden, axis=0), tf.math.reduce_std(hidden, axis=0)

    def predict():
        columns = ensemble.x_pipeline.forward(x).astype(spec.dtype).T
        return [part.numpy() for part in moments(tf.constant(columns))]

    expected = model.predict(x, space="transformed").columns
    for found, part in zip(predict(), expected):
        np.testing.assert_allclose(found.T, part, rtol=1e-3, atol=1e-4)
    return predict


def time_loading(model, path, repeats):
    """A row: model, bytes, seconds of every `tfbnn.load` and of h5py reading every dataset."""
    import h5py

    def read():
        found = []
        with h5py.File(path) as file:
            file.visititems(
                lambda _, item: found.append(item[()]) if isinstance(item, h5py.Dataset) else None
            )
        return found

    load, plain = in_turns((lambda: tfbnn.load(path), read), repeats)
    size = Path(path).stat().st_size
    return {"layers": model.spec.layer_sizes, "bytes": size, "load": load, "plain": plain}


def time_cold(model, path, repeats):
    """A row: model, seconds of whole processes that predict one point, and of empty ones."""
    codes = (COLD.format(path=path), "pass", "import numpy, h5py")
    commands = [[sys.executable, "-c", code] for code in codes]
    functions = [
        lambda command=command: subprocess.run(command, check=True) for command in commands
    ]
    predict, empty, libraries = np.median(in_turns(functions, max(repeats, 3)), axis=1)
    return {
        "layers": model.spec.layer_sizes,
        "predict": predict,
        "empty": empty,
        "libraries": libraries,
    }


def limits():
    """Measure the speed of this machine: bytes read, multiplications and tanh per second."""
    numbers = np.ones(20_000_000, np.float32)
    matrix = np.ones((2000, 2000), np.float32)
    part = np.full(50_000, 0.3, np.float32)
    out = np.empty_like(part)
    functions = (numbers.sum, lambda: matrix @ matrix, lambda: np.tanh(part, out=out))
    total, product, tanh = in_turns(functions, 9).min(axis=1)
    return {
        "bytes": numbers.nbytes / total,
        "products": matrix.size * len(matrix) / product,
        "tanh": part.size / tanh,
    }


if __name__ == "__main__":
    main()
