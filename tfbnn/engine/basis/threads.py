"""How many threads an operation of TensorFlow has."""

from tfbnn.engine.basis.libraries import tf
from tfbnn.system.threads import num_cores


def limit_threads() -> None:
    """Gives an operation of TensorFlow as many threads as this process may use.

    Dask sets OMP_NUM_THREADS to 1 for its workers: more of them would share these cores.
    """
    threading = tf.config.threading
    try:
        threading.set_intra_op_parallelism_threads(num_cores())
        threading.set_inter_op_parallelism_threads(num_cores())
    except RuntimeError:
        pass  # TensorFlow was in use before in this process, with threads of another's choice
