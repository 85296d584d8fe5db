"""The version of the package, without importing anything of it."""

__version__ = "0.2.0"
