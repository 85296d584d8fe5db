"""Names that Keras has are served, or refused with what to type; duck typing stays what it was."""

import copy
import pickle
import re

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows
from tfbnn.spec.habits import HINTS, hint

ROWS = make_rows(20, 2, 1)


def test_count_params_is_the_size_of_a_draw(fitted):
    assert fitted.count_params() == fitted.posterior.draws.shape[-1] == 2 * 5 + 5 + 5 + 1 + 1
    assert tfbnn.BayesianMLP([2, 5, 1], prior=tfbnn.priors.Normal()).count_params() == 22


def test_other_methods_are_absent_and_say_what_there_is(fitted):
    for name in HINTS:
        assert not hasattr(fitted, name) and name not in dir(fitted)
        with pytest.raises(AttributeError) as caught:
            getattr(fitted, name)
        assert str(caught.value) == f"A BayesianMLP has no {name!r}.{hint(name)}"
        assert (caught.value.name, caught.value.obj) == (name, fitted)


def test_the_remedies_name_what_is_there(fitted):
    """Every `model.name` and `tfbnn.name` in them exists."""
    for remedy in HINTS.values():
        for owner, names in re.findall(r"\b(model|tfbnn)\.([a-z_.]+[A-Za-z]+)", remedy):
            value = {"model": fitted, "tfbnn": tfbnn}[owner]
            for name in names.split("."):
                value = getattr(value, name)


def test_an_attribute_that_nobody_knows_is_refused_as_ever(fitted):
    with pytest.raises(AttributeError, match="^'BayesianMLP' object has no attribute 'fits'$"):
        fitted.fits  # noqa: B018


def test_a_property_keeps_its_own_error():
    with pytest.raises(tfbnn.NotFittedError, match="Call fit_posterior first"):
        tfbnn.BayesianMLP([2, 3, 1]).posterior  # noqa: B018
    assert not hasattr(tfbnn.BayesianMLP([2, 3, 1]), "posterior")


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_models_are_copied_and_pickled(fitted, copied):
    x = ROWS[0]
    np.testing.assert_array_equal(copied(fitted).predict(x).mean, fitted.predict(x).mean)
    assert copied(tfbnn.BayesianMLP([2, 3, 1])).spec == tfbnn.BayesianMLP([2, 3, 1]).spec


class Batches:
    """An object that gives batches (x, y), like tf.data.Dataset or a PyTorch loader; no array."""

    def __iter__(self):
        x, y = ROWS
        return iter([(x[:12], y[:12]), (x[12:], y[12:])])


@pytest.mark.parametrize(
    "x", [Batches(), iter(ROWS[0]), object()], ids=["batches", "iterator", "none"]
)
def test_what_gives_batches_is_refused(x, fitted):
    for call in (
        lambda: tfbnn.BayesianMLP([2, 3, 1]).fit_posterior(x, ROWS[1]),
        lambda: tfbnn.BayesianMLP([2, 3, 1]).fit_posterior(x),
        lambda: fitted.predict(x),
    ):
        with pytest.raises(TypeError, match="^x must be an array of numbers, received") as caught:
            call()
        assert "map(np.concatenate, zip(*batches))" in str(caught.value)
