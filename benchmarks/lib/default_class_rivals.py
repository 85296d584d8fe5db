"""Rivals for classes in benchmarks/studies/default/run.py: methods that a user would pick instead.

Each is a function (x, y, x_test, seed) -> class probabilities [N_test, M]. Inputs [N, D] come
standardised, classes y [N] are 0 .. M - 1.
"""

import numpy as np

__all__ = ["CLASS_RIVALS"]

NUM_MEMBERS, NUM_TREES = 5, 500
# More inputs than this share one length scale: gradients for each would take hours.
MAX_ARD_INPUTS = 30


def logistic(x, y, x_test, seed):
    """Logistic regression, its penalty chosen by five folds."""
    from sklearn.linear_model import LogisticRegressionCV

    model = LogisticRegressionCV(
        Cs=10, cv=5, scoring="neg_log_loss", max_iter=2000, random_state=seed
    )
    return model.fit(x, y).predict_proba(x_test)


def forest(x, y, x_test, seed):
    """500 trees, and one more that knows nothing, so that no class has probability zero."""
    from sklearn.ensemble import RandomForestClassifier

    found = RandomForestClassifier(NUM_TREES, random_state=seed).fit(x, y).predict_proba(x_test)
    return (NUM_TREES * found + 1.0 / found.shape[1]) / (NUM_TREES + 1)


def boosting(x, y, x_test, seed):
    """Histogram gradient boosting, the better of two settings by the log loss of five folds."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    settings = [
        {"learning_rate": 0.1, "max_iter": 100},  # scikit-learn's defaults
        {"learning_rate": 0.05, "max_iter": 50, "min_samples_leaf": 10},
    ]
    models = [HistGradientBoostingClassifier(**setting, random_state=seed) for setting in settings]
    losses = [
        cross_val_score(model, x, y, cv=folds, scoring="neg_log_loss").mean() for model in models
    ]
    return models[int(np.argmax(losses))].fit(x, y).predict_proba(x_test)


def mlp(x, y, x_test, seed):
    """The mean probability of five networks of 2 x 64 units by ADAM."""
    from sklearn.neural_network import MLPClassifier

    members = [
        MLPClassifier(
            hidden_layer_sizes=(64, 64),
            learning_rate_init=3e-3,
            max_iter=300,
            random_state=NUM_MEMBERS * seed + k,
        )
        for k in range(NUM_MEMBERS)
    ]
    return np.mean([member.fit(x, y).predict_proba(x_test) for member in members], axis=0)


def gp(x, y, x_test, seed):
    """Gaussian processes with Laplace's approximation, one class against the rest."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    from benchmarks.lib.default_rivals import lbfgs

    scales = np.full(x.shape[1], 5.0) if x.shape[1] <= MAX_ARD_INPUTS else 5.0
    kernel = ConstantKernel(10.0, (1e-3, 1e5)) * RBF(scales, (1e-1, 1e4))
    model = GaussianProcessClassifier(kernel, optimizer=lbfgs(20), random_state=seed)
    return model.fit(x, y).predict_proba(x_test)


def ngboost(x, y, x_test, seed):
    """Natural gradient boosting of the class probabilities, stopped by a tenth of the rows."""
    from ngboost import NGBClassifier
    from ngboost.distns import k_categorical
    from sklearn.model_selection import train_test_split

    x, x_held, y, y_held = train_test_split(x, y, test_size=0.1, random_state=seed, stratify=y)
    model = NGBClassifier(
        Dist=k_categorical(len(np.unique(y))),
        verbose=False,
        random_state=seed,
    ).fit(x, y, X_val=x_held, Y_val=y_held, early_stopping_rounds=50)
    return model.predict_proba(x_test)


CLASS_RIVALS = {
    "logistic": logistic,
    "gp": gp,
    "boosting": boosting,
    "forest": forest,
    "mlp": mlp,
    "ngboost": ngboost,
}
