"""Edits of model files, for tests: each is a function of an h5py.File opened for writing."""

import json

import h5py
import numpy as np
import pytest

import tfbnn
from tfbnn.storage import seal

THETA = "posterior/theta"


def craft(path, edit):
    """Edits a model file, and seals it anew."""
    with h5py.File(path, "r+") as file:
        edit(file)
    seal(path)


def refused_after(edit, path, message):
    """Checks that a model file is refused with this message once it was edited."""
    craft(path, edit)
    with pytest.raises(tfbnn.ModelFileError, match=message):
        tfbnn.load(path)


def replace(name, change):
    """An edit that replaces a dataset by change(its values)."""

    def edit(file):
        values = file[name][()]
        del file[name]
        file[name] = change(values)

    return edit


def store(name, **settings):
    """An edit that writes the values of a dataset anew with other settings of h5py."""

    def edit(file):
        values = file[name][()]
        del file[name]
        file.create_dataset(name, data=values, **settings)

    return edit


def declare(name, shape, **settings):
    """An edit that replaces a dataset by one of which only the shape is there, no values."""

    def edit(file):
        del file[name]
        file.create_dataset(name, shape=shape, dtype="f4", **settings)

    return edit


def set_one(value):
    """A change that sets the first entry of an array."""

    def change(values):
        values = values.copy()
        values[(0,) * values.ndim] = value
        return values

    return change


def rewrite_text(change):
    """An edit that replaces the JSON text by change(text)."""
    return replace("metadata", lambda v: np.frombuffer(change(v.tobytes()), np.uint8))


def rewrite(*keys, value):
    """An edit of one entry of the JSON."""

    def change(text):
        metadata = json.loads(text)
        entry = metadata
        for key in keys[:-1]:
            entry = entry[key]
        entry[keys[-1]] = value
        return json.dumps(metadata).encode()

    return rewrite_text(change)


def remove(name):
    """An edit that removes a dataset or group."""

    def edit(file):
        del file[name]

    return edit


def as_group(name):
    """An edit that puts an empty group in the place of a dataset."""

    def edit(file):
        del file[name]
        file.create_group(name)

    return edit


def add(name, value):
    """An edit that adds an entry: values for a dataset, or a link."""

    def edit(file):
        file[name] = value

    return edit


def link(name, target):
    """An edit that replaces an entry by a link."""

    def edit(file):
        del file[name]
        file[name] = target

    return edit


def set_attribute(name, value, path="/"):
    """An edit of an attribute."""

    def edit(file):
        file[path].attrs[name] = value

    return edit
