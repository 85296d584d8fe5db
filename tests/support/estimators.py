"""Estimators whose fits sample nothing, for tests of all that is around the sampling, and the checks that
scikit-learn has of those that do."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from tests.support.builders import make_ensemble, random_statistics
from tfbnn.spec.rows import rows_to_fit

# Checks of what surrounds a fit: arguments, attributes, messages, what rows come as, which is over before
# anything is sampled. tests/unit/sklearn/test_checks.py has them in every run, of fits that sample nothing;
# real fits take seconds each.
AROUND_A_FIT = {
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
    "check_regressors_no_decision_function",
    "check_supervised_y_2d",
}
# Those that ask for good predictions come in three forms of rows; the hardest of them is for every run.
HARDEST = {"readonly_memmap": True, "X_dtype": "float32"}


def checks_of_fits(estimator):
    """Parameters (estimator, check) for all of scikit-learn's checks.

    Those around a fit are slow, and so are the easier forms of those that ask for good predictions.
    """
    checks, parameters = [check for _, check in estimator_checks_generator(estimator)], []
    assert sum(check.keywords == HARDEST for check in checks) == 1
    for check in checks:
        name = check.func.__name__
        options = ",".join(f"{key}={value}" for key, value in check.keywords.items())
        is_easier = name.endswith("s_train") and check.keywords != HARDEST
        marks = [pytest.mark.slow] if name in AROUND_A_FIT or is_easier else []
        if name == "check_sample_weight_equivalence_on_dense_data":  # whose rows are shuffled
            marks = [
                pytest.mark.xfail(reason="draws depend on the order of the rows"),
                pytest.mark.slow,
            ]
        parameters.append(
            pytest.param(
                estimator, check, id=f"{name}({options})" if options else name, marks=marks
            )
        )
    return parameters


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
