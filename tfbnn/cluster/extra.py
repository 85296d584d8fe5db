"""The extra `cluster`: Dask."""

import importlib
from typing import Any


def required(name: str) -> Any:
    """The module of Dask of that name.

    Raises:
        ImportError: When Dask is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"tfbnn.cluster needs Dask, of which {name} cannot be imported ({error}). Install it: "
            "pip install 'tfbnn[cluster]'."
        ) from error
