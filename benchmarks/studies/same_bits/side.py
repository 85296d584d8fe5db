"""One side of benchmarks/studies/same_bits/run.py: what the cases come to with one checkout of the package.

    PYTHONPATH=CHECKOUT python benchmarks/studies/same_bits/side.py FOLDER [--cases NAME,NAME] [--files FOLDER]

FOLDER/NAME/found.npz has all that is to be compared; cases that have one are left as they are. With
--files, the folder of another side, its model files and run folders are loaded and its stopped runs
resumed: FOLDER/NAME/of_others.npz. Cases of kernels that the package does not have are left out.
"""

import argparse
import json
import os
import shutil
import sys
import traceback
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # the repository, of which this is a part

import numpy as np

import tfbnn
from benchmarks.studies.same_bits.cases import BY_KERNEL, CASES, FIT, NUM_TRAINING
from benchmarks.studies.same_bits.seen import below, contents, seen, text, told


def main(arguments=None):
    """Fits the cases that are missing, then turns to the files of the other side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--files", type=Path)
    options = parser.parse_args(arguments)
    names = options.cases.split(",")
    if unknown := sorted(set(names) - set(CASES)):
        raise SystemExit(f"--cases must be out of {', '.join(CASES)}; received {unknown}.")
    available = check_package(options.files)
    names = [name for name in names if name in available or name not in BY_KERNEL]
    for name in names:
        folder = options.folder / name
        if not (folder / "found.npz").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            keep(folder / "found.npz", fitted, CASES[name], folder)
        if options.files and (options.files / name).exists():
            keep(folder / "of_others.npz", read, CASES[name], options.files / name, folder)
    (options.folder / "side.json").write_text(json.dumps({"cases": names, "kernels": available}))


def check_package(files):
    """Names of the package's kernels.

    Raises:
        SystemExit: If the package is not that of the checkout, or it and the other side have a
            kernel without a case.
    """
    wanted, found = os.environ["PYTHONPATH"].split(os.pathsep)[0], Path(tfbnn.__file__).parents[1]
    if Path(wanted).resolve() != found.resolve():
        raise SystemExit(f"Expected the package of {wanted}, found that of {found}.")
    available = sorted(tfbnn.kernels.available())
    others = json.loads((files / "side.json").read_text())["kernels"] if files else ()
    if missing := sorted(set(available) & set(others) - set(BY_KERNEL)):
        raise SystemExit(f"These kernels have no case in cases.py: {missing}.")
    return available


def keep(path, make, *arguments):
    """Writes what a function finds; a failure is kept too, so that the other cases have their turn."""
    try:
        found = make(*arguments)
    except Exception:
        found = {"failure": text(traceback.format_exc())}
        print(found["failure"])
    with open(path.with_suffix(".part"), "wb") as file:
        np.savez(file, **found)
    path.with_suffix(".part").rename(path)
    print(path.parent.name, path.stem, len(found), flush=True)


def fitted(case, folder):
    """All that a case comes to; its files stay in `folder`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, run = fit(case, **streamed(folder / "run") if case.output else {})
        found = seen(model, case) | told(run)
        model.save(folder / "model.h5")
        found |= below("model file", contents(folder / "model.h5"))
        if case.output:
            for path in sorted((folder / "run").rglob("*.h5")):
                found |= below(f"run folder/{path.relative_to(folder / 'run')}", contents(path))
        if case.stop:
            stop(case, folder / "stopped")
        found |= read(case, folder, folder)
        if case.then:
            found |= AFTERWARDS[case.then](model, case, folder)
    texts = {f"{w.category.__name__}: {w.message}" for w in caught if is_ours(w)}
    return found | {"warnings": text("\n".join(sorted(texts)).replace(str(folder), "FOLDER"))}


def read(case, files, folder):
    """Load the files of a case, resume its stopped run, and return what the models and runs say."""
    found = below("model file loaded", seen(tfbnn.load(files / "model.h5"), case))
    if case.output:
        found |= below("run folder loaded", seen(tfbnn.load(files / "run"), case))
    if case.stop:
        copy = folder / "resumed"
        resumed = {"by fit_posterior": lambda: fit(case, output=copy, resume=True)}
        if not callable(case.fit.get("kernel")):
            resumed["by resume"] = lambda: tfbnn.resume(copy, verbose=0)
        for name, go_on in resumed.items():
            shutil.copytree(files / "stopped", copy)
            model, run = go_on()
            found |= below(f"resumed {name}", seen(model, case) | told(run))
            shutil.rmtree(copy)
    return found


def fit(case, **options):
    """(model, run) of a case."""
    settings = {"prior": tfbnn.priors.Normal(1.0)} | case.model
    model = tfbnn.BayesianMLP(list(case.layers), **settings)
    x, y, noise = (rows if rows is None else rows[:NUM_TRAINING] for rows in case.rows())
    options = {"noise_scale": noise} | FIT | case.fit | options
    if not case.cluster:
        return model, model.fit_posterior(x, y, **options)
    from distributed import Client, LocalCluster

    addresses = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, **addresses) as cluster,
        Client(cluster) as client,
    ):
        return model, tfbnn.cluster.fit(model, x, y, client=client, **options)


def streamed(folder):
    """Arguments of a fit that commits after every block, so that its files do not hang on time."""
    return {"output": folder, "commit_interval": 0.0}


def stop(case, folder):
    """Begins the fit of a case and stops it after the first block of a phase.

    How far the other chain is by then, and with it what the run warns of, is a matter of time.
    """
    stopping = {"callbacks": [lambda event: event["phase"] == case.stop]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(case, **streamed(folder), **stopping)


def is_ours(warning):
    """Return whether the package gave a warning, and not a library."""
    return warning.category is UserWarning or warning.category.__module__.startswith("tfbnn")


def stack(model, case, folder):
    """The model after its chains were weighted by held-out rows."""
    x, y, _ = case.rows()
    summary = text(model.stack_chains(x[NUM_TRAINING:], y[NUM_TRAINING:]).summary())
    return below("stacked", {"summary": summary} | seen(model, case))


def compress(model, case, folder):
    """Draws chosen in every way, and what that changes."""
    x, _, _ = case.rows()
    found = {}
    for method in ("kernel_thinning", "stride"):
        small = model.compress(10, method, x_reference=x[NUM_TRAINING:])
        small.save(folder / "small.h5")
        parts = {"draws": small.posterior.draws, "mean": small.predict(x).mean}
        parts |= {
            "summary": text(small.compression.summary()),
            "file": contents(folder / "small.h5"),
        }
        found |= below(f"compressed by {method}", parts)
    return found


def export(model, case, folder):
    """The ONNX file, and what the SavedModel predicts."""
    import tensorflow as tf

    x, _, _ = case.rows()
    model.to_onnx(folder / "model.onnx")
    model.to_savedmodel(folder / "saved_model")
    serve = tf.saved_model.load(folder / "saved_model").signatures["serving_default"]
    outputs = {name: value.numpy() for name, value in serve(x=tf.constant(x)).items()}
    onnx = np.frombuffer((folder / "model.onnx").read_bytes(), np.uint8)
    return below("exports", outputs | {"onnx": onnx})


AFTERWARDS = {"stack": stack, "compress": compress, "export": export}

if __name__ == "__main__":
    main()
