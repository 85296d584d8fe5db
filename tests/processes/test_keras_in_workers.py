"""Fits of Keras models in worker processes."""

import os
import subprocess
import sys

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


SUM_OF_DENSE = """
import os
import subprocess
import sys

import keras
import tfbnn
row = keras.Input((2,))
both = keras.layers.Add()([keras.layers.Dense(4, "tanh")(row), keras.layers.Dense(4)(row)])
model = tfbnn.BayesianModel(keras.Model(row, keras.layers.Dense(1)(both)))
tfbnn.BayesianModel.from_spec(model.spec)
"""


def test_a_linear_layer_in_a_sum_predicts_on_cpus_whose_kernels_lack_its_fusion():
    """With oneDNN TensorFlow fuses it, of an unknown number of rows, with what no kernel computes."""
    environment = os.environ | {"TF_ENABLE_ONEDNN_OPTS": "1"}
    subprocess.run([sys.executable, "-c", SUM_OF_DENSE], env=environment, check=True)
