"""The least time that a gradient can take on a device, by rates that are measured on it.

Every weight and row costs six operations, at the rate of a large float32 matrix product, and every
hidden unit and row one tanh, at the rate of XLA on an array that stays in the cache, with all cores
at work.
"""

import threading
import time

import tensorflow as tf

from tfbnn.system.threads import num_cores

_MATRIX, _PRODUCTS = 4096, 1
_ARRAY, _ROUNDS = (512, 256), 300


def seconds_per_operation():
    """Function () -> wall-clock seconds per operation of a large float32 matrix product."""
    a = tf.random.stateless_normal([_MATRIX, _MATRIX], [0, 0])
    multiply = tf.function(lambda a: tf.reduce_sum(a @ a), autograph=False)

    def measure():
        began = time.perf_counter()
        for _ in range(_PRODUCTS):
            multiply(a).numpy()
        return (time.perf_counter() - began) / (_PRODUCTS * 2 * _MATRIX**3)

    return measure


def seconds_per_tanh():
    """Function () -> wall-clock seconds per element of tanh, all cores together.

    Each core has a thread with an array of its own, because XLA decides by itself how many threads
    one loop gets; a GPU gets one loop.
    """
    on_gpu = "GPU" in tf.constant(0.0).device
    num_threads = 1 if on_gpu else num_cores()

    @tf.function(jit_compile=True, autograph=False)
    def rounds(x):
        return tf.while_loop(
            lambda index, x: index < _ROUNDS, lambda index, x: (index + 1, tf.tanh(x)), (0, x)
        )[1]

    array = tf.random.stateless_normal(_ARRAY, [0, 0])
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
        elements = num_threads * _ROUNDS * _ARRAY[0] * _ARRAY[1]
        return (time.perf_counter() - began) / elements

    return measure


def least_seconds(layers, num_rows, per_operation, per_tanh):
    """(seconds of the products, seconds of the activations) of one gradient of one chain."""
    weights = sum((a + 1) * b for a, b in zip(layers[:-1], layers[1:]))
    return 6 * num_rows * weights * per_operation, num_rows * sum(layers[1:-1]) * per_tanh
