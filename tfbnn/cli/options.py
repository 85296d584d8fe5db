"""Options that are passed on only where they are given."""

import argparse


def optional(add, name, text, metavar, kind=str):
    """Adds one; `add` is the method of a parser or group."""
    add(name, type=kind, default=argparse.SUPPRESS, metavar=metavar, help=text)


def given(args, names):
    """Dict of those of the named options that were given."""
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def flag(name):
    """The option of a setting."""
    return "--" + name.replace("_", "-")
