"""Rows, models and ensembles for tests."""

import numpy as np


def make_rows(num_rows, num_inputs, num_targets, seed=0):
    """Inputs with unlike columns, and positive targets over about a decade."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(num_rows, num_inputs)) * 3.0 ** np.arange(num_inputs) + 2.0
    y = np.exp(0.7 * generator.normal(size=(num_rows, num_targets)) + 1.0)
    return x, y
