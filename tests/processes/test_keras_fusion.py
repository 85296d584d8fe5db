"""A Keras model in a process of its own, with oneDNN."""

import os
import subprocess
import sys

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
