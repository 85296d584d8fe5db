"""Keras models as pure functions of their variables."""
