"""A child of run.py: fits folds one after the other and says what each cost.

    python benchmarks/studies/cross_validation/folds.py KERNEL SIZE,SIZE,...

SIZE are the rows left out of each fold; all rows together are the table. Standard output has a JSON
list; standard error has a line before each fold, between TensorFlow's own.
"""

import json
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # the repository, of which this is a part

import numpy as np

import tfbnn
from benchmarks.lib.xla_log import NEXT_PART

KERNELS = {
    "hmc": tfbnn.kernels.HMC(num_leapfrog_steps=16),
    "nuts": "nuts",
}


def main():
    name, sizes = sys.argv[1], list(map(int, sys.argv[2].split(",")))
    # So that no fold pays for it: the libraries are imported at first use, this one's parts too.
    import tensorflow_probability

    tensorflow_probability.mcmc.HamiltonianMonteCarlo  # noqa: B018
    num_traces = keep_functions()
    warnings.simplefilter("ignore")  # so few draws have converged nowhere
    fold_of_row = np.repeat(np.arange(len(sizes)), sizes)
    generator = np.random.default_rng(0)
    generator.shuffle(fold_of_row)
    x = generator.normal(size=(len(fold_of_row), 3))
    y = np.sin(x[:, :1]) + 0.1 * generator.normal(size=(len(x), 1))
    found = []
    for fold in range(len(sizes)):
        print(NEXT_PART, file=sys.stderr, flush=True)
        before = num_traces()
        found.append(one(name, x, y, fold_of_row == fold) | {"traces": num_traces() - before})
    print(json.dumps(found))


def keep_functions():
    """The package's count of traces, which from now on forgets no function that is gone."""
    try:
        from tfbnn.engine.basis import compile as compiling
    except ImportError:  # of an older checkout
        from tfbnn.engine import compile as compiling  # type: ignore[attr-defined]
    compiling._functions = set()
    return compiling.num_traces


def one(name, x, y, left_out):
    """Seconds of a fold: of its fit, of what the run's clock says of it, and of its score."""
    began, processor = time.perf_counter(), time.process_time()
    model = tfbnn.BayesianMLP([3, 8, 1], prior=tfbnn.priors.Normal(1.0))
    run = model.fit_posterior(
        x[~left_out],
        y[~left_out],
        kernel=KERNELS[name],
        pretraining=tfbnn.Pretraining(),
        num_burnin_steps=20,
        num_results=10,
        verbose=0,
    )
    fitted, processor = time.perf_counter(), time.process_time() - processor
    model.evaluate(x[left_out], y[left_out])
    return {
        "rows": int((~left_out).sum()),
        "fit": fitted - began,
        "processor": processor,
        "evaluate": time.perf_counter() - fitted,
        **run.seconds,
    }


if __name__ == "__main__":
    main()
