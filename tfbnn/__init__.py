"""tfbnn: Bayesian neural networks whose posterior is sampled, not approximated.

Names are loaded on first use, so that `import tfbnn` costs no more than NumPy. Programs that only
load a saved model and predict never import TensorFlow.
"""

import importlib

_EXPORTS = {
    "__version__": "system.version",
    "BayesianMLP": "fit.model",
    "BayesianModel": "fit.keras_model",
    "load": "fit.loading",
    "resume": "fit.loading",
    "sample": "engine.functional.sample",
    "Pretraining": "spec.settings_json",
    "Until": "run.until",
    "ChainError": "exceptions",
    "NotFittedError": "exceptions",
    "ModelFileError": "exceptions",
    "RunFolderError": "exceptions",
    "RunFolderWarning": "exceptions",
    "RunLockedError": "exceptions",
    "StartError": "exceptions",
    "ConvergenceWarning": "exceptions",
    "DataWarning": "exceptions",
}
_SUBMODULES = (
    "priors",
    "likelihoods",
    "kernels",
    "datasets",
    "storage",
    "plots",
    "hep",
    "cluster",
    "sklearn",
    "trust",
)

__all__ = [*_EXPORTS, *_SUBMODULES]


def __getattr__(name: str) -> object:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"tfbnn.{_EXPORTS[name]}"), name)
    if name in _SUBMODULES:
        return importlib.import_module(f"tfbnn.{name}")
    from tfbnn.spec.habits import absent

    raise absent("tfbnn", name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
