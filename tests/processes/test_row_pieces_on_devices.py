"""Pieces of rows on one device, one at once, and on two devices, two at once: the same bits."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

PROGRAM = """
import json, sys
import numpy as np
from tfbnn.engine.basis.libraries import tf

num_devices, at_once = map(int, sys.argv[1:])
tf.config.threading.set_inter_op_parallelism_threads(at_once)
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration() for _ in range(num_devices)],
)

import tfbnn
from tfbnn.engine.basis.compile import compiled
from tfbnn.engine.density.data import make_data
from tfbnn.engine.density.potential import Potential

generator = np.random.default_rng(0)
x, y = generator.normal(size=(3000, 2)), generator.normal(size=(3000, 1))
spec = tfbnn.BayesianMLP([2, 5, 1]).spec
theta = tf.constant(generator.normal(size=(1, spec.num_parameters)), tf.float32)
data = make_data(x, y, None, "float32")._replace(num_pieces=4)
function = compiled(lambda *given: Potential(spec).value_and_gradient(*given), jit_compile=False)
value, gradient = function(theta, data)
graph = function.get_concrete_function(theta, data).graph
calls = [one for one in graph.get_operations() if one.type.endswith("PartitionedCall")]
print(json.dumps({
    "bits": [value.numpy().tobytes().hex(), gradient.numpy().tobytes().hex()],
    "devices": [one.device[-5:] for one in calls],
}))
"""


def started(num_devices, at_once):
    """A process with so many devices of the CPU, and so many operations at once."""
    command = [sys.executable, "-c", PROGRAM, str(num_devices), str(at_once)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def found(process):
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err[-2000:]
    return json.loads(out)


def test_bits_hang_neither_on_how_many_run_at_once_nor_on_devices():
    alone, apart = map(found, [started(1, 1), started(2, 2)])
    assert alone["devices"] == ["CPU:0"] * 4
    assert apart["devices"] == ["CPU:0"] * 2 + ["CPU:1"] * 2
    assert alone["bits"] == apart["bits"]
