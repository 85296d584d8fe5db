"""A network small enough for its predictions to be known without sampling a chain.

1-2-1 with tanh: seven weights, five rows, known noise. Draws from the prior, weighted by the
likelihood, give mean and variance of its predictions at twenty inputs. All of it is NumPy in float64
and shares nothing with the library but the order of the weights. `python -m tests.support.tiny_bnn` writes
the table that the default run compares kernels with.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["INPUTS", "NOISE", "PRIORS", "X", "Y", "Truth", "golden", "importance", "outputs"]

X = np.array([-1.5, -0.6, 0.1, 0.8, 1.7])
Y = np.array([-0.9, -0.9, 0.2, 0.7, 0.4])
NOISE = 0.3
INPUTS = np.linspace(-3.0, 3.0, 20)
# The priors of all seven weights: N(0, 1), and flat between -2 and 2.
PRIORS = {
    "normal": lambda generator, count: generator.normal(size=(7, count)),
    "uniform": lambda generator, count: generator.uniform(-2.0, 2.0, size=(7, count)),
}
NUM_DRAWS = 10_000_000
_CHUNK = 50_000
_TABLE = Path(__file__).parents[1] / "golden" / "tiny_bnn.json"


class Truth(NamedTuple):
    """Predictions at INPUTS, each [20].

    Attributes:
        mean, variance: Mean and variance of the network's function over the posterior.
        mean_error, variance_error: Their standard errors.
        size: Effective number of draws.
    """

    mean: np.ndarray
    variance: np.ndarray
    mean_error: np.ndarray
    variance_error: np.ndarray
    size: float


def outputs(theta, x):
    """The networks theta [..., 7] at x [n]: [..., n]."""
    in_1, in_2, bias_1, bias_2, out_1, out_2, bias = (theta[..., i, None] for i in range(7))
    return out_1 * np.tanh(in_1 * x + bias_1) + out_2 * np.tanh(in_2 * x + bias_2) + bias


def importance(prior, seed, num_draws=NUM_DRAWS):
    """Truth by importance sampling from a prior named in PRIORS."""
    generator = np.random.default_rng(seed)
    # Sums of w^a f^b: over a = 1 for the moments, over a = 2 for their errors.
    sums = {1: np.zeros((3, len(INPUTS))), 2: np.zeros((5, len(INPUTS)))}
    for _ in range(num_draws // _CHUNK):
        theta = PRIORS[prior](generator, _CHUNK).T
        residual = (outputs(theta, X) - Y) / NOISE
        weight = np.exp(-0.5 * (residual**2).sum(axis=-1))
        f = outputs(theta, INPUTS)
        power = np.ones_like(f)
        for b in range(5):
            for a, total in sums.items():
                if b < len(total):
                    total[b] += weight**a @ power
            power *= f
    return _truth(sums)


def _truth(sums):
    total = sums[1][0]
    _, mean, square = sums[1] / total
    variance = square - mean**2
    # Sum of w^2 (f - mean)^k, expanded.
    w0, w1, w2, w3, w4 = sums[2]
    second = w2 - 2 * mean * w1 + mean**2 * w0
    fourth = w4 - 4 * mean * w3 + 6 * mean**2 * w2 - 4 * mean**3 * w1 + mean**4 * w0
    spread = fourth - 2 * variance * second + variance**2 * w0
    return Truth(
        mean,
        variance,
        np.sqrt(second) / total,
        np.sqrt(spread) / total,
        float(total[0] ** 2 / w0[0]),
    )


def golden(prior):
    """The Truth of the committed table."""
    row = json.loads(_TABLE.read_text())[prior]
    return Truth(*(np.asarray(row[name]) for name in Truth._fields))


def main():
    """Writes the table."""
    table = {}
    for prior in PRIORS:
        truth = importance(prior, seed=1)
        table[prior] = {
            name: np.round(value, 10).tolist() for name, value in truth._asdict().items()
        }
    _TABLE.parent.mkdir(exist_ok=True)
    _TABLE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
