"""A child of run.py: one search, or the checks of one estimator, and what they cost.

    python benchmarks/studies/grid_search/estimators.py search|regressor|classifier|"quick search"

Standard output has a JSON object.
"""

import json
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # the repository, of which this is a part

from sklearn.datasets import make_friedman1
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from tfbnn import BayesianMLP
from tfbnn.sklearn import BayesianMLPClassifier, BayesianMLPRegressor

SEARCHES = {
    "search": (200, 8, {"activation": ["tanh", "relu", "silu"]}, 5, {}),
    "quick search": (
        60,
        3,
        {"num_chains": [1, 2]},
        2,
        {"num_results": 20, "num_burnin_steps": 20, "pretraining": None, "kernel": "mala"},
    ),
}
ESTIMATORS = {"regressor": BayesianMLPRegressor, "classifier": BayesianMLPClassifier}


def main():
    part = sys.argv[1]
    # At first use the libraries would be imported within the seconds.
    import tensorflow_probability

    tensorflow_probability.mcmc.HamiltonianMonteCarlo  # noqa: B018
    warnings.simplefilter("ignore")  # verdicts are counted instead
    verdicts = count_fits()
    began, processor = time.perf_counter(), time.process_time()
    outcome = search(*SEARCHES[part]) if part in SEARCHES else checks(ESTIMATORS[part])
    found = {
        "wall": time.perf_counter() - began,
        "processor": time.process_time() - processor,
        "fits": sum(verdicts.values()),
        "outcome": f"{outcome}; {counted(verdicts)}",
    }
    print(json.dumps(found))


def count_fits():
    """A Counter that gets the verdict of every fit from now on."""
    verdicts = Counter()
    fit_posterior = BayesianMLP.fit_posterior

    def counted_fit(model, *rows, **options):
        run = fit_posterior(model, *rows, **options)
        verdicts[run.diagnosis.verdict] += 1
        return run

    BayesianMLP.fit_posterior = counted_fit
    return verdicts


def search(num_rows, width, grid, num_folds, settings):
    """The best setting and its score."""
    x, y = make_friedman1(num_rows, n_features=10, noise=1.0, random_state=0)
    regressor = BayesianMLPRegressor(hidden_layer_sizes=width, random_state=0, **settings)
    found = GridSearchCV(regressor, grid, cv=num_folds, error_score="raise").fit(x, y)
    (best,) = found.best_params_.values()
    return f"best {best}, R2 {found.best_score_:.3f}"


def checks(estimator):
    """Return how many of scikit-learn's checks passed, and which did not."""
    found = check_estimator(estimator(), on_fail=None, on_skip=None)
    others = {one["check_name"]: one["status"] for one in found if one["status"] != "passed"}
    told = "".join(f", {name} {status}" for name, status in others.items())
    return f"{len(found) - len(others)} checks passed{told}"


def counted(verdicts):
    return ", ".join(f"{count} x {verdict}" for verdict, count in verdicts.most_common())


if __name__ == "__main__":
    main()
