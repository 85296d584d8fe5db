"""One row of `run.py`, or as much of it as there is time for: JSON in, JSON out.

    TFBNN_DATA=folder python benchmarks/studies/thesis/fit.py ORDER

ORDER is {"case": {...}, "folder": ..., "output": ..., "minutes": 15, "num_rows": null}. The last line that
is printed is the row, or null where the run folder has to be gone on with.
"""

import json
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # the repository, of which this is a part

import numpy as np

import tfbnn
from benchmarks.lib.chains import Deadline, quiet
from benchmarks.lib.common import revision
from benchmarks.lib.problems import Problem, neutralino
from benchmarks.studies.thesis.author import adam_of_author
from benchmarks.studies.thesis.figures import EDGES, TARGET
from benchmarks.studies.thesis.weight_planes import plot_weight_planes
from tfbnn.engine.basis.compile import limit_threads
from tfbnn.engine.basis.libraries import tf, tfp
from tfbnn.engine.density import row_blocks
from tfbnn.kernels import HMC, NUTS
from tfbnn.likelihoods import Gaussian
from tfbnn.priors import Normal

# Prior precision 1e-3, noise scale 1 on log10 of the target.
PRIOR_PRECISION, BATCH_SIZE = 1e-3, 32
MODEL = {"likelihood": Gaussian(1.0), "y_transform": ["log10"]}
NUM_LEAPFROG_STEPS, SKIPPED = 512, 10
# Of HMC and NUTS in the author's program; else the defaults of the kernels.
ACCEPTANCE = 0.75
SURROGATE_DRAWS = 1000
ROW_BLOCK_VALUES = 2**16
# The study of the longest chain, whose planes of weights are drawn, and the model of predictions at two points.
CHAIN_OF_PLANES = "draws"
MODEL_OF_POINTS = 3


def main():
    """Fits, scores, prints."""
    limit_threads()
    # A process has one thread, for which blocks that stay in the cache of its core are up to twice as fast.
    row_blocks._CPU_VALUES = ROW_BLOCK_VALUES
    warnings.filterwarnings("ignore", "The (networks|draws) of this model are not")
    order = json.loads(sys.argv[1])
    case, problem = order["case"], rows_of(order["num_rows"])
    began = time.perf_counter()
    if case["study"] == "surrogates":
        model, found = SURROGATES[case["kernel"]](case, problem)
    else:
        model, found = chain(case, problem, Path(order["folder"]), 60.0 * order["minutes"])
        if model is None:
            print("null", flush=True)
            return
    found |= judged(model, problem) | {"seconds": time.perf_counter() - began, "at": revision()}
    if (case["study"], case["value"]) == ("models", MODEL_OF_POINTS):
        found["points"] = points(model, problem)
    if case["study"] == CHAIN_OF_PLANES:
        weights = np.random.default_rng(0).choice(model.spec.num_parameters, 4, replace=False)
        plot_weight_planes(model, weights).savefig(Path(order["output"]) / "thesis-planes.png")
    print(json.dumps(found), flush=True)


def rows_of(count):
    """The Problem, or its first so many rows of each part."""
    problem = neutralino("raw", TARGET)
    return Problem(*((x[:count], y[:count]) for x, y in problem))


def build(case, precision=PRIOR_PRECISION):
    """The model of the thesis with these hidden layers."""
    settings = MODEL | ({"x_transform": None} if case["inputs"] == "raw" else {})
    return tfbnn.BayesianMLP([5, *case["hidden"], 1], prior=Normal(precision**-0.5), **settings)


def adam(case):
    """Its pretraining."""
    return tfbnn.Pretraining(epochs=case["epochs"], batch_size=BATCH_SIZE, newton_iterations=0)


def network(case, problem, precision=PRIOR_PRECISION):
    """A model of one network, by ADAM: what chains start from."""
    model = build(case, precision)
    model.fit_map(*problem.train, pretraining=adam(case), verbose=0)
    return model


def batch_start(case, problem):
    """A model of one network, by ADAM on the potential of each batch alone, where the prior counts in full.

    "The loss function is the potential" can be read so, or as ours, in which a batch of B of N rows
    stands for all of them. This is ours with the prior's precision times N / B.
    """
    return network(case, problem, PRIOR_PRECISION * len(problem.train[0]) / BATCH_SIZE)


def author_start(case, problem, path):
    """The network that the author's ADAM finds [P], kept for the processes that go on with the chain."""
    if not path.exists():
        x, y = problem.train
        spec = build(case).spec
        np.save(path, adam_of_author(spec, x, np.log10(y), case["epochs"], case["seed"]))
    return np.load(path)


def chain(case, problem, folder, seconds):
    """(The model with all its draws, what the run says); (None, None) where it is not finished."""
    is_raw = case["inputs"] == "raw"
    settings = {"preconditioner": "identity"} | (
        {"target_accept_prob": ACCEPTANCE} if is_raw else {}
    )
    kernel = HMC(num_leapfrog_steps=NUM_LEAPFROG_STEPS, trajectory_jitter=0.0, **settings)
    if case["kernel"] == "NUTS":
        kernel = NUTS(max_tree_depth=case["max_tree_depth"], **settings)
    model, starting = build(case), {"pretraining": adam(case)}
    with quiet():
        if is_raw:
            start = author_start(case, problem, folder.with_suffix(".npy"))
            starting = {"initial_state": start[None]}
        if case["study"] == "start":
            starting = {"initial_state": batch_start(case, problem)}
        run = model.fit_posterior(
            *problem.train,
            kernel=kernel,
            **starting,
            num_chains=1,
            num_burnin_steps=case["num_burnin_steps"],
            num_results=case["num_results"],
            num_steps_between_results=SKIPPED,
            calibrate=False,
            until=None,
            verbose=0,
            output=folder,
            resume=True,
            callbacks=[Deadline(seconds)],
            seed=case["seed"],
        )
    if run.num_results < case["num_results"]:
        return None, None
    statistics = model.posterior.sample_stats
    return model, {
        "acceptance": float(run.acceptance_rate.mean()),
        "step_size": float(run.step_size.mean()),
        "leapfrog_steps": float(statistics["n_steps"].mean()),
        "run_seconds": dict(run.seconds),
        "rhat": [float(np.quantile(run.diagnosis.rhat_function, share)) for share in (0.5, 0.95)],
    }


def judged(model, problem):
    """R2, coverage by the spread of predictions alone, and residuals by that."""
    found = {"r2_log10": {}, "r2": {}, "coverage": {}}
    for part, rows in zip(("train", "val", "test"), problem):
        with quiet():
            scores = model.evaluate(*rows, include_noise=False)
        found["r2_log10"][part], found["r2"][part] = float(scores["r2_log10"]), float(scores["r2"])
        found["coverage"][part] = [float(scores["coverage"][k]) for k in range(1, 6)]
    draws, targets, residuals = tested(model, problem)
    y, predicted = problem.test[1], 10.0 ** draws.mean(axis=0)
    found["r2_of_10^mean"] = r2(y, predicted)
    rest = np.arange(len(y)) != np.argmax(np.abs(y - predicted))
    found["r2_without_worst"] = r2(y[rest], predicted[rest])
    found["weights"] = float(np.sqrt(np.mean(model.posterior.draws[:, -1] ** 2)))
    inside = np.clip(residuals, EDGES[0], EDGES[-1])
    found["residuals"] = np.histogram(inside, EDGES)[0].tolist()
    found["spread"] = float(np.median(draws.std(axis=0)))
    return found


def r2(y, predicted):
    """The coefficient of determination."""
    return float(1.0 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))


def tested(model, problem):
    """Return predictions [M, N], targets and standardised residuals [N] of the test rows, all of log10."""
    x, y = problem.test
    draws, targets = model.predict_draws(x, space="transformed").reshape(-1, len(x)), np.log10(y)
    return draws, targets, (targets - draws.mean(axis=0)) / draws.std(axis=0)


def points(model, problem):
    """Predictions at the test row nearest its mean in standard deviations, and at the farthest."""
    draws, targets, residuals = tested(model, problem)
    distance = np.abs(residuals)
    chosen = [int(np.argmin(distance)), int(np.argmax(distance))]
    return [{"draws": draws[:, i].tolist(), "target": float(targets[i])} for i in chosen]


def laplace(case, problem):
    """A normal distribution around one network."""
    model = build(case)
    model.fit_laplace(
        *problem.train, num_results=SURROGATE_DRAWS, pretraining=adam(case), verbose=0
    )
    return model, {}


def ensemble(case, problem):
    """Ten networks by ADAM."""
    model = build(case)
    model.fit_ensemble(*problem.train, num_members=10, pretraining=adam(case), verbose=0)
    return model, {}


def mean_field(case, problem):
    """Independent normal distributions of all parameters, by variational inference from one network."""
    model = network(case, problem)
    log_prob = model.log_prob_function(*problem.train)
    location = tf.Variable(model.posterior.draws[0, 0])
    scale = tfp.util.TransformedVariable(
        tf.fill(location.shape, 1e-2), tfp.bijectors.Softplus(), name="scale"
    )
    surrogate = tfp.distributions.MultivariateNormalDiag(location, scale)
    losses = tfp.vi.fit_surrogate_posterior(
        log_prob,
        surrogate,
        optimizer=tf.keras.optimizers.Adam(1e-3),
        num_steps=20 * case["epochs"],
        sample_size=4,
        seed=0,
        jit_compile=True,
    )
    half, end = (part[-len(part) // 10 :].mean() for part in np.split(losses.numpy(), 2))
    draws = surrogate.sample(SURROGATE_DRAWS, seed=1).numpy()
    posterior = replace(model.posterior, draws=draws[None], sample_stats={})
    return tfbnn.BayesianMLP.from_ensemble(posterior), {"losses": [float(half), float(end)]}


SURROGATES = {
    "ADAM": lambda case, problem: (network(case, problem), {}),
    "ADAM, prior per batch": lambda case, problem: (batch_start(case, problem), {}),
    "Laplace": laplace,
    "ensemble": ensemble,
    "mean-field VI": mean_field,
}


if __name__ == "__main__":
    main()
