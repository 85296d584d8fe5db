"""HMC on the density of `timed_groups.network` by others, each as its user would write it.

One chain, float32, compiled; a step size and a number of leapfrog steps that are given, unit masses,
nothing adapted. Every rival keeps its draws.
"""

import importlib.util
import time

import numpy as np

__all__ = ["jax_log_density", "log_densities", "rivals"]


def rivals(layers, x, y, theta, step_size, num_leapfrog_steps, count):
    """Dict name -> function () -> wall-clock seconds per gradient; of those that are installed.

    Args:
        layers: Sizes of the layers.
        x, y: Rows [N, D], [N, K].
        theta: Start [P], in tfbnn's order of parameters.
        step_size, num_leapfrog_steps: Of every transition.
        count: Transitions of one call.
    """
    makers = {"tfp.mcmc": _tfp}
    makers |= {"blackjax": _blackjax} if _installed("jax", "blackjax") else {}
    makers |= {"numpyro": _numpyro} if _installed("jax", "numpyro") else {}

    def timed(sample):
        def run():
            began = time.perf_counter()
            sample()
            return (time.perf_counter() - began) / (count * num_leapfrog_steps)

        return run

    arguments = (layers, x, y, theta, step_size, num_leapfrog_steps, count)
    return {name: timed(make(*arguments)) for name, make in makers.items()}


def log_densities(layers, x, y):
    """Dict name -> function of theta [P] in tfbnn's order, as the rivals have it, up to a constant."""
    found = {"tfp.mcmc": lambda theta: _tf_log_density(layers, x, y)(*split(layers, theta))}
    if _installed("jax", "blackjax"):
        found["blackjax"] = jax_log_density(layers, x, y)
    if _installed("jax", "numpyro"):
        from numpyro.infer.util import log_density

        model, names = _numpyro_model(layers), _site_names(layers)
        found["numpyro"] = lambda theta: log_density(
            model, (x, y), {}, dict(zip(names, split(layers, theta)))
        )[0]
    return found


def split(layers, theta):
    """Kernel and bias of every layer, in a list; what follows them is left out."""
    parts, position = [], 0
    for a, b in zip(layers[:-1], layers[1:]):
        parts.append(theta[position : position + a * b].reshape(a, b))
        parts.append(theta[position + a * b : position + (a + 1) * b])
        position += (a + 1) * b
    return parts


def jax_log_density(layers, x, y, *, learned=False):
    """The log density of theta [P] for JAX, with unit noise or a half-normal scale last in theta."""
    import jax.numpy as jnp

    x, y = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)

    def log_density(theta):
        hidden, weights = x, split(layers, theta)
        for kernel, bias in zip(weights[:-2:2], weights[1:-2:2]):
            hidden = jnp.tanh(hidden @ kernel + bias)
        residuals = y - (hidden @ weights[-2] + weights[-1])
        if not learned:
            return -0.5 * jnp.sum(theta**2) - 0.5 * jnp.sum(residuals**2)
        log_scale = theta[-1]
        scale = jnp.exp(log_scale)
        prior = -0.5 * jnp.sum(theta[:-1] ** 2) - 0.5 * scale**2 + log_scale
        return prior - 0.5 * jnp.sum((residuals / scale) ** 2) - len(x) * log_scale

    return log_density


def _installed(*names):
    return all(importlib.util.find_spec(name) for name in names)


def _tf_log_density(layers, x, y):
    import tensorflow as tf

    x, y = tf.constant(x, tf.float32), tf.constant(y, tf.float32)

    def log_density(*weights):
        hidden = x
        for kernel, bias in zip(weights[:-2:2], weights[1:-2:2]):
            hidden = tf.tanh(hidden @ kernel + bias)
        residuals = y - (hidden @ weights[-2] + weights[-1])
        prior = tf.add_n([tf.reduce_sum(part**2) for part in weights])
        return -0.5 * prior - 0.5 * tf.reduce_sum(residuals**2)

    return log_density


def _tfp(layers, x, y, theta, step_size, num_leapfrog_steps, count):
    import tensorflow as tf
    import tensorflow_probability as tfp

    kernel = tfp.mcmc.HamiltonianMonteCarlo(
        _tf_log_density(layers, x, y), step_size, num_leapfrog_steps
    )

    @tf.function(jit_compile=True, autograph=False)
    def sample(state, results, seed):
        return tfp.mcmc.sample_chain(
            count,
            state,
            previous_kernel_results=results,
            kernel=kernel,
            trace_fn=None,
            seed=seed,
        )

    state = [tf.constant(part) for part in split(layers, theta)]
    results = kernel.bootstrap_results(state)  # a gradient, which is not to be timed
    return lambda: [part.numpy() for part in sample(state, results, tf.constant([1, 2]))]


def _blackjax(layers, x, y, theta, step_size, num_leapfrog_steps, count):
    import blackjax
    import jax
    import jax.numpy as jnp

    sampler = blackjax.hmc(
        jax_log_density(layers, x, y), step_size, jnp.ones(len(theta)), num_leapfrog_steps
    )

    @jax.jit
    def sample(state, key):
        def one(state, key):
            state, _ = sampler.step(key, state)
            return state, state.position

        return jax.lax.scan(one, state, jax.random.split(key, count))[1]

    state = jax.jit(sampler.init)(jnp.asarray(theta))
    return lambda: np.asarray(sample(state, jax.random.key(1)))


def _numpyro(layers, x, y, theta, step_size, num_leapfrog_steps, count):
    """Its model and its kernel in one scan: `MCMC.run` would compile anew in every call."""
    import jax
    import jax.numpy as jnp
    from numpyro.infer import HMC, init_to_value

    values = dict(zip(_site_names(layers), split(layers, theta)))
    kernel = HMC(
        _numpyro_model(layers),
        step_size=step_size,
        num_steps=num_leapfrog_steps,
        trajectory_length=None,
        adapt_step_size=False,
        adapt_mass_matrix=False,
        init_strategy=init_to_value(values=values),
    )
    rows = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
    first = kernel.init(jax.random.key(1), 0, None, rows, {})

    @jax.jit
    def sample(state):
        def one(state, _):
            state = kernel.sample(state, rows, {})
            return state, state.z

        return jax.lax.scan(one, state, length=count)[1]

    return lambda: {name: np.asarray(draws) for name, draws in sample(first).items()}


def _numpyro_model(layers):
    import jax.numpy as jnp
    import numpyro
    from numpyro.distributions import Normal

    def model(x, y):
        values = []
        for name, (a, b) in zip(_site_names(layers)[::2], zip(layers[:-1], layers[1:])):
            values.append(numpyro.sample(name, Normal(0.0, 1.0).expand([a, b]).to_event(2)))
            values.append(
                numpyro.sample(f"bias{name[6:]}", Normal(0.0, 1.0).expand([b]).to_event(1))
            )
        hidden = x
        for kernel, bias in zip(values[:-2:2], values[1:-2:2]):
            hidden = jnp.tanh(hidden @ kernel + bias)
        with numpyro.plate("rows", len(x)):
            mean = hidden @ values[-2] + values[-1]
            numpyro.sample("y", Normal(mean, 1.0).to_event(1), obs=y)

    return model


def _site_names(layers):
    return [f"{part}{index}" for index in range(len(layers) - 1) for part in ("kernel", "bias")]
