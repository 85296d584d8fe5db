"""The command `tfbnn`. Nothing here imports TensorFlow before a command needs it."""

from tfbnn.cli.app import main

__all__ = ["main"]
