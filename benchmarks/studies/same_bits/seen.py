"""Collect what benchmarks/studies/same_bits/run.py compares: dicts name -> array, the kind coming first."""

import json
import re

import numpy as np

from benchmarks.studies.same_bits.cases import NUM_TRAINING

__all__ = ["below", "contents", "seen", "text", "told"]

# Entries of JSON that no two runs share.
_PASSING = ("created_at", "run", "seconds")
_DIAGNOSIS = ("rhat_function", "ess_function", "rhat_parameters", "ess_parameters")


def seen(model, case):
    """All that a fitted model says of itself, and of rows that its case held out."""
    posterior = model.posterior
    found = {"draws": posterior.draws, "chain weights": posterior.chain_weights}
    found |= below("statistics", posterior.sample_stats)
    x, y, noise = case.rows()
    x, y = x[NUM_TRAINING:], y[NUM_TRAINING:]
    noise = None if noise is None else noise[NUM_TRAINING:]
    found |= below("predictions", _predictions(model, x, noise))
    found |= below("scores", model.evaluate(x, y, noise_scale=noise))
    last = posterior.draws[:, -1]
    terms = model.log_prob(last, x, y, noise_scale=noise, return_terms=True)
    diagnosis = model.diagnose()
    words = {"words": text("\n".join([diagnosis.summary(), *diagnosis.warnings]))}
    numbers = {name: getattr(diagnosis, name) for name in _DIAGNOSIS}
    return found | below("density", terms) | below("diagnosis", numbers | words)


def _predictions(model, x, noise):
    found = {"draws": model.predict_draws(x), "far away": model.predict(9 * x, return_trust=True)}
    found |= {"function": model.predict(x), "transformed": model.predict(x, space="transformed")}
    if model.classes is None:
        found["noise"] = model.predict(
            x, include_noise=True, quantiles=[0.16, 0.5, 0.84], noise_scale=noise
        )
    else:
        found["classes"] = model.predict_classes(x)
    parts = ("mean", "stddev", "quantiles", "trust")
    return {
        name: {part: getattr(value, part) for part in parts} if hasattr(value, "stddev") else value
        for name, value in found.items()
    }


def told(run):
    """Return what a Run says, without times."""
    lines = [
        line.split(";")[0] if line.startswith("Gradients") else line
        for line in run.report().splitlines()
        if not line.startswith("Time")
    ]
    return {"run": text(_json(run.to_dict())), "report": text("\n".join(lines))}


def contents(path):
    """The arrays in one of the package's HDF5 files, and its JSON without times and chance."""
    import h5py

    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item[()]

    with h5py.File(path) as file:
        file.visititems(visit)
        found |= {f"attribute {name}": np.array(value) for name, value in file.attrs.items()}
    metadata = json.loads(found["metadata"].tobytes())
    for index, (name, *_) in enumerate(metadata.get("arrays", ())):
        array = found.pop(f"arrays/{index}")
        # The digests of segments, which have the name of their run in them.
        found |= {} if name == "segments/sha256" else {f"arrays/{name}": array}
    return found | {"metadata": text(_json(metadata))}


def below(kind, values):
    """Nested values without None, as arrays whose names begin with a kind."""
    found = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= below(f"{kind}/{name}", value)
        elif value is not None:
            found[f"{kind}/{name}"] = np.asarray(value)
    return found


def text(words):
    """A text as an array, which is how it is kept, without the addresses of functions."""
    return np.array(re.sub(" at 0x[0-9a-f]+", "", words))


def _json(value):
    return json.dumps(_lasting(value), indent=0, sort_keys=True)


def _lasting(value):
    """JSON without what no two runs share."""
    if isinstance(value, dict):
        return {key: _lasting(entry) for key, entry in value.items() if key not in _PASSING}
    return [_lasting(entry) for entry in value] if isinstance(value, (list, tuple)) else value
