"""Rivals for regression in benchmarks/studies/default/run.py: methods that a user would pick instead.

Each is a function (x, t, x_test, seed) -> (location, scale), both [S, N_test]: a mixture of S
normals for every test row. Inputs [N, D] and targets t [N] come standardised. Whoever predicts
points only gets the noise that its errors on rows out of fold show.
"""

import numpy as np

__all__ = ["HETEROSCEDASTIC", "RIVALS", "distinct_rows", "lbfgs"]

NUM_FOLDS = 5
# Rows for the hyper-parameters of a Gaussian process, and for the choice of its kernel.
MAX_ROWS, CHOICE_ROWS = 2000, 500
# Members that leave out a fifth of the rows each: every row is left out by two.
MLP_REPEATS = 2
# Noise of an ensemble is at least this share of its mean squared error.
LEAST_NOISE = 0.05
# On targets that are numbers they model noise that depends on the inputs.
HETEROSCEDASTIC = ("ngboost", "catboost", "bde")


def ridge(x, t, x_test, seed):
    """Ridge regression, its penalty chosen by leaving one out."""
    from sklearn.linear_model import RidgeCV

    return _best_point_predictor([RidgeCV(alphas=np.logspace(-4, 4, 17))], x, t, x_test, seed)


def boosting(x, t, x_test, seed):
    """Histogram gradient boosting, the better of two settings on the rows out of fold."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    settings = [
        {"learning_rate": 0.1, "max_iter": 100},  # scikit-learn's defaults
        {"learning_rate": 0.05, "max_iter": 500, "min_samples_leaf": 10},
    ]
    models = [HistGradientBoostingRegressor(**setting, random_state=seed) for setting in settings]
    return _best_point_predictor(models, x, t, x_test, seed)


def forest(x, t, x_test, seed):
    """300 trees; each row's error is that of the trees which have not seen it."""
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(300, oob_score=True, random_state=seed).fit(x, t)
    return _normal(model.predict(x_test), _rms(t - model.oob_prediction_))


def mlp(x, t, x_test, seed):
    """Ten networks of 2 x 64 units by ADAM, each without one fifth of the rows.

    The two networks that left a row out say how large their mean's error is and how much they
    differ; the noise is what remains of the error of the mean of all once their spread is added.
    """
    from sklearn.model_selection import KFold

    held_out, predictions = np.empty((MLP_REPEATS, len(t))), []
    for repeat in range(MLP_REPEATS):
        folds = KFold(NUM_FOLDS, shuffle=True, random_state=MLP_REPEATS * seed + repeat)
        for train, left in folds.split(x):
            member = _network(len(train), len(predictions) + 100 * seed).fit(x[train], t[train])
            held_out[repeat, left] = member.predict(x[left])
            predictions.append(member.predict(x_test))
    spread = np.mean(held_out.var(axis=0, ddof=1))
    num_members = len(predictions)
    error = _rms(t - held_out.mean(axis=0)) ** 2 - spread / MLP_REPEATS + spread / num_members
    noise = max(error - spread, LEAST_NOISE * error, 1e-12)
    variance = noise + np.var(predictions, axis=0, ddof=1)
    return _normal(np.mean(predictions, axis=0), np.sqrt(variance))


def _network(num_rows, seed):
    from sklearn.neural_network import MLPRegressor

    return MLPRegressor(
        hidden_layer_sizes=(64, 64),
        learning_rate_init=3e-3,
        # Some thirty steps an epoch, whatever the size of the table.
        batch_size=int(np.clip(num_rows // 30, 16, 200)),
        max_iter=150,
        random_state=seed,
    )


def gp(x, t, x_test, seed):
    """A Gaussian process with a length scale per input, RBF or Matern 5/2 by marginal likelihood."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

    order = np.random.default_rng(seed).permutation(distinct_rows(x, t))
    few, many = order[:CHOICE_ROWS], order[:MAX_ROWS]
    scales = {"length_scale": np.full(x.shape[1], 2.0), "length_scale_bounds": (1e-2, 1e4)}
    models = []
    for shape in (RBF(**scales), Matern(nu=2.5, **scales)):
        kernel = ConstantKernel(1.0, (1e-3, 1e5)) * shape + WhiteKernel(0.1, (1e-10, 10.0))
        model = GaussianProcessRegressor(kernel, optimizer=lbfgs(40), random_state=seed)
        models.append(model.fit(x[few], t[few]))
    best = max(models, key=lambda model: model.log_marginal_likelihood_value_)
    if len(many) > len(few):
        best = GaussianProcessRegressor(best.kernel_, optimizer=lbfgs(20)).fit(x[many], t[many])
    if len(x) > len(many):
        best = GaussianProcessRegressor(best.kernel_, optimizer=None).fit(x, t)
    location, scale = best.predict(x_test, return_std=True)  # the scale has the noise in it
    return _normal(location, scale)


def distinct_rows(x, t):
    """Return the indices [M] of all N rows but copies, which have the inputs and target of an earlier row.

    To the marginal likelihood copies look like rows without noise.
    """
    return np.unique(np.column_stack([x, t]), axis=0, return_index=True)[1]


def lbfgs(num_iterations):
    """An optimiser for scikit-learn's Gaussian processes that stops after so many iterations."""
    from scipy.optimize import minimize

    def optimize(function, start, bounds):
        found = minimize(
            function,
            start,
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"maxiter": num_iterations},
        )
        return found.x, found.fun

    return optimize


def ngboost(x, t, x_test, seed):
    """Natural gradient boosting of mean and noise, stopped by a tenth of the rows."""
    from ngboost import NGBRegressor
    from sklearn.model_selection import train_test_split

    x, x_held, t, t_held = train_test_split(x, t, test_size=0.1, random_state=seed)
    model = NGBRegressor(
        n_estimators=1000, learning_rate=0.03, verbose=False, random_state=seed
    ).fit(x, t, X_val=x_held, Y_val=t_held, early_stopping_rounds=50)
    found = model.pred_dist(x_test)
    return _normal(found.params["loc"], found.params["scale"])


def catboost(x, t, x_test, seed):
    """Gradient boosting of mean and noise, with ten virtual ensembles, stopped by a tenth of the rows."""
    from catboost import CatBoostRegressor
    from sklearn.model_selection import train_test_split

    x, x_held, t, t_held = train_test_split(x, t, test_size=0.1, random_state=seed)
    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        posterior_sampling=True,
        iterations=2000,
        random_seed=seed,
        verbose=False,
        allow_writing_files=False,
    ).fit(x, t, eval_set=(x_held, t_held), early_stopping_rounds=100)
    kind = "TotalUncertainty"  # mean, variance of the mean, mean of the variance
    found = model.virtual_ensembles_predict(x_test, kind, virtual_ensembles_count=10)
    return _normal(found[:, 0], np.sqrt(found[:, 1] + found[:, 2]))


def bde(x, t, x_test, seed):
    """Bayesian deep ensemble by MILE, as its authors ran airfoil but with four members."""
    from benchmarks.studies.airfoil.rival import sample_bde

    location, scale, _ = sample_bde(x, t, x_test, seed)
    return location, scale


def spline(x, t, x_test, seed):
    """SciPy's bicubic spline through all points of a grid; it has no error bar (NaN)."""
    from scipy.interpolate import RectBivariateSpline

    del seed  # nothing is random
    nodes = [np.unique(column) for column in x.T]
    found = RectBivariateSpline(*nodes, t.reshape([len(node) for node in nodes]), s=0)
    location = found.ev(*x_test.T)
    return _normal(location, np.nan)


RIVALS = {
    "ridge": ridge,
    "gp": gp,
    "boosting": boosting,
    "forest": forest,
    "mlp": mlp,
    "ngboost": ngboost,
    "catboost": catboost,
    "bde": bde,
    "spline": spline,
}


def _best_point_predictor(models, x, t, x_test, seed):
    """The model with the smallest error out of fold, fitted on all rows, with that error as noise."""
    from sklearn.model_selection import KFold, cross_val_predict

    folds = KFold(NUM_FOLDS, shuffle=True, random_state=seed)
    errors = [_rms(t - cross_val_predict(model, x, t, cv=folds)) for model in models]
    best = int(np.argmin(errors))
    return _normal(models[best].fit(x, t).predict(x_test), errors[best])


def _normal(location, scale):
    return location[None], np.broadcast_to(scale, location.shape)[None]


def _rms(values):
    return float(np.sqrt(np.mean(np.square(values))))
