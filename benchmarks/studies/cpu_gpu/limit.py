"""The least time that a gradient can take on a device, by rates that are measured on it.

Every weight and row costs six operations, at the rate of a large float32 matrix product, and every
hidden unit and row one tanh, at the rate of XLA on an array that stays in the cache, with all cores
at work. On a GPU activations go through its memory, at the rate of a large sum of array and number:
those of a hidden layer are written once, and read by the next layer and by the way back.
"""

import threading
import time

import tensorflow as tf

from tfbnn.system.threads import num_cores

_MATRIX, _PRODUCTS = 4096, 1
_ARRAY, _ROUNDS = (512, 256), 300
# A GPU is done before its next order comes: it gets several products, and each element, of an array
# that keeps all of it at work, many tanh in one pass.
_GPU_PRODUCTS, _GPU_ARRAY, _GPU_ROUNDS, _TANH_IN_A_PASS = 16, (4096, 2048), 20, 32
_COPIED, _COPIES = 2**27, 64
_BYTES_OF_ACTIVATION = 12


def on_gpu():
    """Return whether operations go to a GPU here and now."""
    return "GPU" in tf.constant(0.0).device


def seconds_per_operation():
    """Function () -> wall-clock seconds per operation of a large float32 matrix product."""
    a = tf.random.stateless_normal([_MATRIX, _MATRIX], [0, 0])
    multiply = tf.function(lambda a: tf.reduce_sum(a @ a), autograph=False)

    count = _GPU_PRODUCTS if on_gpu() else _PRODUCTS

    def measure():
        return _seconds_each(lambda: multiply(a), count) / (2 * _MATRIX**3)

    return measure


def seconds_per_tanh():
    """Function () -> wall-clock seconds per element of tanh, all cores together.

    Each core has a thread with an array of its own, because XLA decides by itself how many threads
    one loop gets; a GPU gets one loop.
    """
    num_threads = 1 if on_gpu() else num_cores()
    shape, num_rounds, in_a_pass = _ARRAY, _ROUNDS, 1
    if on_gpu():
        shape, num_rounds, in_a_pass = _GPU_ARRAY, _GPU_ROUNDS, _TANH_IN_A_PASS

    def one_pass(index, x):
        for _ in range(in_a_pass):
            x = tf.tanh(x)
        return index + 1, x

    @tf.function(jit_compile=True, autograph=False)
    def rounds(x):
        return tf.reduce_sum(
            tf.while_loop(lambda index, x: index < num_rounds, one_pass, (0, x))[1]
        )

    array = tf.random.stateless_normal(shape, [0, 0])
    device = array.device

    def work():
        with tf.device(device):
            rounds(array).numpy()

    def measure():
        threads = [threading.Thread(target=work) for _ in range(num_threads)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        elements = num_threads * num_rounds * in_a_pass * shape[0] * shape[1]
        return (time.perf_counter() - began) / elements

    return measure


def seconds_per_byte():
    """Function () -> wall-clock seconds per byte read or written in the device's memory."""
    array = tf.random.stateless_normal([_COPIED], [0, 0])

    @tf.function(jit_compile=True, autograph=False)
    def passes(x):
        return tf.while_loop(
            lambda index, x: index < _COPIES, lambda index, x: (index + 1, x + 1.0), (0, x)
        )[1][0]

    return lambda: _seconds_each(lambda: passes(array), 1) / (2 * 4 * _COPIED * _COPIES)


def _seconds_each(function, count):
    """Wall-clock seconds of one of so many calls, which a GPU is given without waiting between."""
    began = time.perf_counter()
    results = [function() for _ in range(count)]
    results[-1].numpy()
    return (time.perf_counter() - began) / count


def least_seconds(layers, num_rows, per_operation, per_tanh):
    """(seconds of the products, seconds of the activations) of one gradient of one chain."""
    weights = sum((a + 1) * b for a, b in zip(layers[:-1], layers[1:]))
    return 6 * num_rows * weights * per_operation, num_rows * sum(layers[1:-1]) * per_tanh


def least_traffic(layers, num_rows):
    """Bytes of activations through memory for one gradient of one chain."""
    return _BYTES_OF_ACTIVATION * num_rows * sum(layers[1:-1])
