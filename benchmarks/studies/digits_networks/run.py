"""Networks of Hron et al. 2022 on scikit-learn's digits: effective draws per gradient, R-hat, scores.

    python -m benchmarks digits_networks [--cases KEY ...] [--quick --output FOLDER]

Fully connected and residual convolutional networks in the ntk scaling on 256 images, in standard,
repriorised and collapsed coordinates, from the same starts; beside them logistic regression, a forest
and an ensemble of the widest convolutional network by ADAM. Rows are kept as they finish, so that the
script goes on where it was killed; table and figure are benchmarks/results/digits_networks.*.

Reference: arXiv:2206.07673, figures 7 to 9.
"""

import argparse

from benchmarks.lib.common import add_common_options, keep, output_folder
from benchmarks.lib.store import Store
from benchmarks.studies.digits_networks.chains import Case, Length, sample
from benchmarks.studies.digits_networks.figure import figure
from benchmarks.studies.digits_networks.report import report
from benchmarks.studies.digits_networks.scores import rivals, scores
from benchmarks.studies.repriorisation.chains import METHODS

CASES = (
    Case("flattened", 32, Length(num_burnin_steps=150, num_results=200)),
    Case("fully connected", 64, Length(num_burnin_steps=150, num_results=300)),
    Case("flattened", 8, Length(num_burnin_steps=150, num_results=300)),
    Case("fully connected", 256, Length(num_burnin_steps=150, num_results=200)),
)
QUICK = (Case("flattened", 2, Length(num_burnin_steps=10, num_results=12)),)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="*", help='only these, such as "flattened, 32"')
    add_common_options(parser)
    options = parser.parse_args(arguments)
    folder = output_folder(options)
    store = Store("digits_networks", fresh=options.fresh, folder=folder)
    cases = QUICK if options.quick else CASES
    for case in cases:
        for method in METHODS[::-1]:
            key = f"{case.key}, {method}"
            if key in store or (options.cases and case.key not in options.cases):
                continue
            row, outputs = sample(case, method)
            store.add(key, {**row, **scores(outputs)})
            print(key, row["step_size"], row["acceptance"], flush=True)
    if "rivals" not in store:
        store.add("rivals", {"scores": rivals(cases[0], quick=options.quick)})
    keep("digits_networks.md", report(store.rows, cases), folder)
    figure(store.rows, cases, folder / "digits_networks.png")


if __name__ == "__main__":
    main()
