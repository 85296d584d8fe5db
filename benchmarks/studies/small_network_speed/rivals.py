"""MALA on XOR by others, for benchmarks/studies/small_network_speed/run.py: TFP, blackjax and NumPy."""

import importlib.util
import time

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

__all__ = ["rivals", "samplers"]


def rivals(x, y, theta, step_size, length):
    """Dict name -> function () -> (wall, processor) seconds per iteration of all chains."""
    runs = samplers(x, y, theta, step_size, length)
    return {name: _timed(run, length) for name, run in runs.items()}


def samplers(x, y, theta, step_size, length):
    """Dict name -> function () -> draws [length, C, 9]; blackjax's only where it is installed.

    Args:
        x, y: Inputs [N, 2], labels 0 or 1 [N, 1].
        theta: Starts [C, 9].
        step_size: Variance of the proposal.
        length: Number of iterations.
    """
    found = {"TFP MALA, one XLA program": _tfp, "NumPy, all chains at once": _numpy}
    if importlib.util.find_spec("blackjax"):
        found["blackjax MALA, vmap and scan"] = _blackjax
    return {name: make(x, y, theta, step_size, length) for name, make in found.items()}


def _timed(run, length):
    def timed():
        wall, processor = time.perf_counter(), time.process_time()
        run()
        return (time.perf_counter() - wall) / length, (time.process_time() - processor) / length

    return timed


def _tfp(x, y, theta, step_size, length):
    """`sample_chain` with TFP's own kernel, a float32 density, draws kept, nothing traced."""
    x, y = tf.constant(x, tf.float32), tf.constant(y[:, 0], tf.float32)

    def log_density(theta):
        kernel = tf.reshape(theta[:, :4], [-1, 2, 2])
        hidden = tf.sigmoid(tf.matmul(x[None], kernel) + theta[:, None, 4:6])
        logits = tf.linalg.matvec(hidden, theta[:, 6:8]) + theta[:, 8:9]
        likelihood = -tf.reduce_sum(tf.nn.softplus((1.0 - 2.0 * y) * logits), axis=-1)
        return likelihood - 0.5 * tf.reduce_sum(theta**2, axis=-1)

    kernel = tfp.mcmc.MetropolisAdjustedLangevinAlgorithm(log_density, step_size)

    @tf.function(jit_compile=True, autograph=False)
    def sample(theta, seed):
        return tfp.mcmc.sample_chain(
            length, theta, kernel=kernel, trace_fn=None, seed=seed, num_burnin_steps=0
        )

    return lambda: sample(tf.constant(theta), tf.constant([1, 2])).numpy()


def _blackjax(x, y, theta, step_size, length):
    """The same in JAX; blackjax's step is half of the variance that TFP takes."""
    import blackjax
    import jax
    import jax.numpy as jnp

    x, y = jnp.asarray(x, jnp.float32), jnp.asarray(y[:, 0], jnp.float32)

    def log_density(theta):
        hidden = jax.nn.sigmoid(x @ theta[:4].reshape(2, 2) + theta[4:6])
        logits = hidden @ theta[6:8] + theta[8]
        likelihood = -jnp.sum(jax.nn.softplus((1.0 - 2.0 * y) * logits))
        return likelihood - 0.5 * jnp.sum(theta**2)

    sampler = blackjax.mala(log_density, 0.5 * step_size)

    @jax.jit
    def sample(theta, key):
        def one(states, key):
            keys = jax.random.split(key, len(theta))
            states, _ = jax.vmap(sampler.step)(keys, states)
            return states, states.position

        return jax.lax.scan(one, jax.vmap(sampler.init)(theta), jax.random.split(key, length))[1]

    return lambda: np.asarray(sample(jnp.asarray(theta), jax.random.key(1)))


def _numpy(x, y, theta, step_size, length):
    """Vectorised over chains, gradients by hand, float32."""
    x, signs = x.astype(np.float32), (1.0 - 2.0 * y[:, 0]).astype(np.float32)
    generator = np.random.default_rng(2)

    def value_and_gradient(theta):
        kernel = theta[:, :4].reshape(-1, 2, 2)
        hidden = 1.0 / (1.0 + np.exp(-(x @ kernel + theta[:, None, 4:6])))
        logits = np.einsum("cnh,ch->cn", hidden, theta[:, 6:8]) + theta[:, 8:9]
        wrong = signs * logits
        value = -np.logaddexp(0.0, wrong).sum(-1) - 0.5 * (theta**2).sum(-1)
        to_logits = -signs / (1.0 + np.exp(-wrong))
        to_hidden = to_logits[:, :, None] * theta[:, None, 6:8] * hidden * (1.0 - hidden)
        gradient = np.concatenate(
            [
                np.einsum("ni,cnh->cih", x, to_hidden).reshape(-1, 4),
                to_hidden.sum(1),
                np.einsum("cnh,cn->ch", hidden, to_logits),
                to_logits.sum(1, keepdims=True),
            ],
            axis=1,
        )
        return value, gradient - theta

    def sample():
        here, (value, gradient) = theta, value_and_gradient(theta)
        draws = np.empty((length, *theta.shape), np.float32)
        for index in range(length):
            noise = generator.standard_normal(here.shape, np.float32)
            there = here + 0.5 * step_size * gradient + step_size**0.5 * noise
            new_value, new_gradient = value_and_gradient(there)
            back = here - there - 0.5 * step_size * new_gradient
            correction = 0.5 * (noise**2).sum(-1) - 0.5 * (back**2).sum(-1) / step_size
            accepted = np.log(generator.random(len(here))) < new_value - value + correction
            here = np.where(accepted[:, None], there, here)
            value = np.where(accepted, new_value, value)
            gradient = np.where(accepted[:, None], new_gradient, gradient)
            draws[index] = here
        return draws

    return sample
