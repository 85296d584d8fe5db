"""`predict`: a saved model at the rows of a Dask array."""

import functools
import os
import threading
from typing import Any

import numpy as np

from tfbnn.cluster.tasks import required
from tfbnn.exceptions import ModelFileError
from tfbnn.fit.model import SampledNetwork, load
from tfbnn.storage.format.sealing import check_seal
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath

_loading = threading.Lock()


def predict(
    model_path: StrPath, x: Any, *, include_noise: bool = False, space: str = "original"
) -> tuple[Any, Any]:
    """Mean and spread of the predictive distribution, block by block, on many hosts.

    Every worker process loads the model once. The numbers are those of `BayesianMLP.predict`, whose
    needs in memory are those of a block. Workers need no TensorFlow.

    Args:
        model_path: File written by `BayesianMLP.save`, on storage that all workers share under the
            same path.
        x: `dask.array` [N, D] of inputs, in blocks of whole rows; of a model with columns of text
            the numbers of `BayesianMLP.code_inputs`.
        include_noise, space: As in `BayesianMLP.predict`. Known noise scales of rows cannot be
            given, so that a model that was fitted with them has no include_noise=True here.

    Returns:
        (mean, stddev), each a `dask.array` [N, K], or [N] where the target was fitted as [N],
        float64. `dask.compute(mean, stddev)` computes both at once.

    Raises:
        ImportError: Without Dask.
        TypeError, ValueError: For an unusable shape or settings at once; for unusable values when
            they are computed.
        ModelFileError: When the file is not a model; when computing, if it was replaced.
    """
    array = required("dask.array")
    if not isinstance(x, array.Array):
        raise TypeError(f"x must be a dask.array.Array, received {type(x).__name__}.")
    if os.path.isdir(model_path):
        raise ValueError(
            f"model_path must be a model file, received the folder {os.fspath(model_path)!r}. Save "
            "what it holds: tfbnn.load(folder).save(path)."
        )
    path = os.path.realpath(model_path)
    options: dict[str, Any] = {"include_noise": include_noise, "space": space}
    digest = _digest(path)
    model = _model(path, digest)
    if x.ndim != 2 or x.shape[1] != model.spec.num_inputs or x.numblocks[1] > 1:
        raise ValueError(
            f"x must have shape [N, {model.spec.num_inputs}] in blocks of whole rows, received "
            f"{list(x.shape)} in {list(x.numblocks)} blocks. Use x.rechunk({{1: -1}}) for whole rows."
        )
    # Says how many columns there are, and checks the options.
    width = model.predict(model.posterior.x_reference[:1], **options).columns.mean.shape[1]
    both = x.map_blocks(
        _predict_block,
        path=path,
        digest=digest,
        width=width,
        options=options,
        chunks=(x.chunks[0], (2 * width,)),
        dtype=np.float64,
        meta=np.empty((0, 0)),
    )
    as_fitted = model.posterior.as_fitted
    return as_fitted(both[:, :width]), as_fitted(both[:, width:])


def _predict_block(
    block: Array, *, path: str, digest: str, width: int, options: dict[str, Any]
) -> Array:
    """Mean and standard deviation [n, 2 K] side by side."""
    if not len(block):
        return np.empty((0, 2 * width))
    return np.concatenate(tuple(_model(path, digest).predict(block, **options).columns), axis=1)


def _model(path: str, digest: str) -> SampledNetwork:
    with _loading:
        return _load(path, digest)


@functools.lru_cache(maxsize=2)
def _load(path: str, digest: str) -> SampledNetwork:
    """The model in a file with this seal, as the process keeps it."""
    found = _digest(path)
    if found != digest:
        raise ModelFileError(
            f"{path!r} is not the file that predict was called with. Call it again for the new one."
        )
    return load(path)


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return check_seal(file).hex()
