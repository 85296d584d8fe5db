"""The posteriors of `benchmarks/studies/reference_posteriors/run.py`: their moments by other ways, and its table."""

import json

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from benchmarks.studies.reference_posteriors import densities, networks, run

pytestmark = pytest.mark.benchmarks
DENSITIES = ["eight schools", "line, noise learned", "parabola", "logistic regression"]
# 64 comparisons in this file, one of which chance spoils in one of 900 seeds.
LARGEST_Z = 4.3


def assert_weighted(values, log_weights, exact):
    """Check that draws [N, Q] with log weights [N] have these moments and evidence."""
    highest = np.max(log_weights)
    weights = np.exp(log_weights - highest)
    spread = np.std(weights) / np.mean(weights) / np.sqrt(len(weights))
    found = np.log(np.mean(weights)) + highest
    assert spread < 0.1 and abs(found - exact.log_evidence) < LARGEST_Z * spread
    weights /= np.sum(weights)
    both = np.concatenate([values, (values - exact.mean) ** 2], axis=-1)
    means = weights @ both
    errors = np.sqrt(weights**2 @ (both - means) ** 2)
    assert np.all(np.abs(means - [*exact.mean, *exact.variance]) < LARGEST_Z * errors)


@pytest.mark.parametrize("name", DENSITIES)
def test_quadrature_and_importance_sampling_agree(name):
    density = densities.DENSITIES[name]
    exact = density.moments()
    t = np.random.default_rng(0).standard_t(8, size=(100_000, len(density.names)))
    scale = 1.3 * np.sqrt(exact.variance)
    points = exact.mean + scale * t
    proposed = np.sum(stats.t.logpdf(t, 8) - np.log(scale), axis=-1)
    x = tf.constant(points)
    target = (density.log_prior(x) + density.log_likelihood(x)).numpy()
    assert_weighted(points, target - proposed, exact)


def test_networks_weighted_by_their_own_density_agree():
    """From the prior: of four normal weights, of two in the box."""
    generator = np.random.default_rng(0)
    drawn = {
        "network 1-1-1": (theta := generator.normal(size=(400_000, 4)), stats.norm.logpdf(theta)),
        "line in a box": (
            theta := generator.uniform(-1.0, 1.0, size=(100_000, 2)),
            np.log(np.full_like(theta, 0.5)),
        ),
    }
    for name, network in networks.NETWORKS.items():
        theta, log_prior = drawn[name]
        target = network.model().log_prob_function(networks.X[:, None], network.y)
        log_weights = target(tf.constant(theta)).numpy() - log_prior.sum(axis=-1)
        values = theta
        if name == "network 1-1-1":
            kernel, bias, readout, offset = theta.T[:, :, None]
            values = np.tanh(kernel * networks.SEEN_AT + bias) * readout + offset
        assert_weighted(values, log_weights, network.moments())


@pytest.mark.slow
def test_the_table(tmp_path):
    """Run it after a change of the study; the kernels have exact posteriors in test_kernel_fits.py."""
    only = ["logistic regression", "line in a box"]
    run.main(["--quick", "--output", str(tmp_path), "--only", *only])
    kept, table = (
        (tmp_path / f"reference_posteriors.{kind}").read_text() for kind in ("jsonl", "md")
    )
    rows = [json.loads(line) for line in kept.splitlines()]
    assert [row["kernel"] for row in rows] == ["NUTS", "truncated MALA"] and "nan" not in table
    for row in rows:
        assert row["ess"] > 1000 and row["rhat"] < 1.02
        assert np.max(np.abs(row["z"])) < LARGEST_Z
        assert f"| {row['posterior']} | {row['kernel']} |" in table
