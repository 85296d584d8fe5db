r"""Sample the posterior of a Bayesian neural network given a table of features and targets.

All columns other than targets and noise are features, unless --features or --ignore name some.
A text column becomes one input of 0 and 1 for each of its values, or a single one for two values. The
model accepts only these values. Text that differs in every row is taken for row names and left out.
With --missing indicator, missing values (empty cells, NA, NaN) become inputs of their own.
With --likelihood bernoulli or categorical the target holds class labels: integers or text. The
first line of a text table (.csv .tsv .txt .dat, also .gz) names the columns. Lines that begin with # are
comments, but may name the columns too.
Ctrl-C or SIGTERM stops the run and saves the draws so far. With --output FOLDER draws are written to
the folder during the run, and 'tfbnn resume FOLDER' continues it, even after a kill. Without --output a run
that takes more than a minute keeps such a folder, MODEL.h5.run, until it has saved the model.

examples:
  tfbnn fit train.csv --target xsec_fb -o bnn.h5     # all else is chosen; the report gives the reasons
  tfbnn fit train.csv --target xsec_fb --max-seconds 60 -o bnn.h5    # within a minute
  tfbnn fit train.csv --target xsec_fb --layers 20,20 --y-transform log10,standardize \
      --epochs 2000 --batch-size full --learning-rate 0.02 --learning-rate-schedule cosine \
      --kernel hmc --num-leapfrog-steps 256 --validation held_out.csv -o bnn.h5
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tfbnn.cli.columns import as_noise, coding_of, known_columns, one_as_vector, read_labels
from tfbnn.cli.console import import_tensorflow, say
from tfbnn.cli.fit_options import add_options as add_options
from tfbnn.cli.fit_options import fit_arguments, has_classes, kernel_argument, make_model
from tfbnn.cli.outputs import MODEL, check_output
from tfbnn.cli.runs import own_folder, run_to_the_end
from tfbnn.data.frames import listed
from tfbnn.data.numbers import is_other_notation, told
from tfbnn.data.table import Table
from tfbnn.data.tables import read_table
from tfbnn.exceptions import DataWarning
from tfbnn.fit.job import estimated_fit_seconds
from tfbnn.run.options import FitOptions
from tfbnn.spec.choices import is_auto
from tfbnn.spec.likelihoods import OPTIONS
from tfbnn.system.arrays import Array
from tfbnn.system.words import warn


def run(args: argparse.Namespace) -> int:
    """Read the table, fit, report and save."""
    of_counts = not is_auto(args.likelihood) and OPTIONS[args.likelihood].has_counts
    targets, noise = args.target, known_columns(args, of_counts)
    given = fit_arguments(args) | kernel_argument(args)
    asked = FitOptions(**given, column_names={"target_names": targets, "noise_columns": noise})
    folder = given.get("output")
    read = [args.data, args.validation, getattr(args, "initial_state", None), folder]
    check_output(args.model_file, MODEL, read)
    if str(folder or "").rstrip("/").endswith((".h5.run", ".hdf5.run")):
        raise ValueError(
            f"--output {folder} is a name that tfbnn fit reserves for temporary run folders. Leave it "
            "out, or choose another name."
        )
    label_names = targets if has_classes(args.likelihood) else ()
    table, features = _read(args, label_names)
    classes = np.unique(read_labels(table, label_names)).tolist() if label_names else []
    held_out = None
    if args.validation is not None:
        names, apart = [*features, *targets, *noise], [*targets, *noise]
        held_out = read_table(
            args.validation, names, label_names, categories=table.words, needed=apart, gaps=True
        )
    coding = coding_of(table.select(features), asked)
    num_inputs = len(features) if coding is None else coding.num_inputs
    model = make_model(args, num_inputs, len(targets), len(classes))
    shown = ", ".join(features if coding is None else [column.brief for column in coding.columns])
    say(f"Read {len(table)} training rows: {shown} -> {', '.join(targets)}.")
    if folder is None and args.model_file is None:
        say("Without -o FILE or --output FOLDER the model is not saved.")
    elif folder is None:
        folder = own_folder(args.model_file, estimated_fit_seconds(model.asked, asked, len(table)))
    import_tensorflow()

    def parts(rows: Table) -> tuple[Table, Array, Array | None]:
        """Return (x, y, noise or None). x is a Table, so that its column names are kept."""
        y = read_labels(rows, label_names, classes) if classes else rows.numbers(targets)
        return rows.select(features), one_as_vector(y), as_noise(rows, noise)

    options, groups = replace(asked, output=folder), _groups(args, table)
    held = None if held_out is None else parts(held_out)
    go_on = partial(model.fit_data, *parts(table), options, held, groups)
    del table  # the fit has its own copy, and the table may have a million rows
    return run_to_the_end(model, go_on, folder, args)


def _groups(args: argparse.Namespace, table: Table) -> Array | None:
    """Return the labels of rows that belong together, or None."""
    return None if args.groups is None else table.labels([args.groups])[:, 0]


def _read(args: argparse.Namespace, label_names: Sequence[str]) -> tuple[Table, list[str]]:
    """Return the table of training rows, and the names of its features."""
    features, grouping = args.features, [] if args.groups is None else [args.groups]
    observed = [*args.target, *args.noise_column, *args.offset_column]
    apart = [*observed, *grouping]
    others = {*(features or ()), *args.ignore, *args.categories}
    for name in apart:
        if name in others or apart.count(name) > 1:
            raise ValueError(
                f"A column can be only one of feature, target, noise and groups, received {name} twice."
            )
    columns = None if features is None else [*features, *apart]
    table = read_table(
        args.data,
        columns,
        [*label_names, *grouping],
        without=args.ignore,
        categories=args.categories,
        texts=True,
        needed=observed,
        gaps=True,
    )
    # This call refuses columns that are missing or not numeric.
    table.numbers([name for name in apart if name not in (*grouping, *table.texts)])
    if features is None:
        features = [name for name in table.columns if name not in apart]
        features = _without_names_of_rows(table, features)
    if missing := set(args.categories) - set(features):
        raise ValueError(
            f"--categories names features, received {', '.join(sorted(missing))}. The features are "
            f"{', '.join(features)}."
        )
    if not features:
        raise ValueError(f"{table.source} has no feature columns besides {', '.join(apart)}.")
    return table, features


def _without_names_of_rows(table: Table, features: Sequence[str]) -> list[str]:
    """Return the features without text columns that differ in every row: no new row would match them."""
    words = [name for name in features if name in table.words - table.categories]
    names = [
        name
        for name in words
        if len(values := set(table.column(name).astype(str))) == len(table)
        and not is_other_notation(told(values))  # which a fit refuses
    ]
    if names:
        warn(
            f"Left out columns of {table.source} whose text differs in every row: {listed(names)}.",
            DataWarning,
        )
    return [name for name in features if name not in names]
