"""The extra `cluster`: Dask."""

from types import ModuleType

from tfbnn.system import extras


def required(name: str) -> ModuleType:
    """The module of Dask of that name.

    Raises:
        ImportError: When Dask is not installed.
    """
    return extras.required(name, "tfbnn.cluster needs Dask", "cluster")
