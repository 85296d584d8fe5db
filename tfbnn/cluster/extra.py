"""The extra `cluster`: Dask."""

from types import ModuleType

from tfbnn.system import words


def required(name: str) -> ModuleType:
    """The module of Dask of that name.

    Raises:
        ImportError: When Dask is not installed.
    """
    return words.required(name, "tfbnn.cluster needs Dask", "cluster")
