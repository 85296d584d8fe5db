"""The sweeps of the thesis on its own rows: warm-up, pretraining, width, models 1 to 5.

    TFBNN_DATA=folder python -m benchmarks thesis [--inputs raw] [--only STUDY ...] [--work FOLDER]
                                                 [--minutes 15] [--at-once 2] [--quick --output FOLDER]

Log10 of the column that the thesis learned, N(0, 1000) priors, noise scale 1, one chain, dual averaging
for four fifths of the warm-up, every eleventh transition kept. --inputs raw (default) is the setting of the
author's program: see author.py. All rows have 100 draws but one of 1000, NUTS in models 1 to 5 256 leapfrog
steps at most in place of 4096, and widths end where a row would take more than some hours.

--inputs standardised is what standardising changes, with starts from the prior: 1000 draws in the warm-up sweep,
rows "start" of a chain of the pretraining sweep and one of model 3 from other starts (`batch_start` in fit.py), and
other methods than chains in the place of them ("surrogates").

A row is a process of its own. One with a chain ends after so many minutes and goes on from its run folder,
in FOLDER (by default one beside other temporary files), until it is finished; `--at-once` of them run beside
each other, on one core each. Finished rows are kept, and one that fails does not end the others. `--until
HOURS` begins none after that time. Tables and figures are benchmarks/results/thesis.md and thesis-*.png.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.lib.common import add_common_options, output_folder
from benchmarks.lib.store import Store
from benchmarks.studies.thesis.report import publish

HERE = Path(__file__).parent
SWEEP = (32, 128, 512, 2048, 8192)
HIDDEN = (20, 20)


@dataclass(frozen=True)
class Case:
    """One fit.

    Attributes:
        study: warm-up, pretraining, width, models, start or surrogates.
        value: What the study varies.
        kernel: HMC or NUTS, or a surrogate.
        hidden: Sizes of the hidden layers.
        epochs: Of ADAM, batches of 32.
        num_burnin_steps, num_results: Transitions of warm-up, and draws that are kept.
        max_tree_depth: Of NUTS.
        inputs: "raw", in GeV, as the author's program has them, or "standardised".
        seed: Of start and chain.
    """

    study: str
    value: int
    kernel: str
    hidden: tuple = HIDDEN
    epochs: int = 2500
    num_burnin_steps: int = 1000
    num_results: int = 100
    max_tree_depth: int = 12
    inputs: str = "raw"
    seed: int = 0

    @property
    def key(self):
        # Rows from before there were two settings have no word for theirs.
        setting = "raw " if self.inputs == "raw" else ""
        again = f" seed {self.seed}" if self.seed else ""
        return f"{setting}{self.study} {self.value} {self.kernel}{again}"


def raw_cases():
    """Rows in the setting of the author's program, the cheap ones of a study first."""
    for steps in SWEEP[:4]:
        yield Case("warm-up", steps, "HMC", num_burnin_steps=steps)
    for epochs in SWEEP[:4]:
        yield Case("pretraining", epochs, "HMC", epochs=epochs)
    for width in (32, 64, 128, 256, 512):
        yield Case("width", width, "HMC", hidden=(width,))
    for number in range(1, 6):
        yield Case("models", number, "NUTS", (50,) * number, epochs=1000, max_tree_depth=8)
    for steps in SWEEP[:3]:
        yield Case("warm-up", steps, "NUTS", num_burnin_steps=steps)
    for seed in (1, 2):
        yield Case("warm-up", 512, "HMC", num_burnin_steps=512, seed=seed)
        yield Case("pretraining", 512, "HMC", epochs=512, seed=seed)
    yield Case("draws", 1000, "HMC", num_burnin_steps=512, num_results=1000)


def standardised_cases():
    """Rows with standardised inputs, from starts that the prior draws."""
    for case in _standardised():
        yield replace(case, inputs="standardised")


def _standardised():
    for steps in (*SWEEP, 1000):
        yield Case("warm-up", steps, "HMC", num_burnin_steps=steps, num_results=1000)
    for steps in (*SWEEP, 1000):
        yield Case("warm-up", steps, "NUTS", num_burnin_steps=steps)
    for epochs in SWEEP:
        yield Case("pretraining", epochs, "HMC", epochs=epochs)
    for width in (32, 64, 128, 256, 512):
        yield Case("width", width, "HMC", hidden=(width,))
    for width in (32, 64, 128):
        yield Case("width", width, "NUTS", hidden=(width,))
    for number in range(1, 6):
        yield Case("models", number, "NUTS", (50,) * number, epochs=1000, max_tree_depth=8)
    yield Case("start", 2, "HMC")
    yield Case("start", 3, "NUTS", (50,) * 3, epochs=1000, max_tree_depth=8)
    for name in ("ADAM", "ADAM, prior per batch", "Laplace", "ensemble", "mean-field VI"):
        yield Case("surrogates", 0, name)


CASES = {"raw": raw_cases, "standardised": standardised_cases}
STUDIES = tuple(dict.fromkeys(case.study for cases in CASES.values() for case in cases()))


def quick_cases(inputs):
    """A row of each kind, tiny."""
    for case in _quick():
        if inputs != "raw" or case.study not in ("start", "surrogates"):
            yield replace(case, inputs=inputs)


def _quick():
    short = dict(hidden=(3,), epochs=2, num_burnin_steps=4, num_results=6)
    yield Case("warm-up", 1000, "HMC", **short | {"num_burnin_steps": 60})
    yield Case("models", 3, "NUTS", **short, max_tree_depth=3)
    yield Case("draws", 1000, "HMC", **short)
    yield Case("start", 2, "HMC", **short)
    yield Case("surrogates", 0, "ADAM", **short)
    yield Case("surrogates", 0, "mean-field VI", **short)


def main(arguments=None):
    """Runs what is not finished, and keeps tables and figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--inputs", choices=CASES, default="raw")
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=STUDIES)
    parser.add_argument("--work", type=Path, help="folder of the run folders")
    parser.add_argument("--minutes", type=float, default=15.0, help="of a process")
    parser.add_argument("--until", type=float, default=float("inf"), help="hours")
    parser.add_argument("--at-once", type=int, default=2, help="rows beside each other")
    options = parser.parse_args(arguments)
    folder, began = output_folder(options), time.monotonic()
    work = options.work or Path(tempfile.gettempdir()) / "thesis"
    work /= "quick" if options.quick else "full"
    if options.fresh:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    store = Store("thesis", options.fresh, folder)
    asked = quick_cases(options.inputs) if options.quick else CASES[options.inputs]()
    todo = [case for case in asked if case.study in options.only and case.key not in store]

    def finish(case):
        """Process after process, while there is time; None where that or one of them ended."""
        while time.monotonic() - began < 3600 * options.until:
            try:
                found = one_process(case, work, options.minutes, options.quick, folder)
            except subprocess.CalledProcessError as error:
                failed.append(f"{case.key} ended with {error.returncode}.")
                return case, None
            if found is not None:
                return case, found
        return case, None

    failed = []
    with ThreadPoolExecutor(options.at_once) as pool:
        for done in as_completed([pool.submit(finish, case) for case in todo]):
            case, found = done.result()
            if found is not None:
                store.add(case.key, asdict(case) | found)
    publish(store.rows, options.inputs, folder)
    if failed:
        raise SystemExit("\n".join(failed))


def one_process(case, work, minutes, quick, output):
    """Run a case in a process and return what it found; None if the case has to be gone on with.

    Raises:
        CalledProcessError: When it failed.
    """
    order = {
        "case": asdict(case),
        "folder": str(work / case.key.replace(" ", "-")),
        "output": str(output),
        "minutes": minutes,
        "num_rows": 300 if quick else None,
    }
    done = subprocess.run(
        [sys.executable, HERE / "fit.py", json.dumps(order)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
