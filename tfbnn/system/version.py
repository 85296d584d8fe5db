"""The version of the package, without importing anything of it."""

__version__ = "0.1.0"
