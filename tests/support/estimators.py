"""Estimators whose fits sample nothing, for tests of all that is around the sampling."""

from types import SimpleNamespace

import numpy as np

from tests.support.builders import make_ensemble, random_statistics
from tfbnn.spec.rows import rows_to_fit


class FakeFits:
    """Stands for `BayesianMLP.fit_posterior`: networks drawn from N(0, 1), by the seed.

    Attributes:
        calls: Of each fit the ModelSpec that was asked for, y as it came, the rows and the other arguments.
        diagnosis: What the runs say of themselves.
    """

    def __init__(self):
        self.calls = []
        self.diagnosis = None

    def fit_posterior(self, model, x, y, *, noise_scale=None, offset=None, groups=None, **options):
        missing = options["missing"]
        asked = model.asked.for_rows(x, y, missing)
        rows, _ = rows_to_fit(
            asked,
            x,
            y,
            offset if asked.has_counts else noise_scale,
            None,
            missing=missing,
            groups=groups,
        )
        self.calls.append(SimpleNamespace(asked=asked, y=y, rows=rows, options=options))
        spec = asked.closed(("standardize",), "there is nothing to choose by")
        generator = np.random.default_rng(options["seed"])
        draws = generator.normal(size=(2, 8, spec.layout.num_parameters)).astype(spec.dtype)
        draws[..., spec.layout.num_weights :] -= 1.0
        model._ensemble = make_ensemble(
            spec,
            draws,
            rows.x,
            rows.y,
            random_statistics((2, 8), generator),
            feature_names=rows.feature_names,
            coding=rows.coding,
            classes=rows.classes,
            vector_target=rows.vector_target,
            row_noise=rows.noise is not None,
        )
        verdict = None if self.diagnosis is None else self.diagnosis.verdict
        return SimpleNamespace(diagnosis=self.diagnosis, num_results=8, verdict=verdict)
