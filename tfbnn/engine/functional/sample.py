"""`tfbnn.sample`: draws of any log density, with the engine that samples networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfbnn.data.validation import as_float_array, check_integer
from tfbnn.engine.functional.samples import Samples, quantities_of
from tfbnn.exceptions import VerdictWarning
from tfbnn.run.options import FitOptions
from tfbnn.run.result import chain_error
from tfbnn.run.until import Until
from tfbnn.spec.habits import explains_keywords
from tfbnn.system.arrays import Array
from tfbnn.system.atomic import StrPath
from tfbnn.system.words import warn

# The engine is imported only when it runs, because TensorFlow takes seconds to import.
if TYPE_CHECKING:
    from tfbnn.engine.kernels.base import Kernel

_DTYPES = ("float32", "float64")


@explains_keywords
def sample(
    log_prob: Any,
    initial_state: Any,
    kernel: Kernel | str | Callable[..., Any] = "nuts",
    num_results: int = 1000,
    num_burnin_steps: int = 1000,
    *,
    num_steps_between_results: int = 0,
    seed: int = 0,
    quantities: Callable[[Array], Any] | None = None,
    until: Until | None = None,
    jit_compile: bool = True,
    output: StrPath | None = None,
    resume: bool = False,
    commit_interval: float = 30.0,
    verbose: int | str = "auto",
    callbacks: Sequence[Any] = (),
) -> Samples:
    """Draw samples of a log density, with the warm-up, the kernels and the reports of this package.

    Args:
        log_prob: A pure TensorFlow function of positions [C, P] that returns the log density of each,
            [C], up to a constant. Or a pair (log_prior, log_likelihood) of such functions, which
            are summed. `kernels.PowerPosterior` needs them separately, and estimates the log
            evidence if both are normalised. The functions must work in the dtype of their argument:
            SMMALA computes second derivatives in float64.
        initial_state: Starts of the chains, [C, P], one per chain. Its dtype is that of positions
            and gradients: float32, or float64 (also for integers).
        kernel: A name from `kernels.available()`, settings from `tfbnn.kernels`, or a callable
            target_log_prob_fn -> `tfp.mcmc` kernel. Default "nuts". All kernels are allowed except
            those that need a network: `Repriorised`, `TruncatedMALA` and
            SMMALA(metric="gauss_newton"). preconditioner="gauss_newton" means "diagonal", because a
            log density has no such matrix.
        num_results: Draws kept per chain, default 1000; with `until` the largest number.
        num_burnin_steps: Transitions of warm-up per chain, default 1000. They find the step size
            and the scale of each coordinate; in the last fifth both are fixed.
        num_steps_between_results: Transitions skipped after each kept draw, default 0.
        seed: Integer. The same seed gives the same bits on the same machine.
        quantities: NumPy function of draws [C, S, P] that returns the quantities to check and
            report: an array [C, S, ...], or a dict of arrays by name. None (default): the
            coordinates themselves. Checks of permutable or unidentified coordinates mean little.
        until: `tfbnn.Until` ends the run as soon as the quantities are known well enough, with
            checks after 100, 200, 400, ... draws per chain. None (default): exactly num_results.
        jit_compile: Whether XLA compiles the transitions. Default True; use False for functions
            with operations that XLA does not have.
        output, resume, commit_interval: Folder to which the run is committed every commit_interval
            seconds, and whether to resume the run in this folder. A run is not resumed if log_prob
            has another name, or other values at the starts or at the last draws.
        verbose, callbacks: As in `BayesianMLP.fit_posterior`.

    On a CPU, chains advance in as many chain groups as there are cores, each in one program.

    Returns:
        `Samples`: draws [C, S, P], sample_stats, `report()`, `to_arviz()`.

    Raises:
        TypeError, ValueError: Before compilation, for functions with other shapes, without
            gradients, or with chains that depend on each other, and for kernels that need a
            network.
        StartError: If the density is not finite at the start of a chain.
        RunFolderError, RunLockedError: As in `fit_posterior`.
        ChainError: If a chain failed during the run; its `samples` has the draws of the others.
        KeyboardInterrupt: On SIGINT and SIGTERM. The draws so far are in `output`, if it was given.

    Warns:
        VerdictWarning: If the chains do not agree.

    Example:
        def log_prob(x):
            return -0.5 * tf.reduce_sum(x**2, axis=-1)

        samples = tfbnn.sample(log_prob, np.zeros((4, 10), "float32"))
        print(samples.report())
    """
    theta = _starts(initial_state)
    num_results = check_integer("num_results", num_results, minimum=1)
    if until is not None and not isinstance(until, Until):
        raise TypeError(f"until must be a tfbnn.Until or None, received {until!r}.")
    if until is not None and until.score_change is not None:
        raise ValueError(
            f"score_change is about rows, which a log density has none of, received {until!r}. Use ess "
            "and rhat."
        )
    quantities_of(theta[:, None], quantities)  # find its errors before the run
    options = FitOptions(
        kernel=kernel,
        num_chains=len(theta),
        num_results=num_results,
        num_burnin_steps=num_burnin_steps,
        num_steps_between_results=num_steps_between_results,
        seed=seed,
        until=until,
        jit_compile=jit_compile,
        pretraining=None,
        calibrate=False,
        output=output,
        resume=resume,
        commit_interval=commit_interval,
        verbose=verbose,
        callbacks=callbacks,
    )
    from tfbnn.engine.functional.running import make_density_spec, run_density

    samples = run_density(make_density_spec(log_prob, theta), theta, options, quantities)
    if not samples.failures:
        if not samples.is_enough:
            verdict = f"{samples.verdict[0].upper()}{samples.verdict[1:]}"
            warn(f"{verdict}. See samples.report().", VerdictWarning)
        return samples
    kept = "the attribute samples of this error"
    error = chain_error(samples.failures, options.output, kept, command=None)
    error.samples = samples
    if samples.interrupted:
        raise KeyboardInterrupt from error
    raise error


def _starts(initial_state: Any) -> Array:
    """Check the starts [C, P] and convert them to the dtype of the run; raise TypeError or ValueError."""
    dtype = str(getattr(getattr(initial_state, "dtype", None), "name", ""))
    theta = as_float_array(initial_state, "initial_state")
    if theta.ndim != 2 or not theta.size:
        raise ValueError(
            "initial_state must have shape [C, P], one row per chain, received "
            f"{list(theta.shape)}. For one chain pass x[None]."
        )
    if not np.isfinite(theta).all():
        chain, index = (int(indices[0]) for indices in np.nonzero(~np.isfinite(theta)))
        raise ValueError(
            f"initial_state must be finite, received {theta[chain, index]} for chain {chain}, "
            f"coordinate {index}."
        )
    return theta.astype(dtype if dtype in _DTYPES else "float64")
