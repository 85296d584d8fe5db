"""Compare what brief fits say of layers and noise with what sampling them gives.

    TFBNN_DATA=folder python -m benchmarks choice [--tables yacht ...] [--candidates ...] [--fresh]

The script takes the first split of each table of regression of the study default. `BayesianMLP()` compares its
candidates there (seconds of a trial each); each candidate of --candidates is then sampled by a fit with
nothing else given, and scored on the test rows. results/choice.md holds both side by side. Finished rows
are kept, so that a killed script goes on where it was.
"""

import argparse
import time
import warnings

import numpy as np

from benchmarks.lib.common import add_common_options, keep, markdown, output_folder, revision
from benchmarks.lib.default_tables import CLASSES, GRID, TABLES
from benchmarks.lib.store import Store

# Hidden layers, and the likelihood.
CANDIDATES = {
    f"{layers}, {noise}": (tuple(map(int, layers.split("-"))), kind)
    for layers in ("50", "20-20", "50-50")
    for noise, kind in (
        ("one noise", "Gaussian"),
        ("noise by inputs", "HeteroscedasticGaussian"),
        ("Student-t", "StudentT"),
    )
}
SAMPLED = [name for name in CANDIDATES if "Student" not in name]


def measure(table, candidate, quick):
    """Trials of a table, or one candidate sampled; a dict of JSON values."""
    import tensorflow  # noqa: F401 - before the clock

    problem = TABLES[table].load(0)
    x, y = problem.train
    if quick:
        x, y = x[:60], y[:60]
    if candidate is None:
        found = trials(x, y, 0.1 if quick else 1.0)
    else:
        found = sample(candidate, x, y, problem.test, quick)
    return found | {"commit": revision()}


def trials(x, y, effort):
    """Return the trials that the choice of the network sees, and the network that it chooses."""
    import tfbnn
    from tfbnn.fit.choices import compare_networks
    from tfbnn.fit.choices.choose import close_spec
    from tfbnn.run.options import FitOptions
    from tfbnn.spec.rows import learn_transforms, rows_to_fit

    seen, fit_trial = [], compare_networks.fit_trial

    def told(*arguments, **options):
        began = time.perf_counter()
        trial = fit_trial(*arguments, **options)
        name = "-".join(map(str, trial.spec.layer_sizes[1:-1])), trial.spec.likelihood_name
        error = np.sqrt(np.mean(trial.squares))
        seen.append([*name, trial.log_density.mean(), error, time.perf_counter() - began])
        return trial

    spec = tfbnn.BayesianMLP().asked.for_rows(x, y, "refuse")
    rows, _ = rows_to_fit(spec, x, y, None, None)
    spec = close_spec(spec, rows, None)
    compare_networks.fit_trial, options = told, FitOptions(verbose=0, effort=effort)
    try:
        chosen = compare_networks.choose_network(spec, learn_transforms(spec, rows, None), options)
    finally:
        compare_networks.fit_trial = fit_trial
    return {"trials": seen, "chosen": chosen.choices[0].chosen}


def sample(candidate, x, y, test, quick):
    """Scores of a default fit of one candidate, and its seconds."""
    import tfbnn
    from tfbnn import likelihoods

    hidden, kind = CANDIDATES[candidate]
    likelihood = getattr(likelihoods, kind)()
    model = tfbnn.BayesianMLP(
        [x.shape[1], *hidden, likelihood.num_outputs(1)], likelihood=likelihood
    )
    few = {"num_results": 20, "num_burnin_steps": 20, "num_chains": 2} if quick else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = model.fit_posterior(x, y, verbose=0, **few)
    scores = model.evaluate(*test)
    names = ("log_predictive_density", "rmse", "crps")
    return {name: float(scores[name]) for name in names} | {"seconds": sum(run.seconds.values())}


def report(store, tables):
    """The table as Markdown: for every candidate its trial and what it comes to."""
    lines = []
    # Columns of candidates that were sampled, if any was.
    has_sampled = any(not key.endswith(", trials") for key in store.rows)
    for table in tables:
        known = store.rows.get(f"{table}, trials", {})
        last = {tuple(trial[:2]): trial[2:] for trial in known.get("trials", [])}
        for candidate, (hidden, kind) in CANDIDATES.items():
            trial = last.get(("-".join(map(str, hidden)), kind))
            row = store.rows.get(f"{table}, {candidate}")
            if trial is None and row is None:
                continue
            text = f"{'-'.join(map(str, hidden))}-{1 + (kind == 'HeteroscedasticGaussian')}, tanh, {kind}"
            is_chosen = known.get("chosen", "").endswith(f"-{text}")
            cells = ["", "", ""]
            if trial is not None:
                cells = [f"{trial[0]:.3f}", f"{trial[1]:.4f}", f"{trial[2]:.1f}"]
            if has_sampled:
                cells += sampled_cells(row)
            lines.append([table, candidate, *cells, "chosen" if is_chosen else ""])
    header = ["data set", "candidate", "trial: log density", "trial: RMSE", "trial: time, s"]
    if has_sampled:
        header += ["sampled: log density", "sampled: RMSE", "sampled: time, s"]
    header.append("choice")
    commits = dict.fromkeys(row["commit"] for row in store.rows.values())
    about = (
        "# Choice of layers and noise by short fits\n\n"
        "A default fit compares candidates by trials, which are short fits in five folds. The log density is the mean per "
        "held-out row, with the noise scale that fits the held-out rows best. It and the RMSE are in units of the "
        "standardised targets (of their logarithm, if the fit takes it). Times include compilation. Another trial runs at the same time. For "
        "Gaussian noise on the chosen layers, the time is only that of the continuation of the first trial.\n\n"
        "The fit chooses the fewest units among layers within a standard error of the best density. Another noise model "
        "has to gain more than the standard error of its gain; Student-t noise also has to gain at least .1. "
        '"Noise by inputs" is `HeteroscedasticGaussian`. Infinite width is compared separately and is not in this table. '
        f"{GRID}, and wine is red wine.\n\n"
    )
    if has_sampled:
        about += (
            '"Sampled" is `fit_posterior(x, y)` of the candidate on the first split with seed 0, scored on the test rows in '
            "their units. A cell is empty if nothing was measured.\n\n"
        )
    return f"{about}{markdown(header, lines)}\n\nRows were made at {', '.join(commits)}."


def sampled_cells(row):
    """Scores and seconds of a candidate that was sampled, empty for others."""
    if row is None:
        return ["", "", ""]
    return [
        f"{row['log_predictive_density']:.3f}",
        f"{row['rmse']:.4g}",
        f"{row['seconds']:.0f}",
    ]


def main(arguments=None):
    """Measures what is asked for, and keeps the tables."""
    known = [name for name, table in TABLES.items() if table.kind != CLASSES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--tables", nargs="+", choices=known, default=known)
    parser.add_argument("--candidates", nargs="*", choices=list(CANDIDATES), default=SAMPLED)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("choice", options.fresh, folder)
    for candidate in (None, *options.candidates):
        for table in options.tables:
            key = f"{table}, {candidate or 'trials'}"
            if key not in store:
                store.add(key, measure(table, candidate, options.quick))
                print(key, store.rows[key], flush=True)
    keep("choice.md", report(store, known), folder)


if __name__ == "__main__":
    main()
