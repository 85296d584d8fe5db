"""Fits of Keras models in worker processes."""

import keras
import pytest
from keras import layers

import tfbnn
from tests.support.keras_models import KINDS, RUN
from tests.support.small_runs import assert_same_draws

COMPILED = RUN | {"jit_compile": True}


@pytest.mark.filterwarnings("ignore::tfbnn.exceptions.VerdictWarning")
@pytest.mark.parametrize("name", ["subclassed", "batch norm"])
def test_workers_make_the_bits_of_one_process(name):
    """Those of a class of one's own import it by its name."""
    kind = KINDS[name]
    here, there = kind.model(), kind.model()
    here.fit_posterior(*kind.rows(), **COMPILED)
    there.fit_posterior(*kind.rows(), num_workers=2, **COMPILED)
    assert_same_draws(there, here)


def test_a_class_that_they_cannot_import_is_refused():
    class Inside(layers.Layer):
        def call(self, x):
            return 2.0 * x

    model = tfbnn.BayesianModel(keras.Sequential([keras.Input((3,)), Inside(), layers.Dense(1)]))
    with pytest.raises(
        ValueError,
        match="num_workers=2 needs functions and classes.*Inside is no module-level class",
    ):
        model.fit_posterior(*KINDS["dense"].rows(), num_workers=2, **COMPILED)
