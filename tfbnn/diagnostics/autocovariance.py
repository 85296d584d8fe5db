"""Autocovariance by FFT and Geyer's truncation of the sum of autocorrelations.

References:
    Geyer (1992), "Practical Markov chain Monte Carlo", Statistical Science 7(4).
    Vehtari, Gelman, Simpson, Carpenter and Burkner (2021), arXiv:1903.08008, section 3.
"""

import numpy as np

from tfbnn.system.arrays import Array


def centre(draws: Array) -> tuple[Array, Array]:
    """Split draws into chain means and deviations from them.

    Args:
        draws: [..., C, S].

    Returns:
        The deviations [..., C, S] and the chain means [..., C]. The means are relative to the
        first draw of the first chain, which does not affect their variance.
    """
    # Subtracting the first draw leaves a constant chain at exactly zero: its rounded mean need
    # not equal its value, and the residue would pass for variance.
    first = draws[..., :1]
    shifted = draws - first
    means = shifted.mean(axis=-1)
    return shifted - means[..., None], means + (first[..., 0] - first[..., :1, 0])


def autocovariance(deviations: Array, num_lags: int, *, pooled: bool = False) -> Array:
    """Compute autocovariances at lags 0 to num_lags - 1, each a sum divided by S.

    Args:
        deviations: [..., C, S], every chain with mean zero.
        num_lags: Number of lags; those from S on have no terms and are zero.
        pooled: Whether to average over the chains.

    Returns:
        [..., C, num_lags], or [..., num_lags] if pooled.
    """
    num_draws = deviations.shape[-1]
    # Zero padding to at least S + num_lags keeps the circular products from wrapping around.
    length = 1 << (num_draws + num_lags - 1).bit_length()
    spectrum = np.fft.rfft(deviations, length, axis=-1)
    power = spectrum.real**2 + spectrum.imag**2
    if pooled:
        power = power.mean(axis=-2)
    return np.fft.irfft(power, length, axis=-1)[..., :num_lags] / num_draws


def geyer_time(correlations: Array) -> Array:
    """Compute the integrated autocorrelation time of one chain by the initial monotone sequence.

    With the pair sums Gamma_k = rho_2k + rho_2k+1 the time is -1 + 2 * sum_k Gamma_k. Each Gamma_k
    is limited to the smallest before it, and the sum ends before the first that is not positive.

    Args:
        correlations: [..., L], one at lag 0, NaN for a chain without variance.

    Returns:
        [...], NaN where the correlations are.
    """
    kept, monotone = _initial_sequence(correlations)
    time = 2.0 * np.sum(np.where(kept, monotone, 0.0), axis=-1) - 1.0
    return np.where(np.isnan(correlations[..., 0]), np.nan, time)


def multi_chain_ess(draws: Array) -> Array:
    """Compute the effective sample size of the mean over all chains.

    The correlation at lag t is 1 - (W - mean autocovariance at t) / var_plus, with W the mean
    within-chain variance and var_plus = (S - 1) / S * W + the variance of the chain means, so
    that chains which disagree lower the result. The number is capped at N * log10(N), N = C * S,
    because the time of antithetic chains is badly determined near zero.

    Args:
        draws: [M, C, S], C >= 2, finite (split chains).

    Returns:
        [M], NaN where all draws are equal.
    """
    num_chains, num_draws = draws.shape[-2:]
    num_pairs = max(2, (num_draws - 1) // 2)
    deviations, means = centre(draws)
    covariances = autocovariance(deviations, 2 * num_pairs, pooled=True)
    within = covariances[:, :1] * (num_draws / (num_draws - 1.0))
    total = covariances[:, :1] + means.var(axis=-1, ddof=1, keepdims=True)
    correlations = 1.0 - (within - covariances) / total
    correlations[:, 0] = 1.0
    size = num_chains * num_draws
    time = np.maximum(_multi_chain_time(correlations), 1.0 / np.log10(size))
    return np.where(total[:, 0] > 0, size / time, np.nan)


def _multi_chain_time(correlations: Array) -> Array:
    """Compute the autocorrelation time by the initial monotone sequence and a last half pair.

    The even lag of the pair that ends the sequence is counted once, which reduces the truncation
    bias of antithetic chains. The last available pair ends the sum if none before it does.
    """
    kept, monotone = _initial_sequence(correlations)
    kept[..., -1] = False
    num_kept = kept.sum(axis=-1, keepdims=True)
    even = np.take_along_axis(correlations[..., 0::2], num_kept, axis=-1)[..., 0]
    sums = np.sum(np.where(kept, monotone, 0.0), axis=-1)
    return 2.0 * sums - 1.0 + np.maximum(even, 0.0)


def _initial_sequence(correlations: Array) -> tuple[Array, Array]:
    """Return a mask of the pairs of lags in Geyer's sum, and their values: [..., L // 2] each.

    The sum of pairs rho_2k + rho_2k+1 ends before the first that is not positive, and each is
    limited to the smallest before it.
    """
    end = correlations.shape[-1] // 2 * 2
    pairs = correlations[..., 0:end:2] + correlations[..., 1:end:2]
    kept = np.logical_and.accumulate(pairs > 0, axis=-1)
    return kept, np.minimum.accumulate(pairs, axis=-1)
