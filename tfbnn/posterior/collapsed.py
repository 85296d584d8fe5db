"""What a run with collapsed readout knows of the readouts besides those it drew."""

from dataclasses import dataclass

import numpy as np

from tfbnn.posterior.forward import network_outputs


@dataclass(frozen=True, eq=False)
class Readouts:
    """The normal distribution of every draw's readout, given the rest of that draw.

    Attributes:
        mean: Means of the entries of theta that are the readout's, kernel before bias
            [C, S, p * K], for p features (hidden units and the bias) and K outputs.
        factor: Upper triangular F with F F^T the covariance of one output's entries, its rows one
            after the other without the zeros: [C, S, G, p (p + 1) / 2], G = 1 where all outputs have
            the same, else K. None where it was not kept.
    """

    mean: np.ndarray
    factor: np.ndarray | None = None

    def __post_init__(self):
        for array in (self.mean, self.factor):
            if array is not None:
                array.setflags(write=False)

    def of_chains(self, chains):
        """Those of some chains."""
        return Readouts(self.mean[chains], None if self.factor is None else self.factor[chains])

    def factors(self, num_features):
        """The matrices F of all draws [C * S, G, p, p]."""
        packed = self.factor.reshape(-1, *self.factor.shape[2:])
        full = np.zeros((*packed.shape[:2], num_features, num_features), packed.dtype)
        rows, columns = np.triu_indices(num_features)
        full[..., rows, columns] = packed
        return full


def pop_readouts(statistics):
    """Takes what belongs to the readouts out of a dict of statistics: Readouts, or None."""
    mean, factor = (statistics.pop(name, None) for name in ("readout_mean", "readout_factor"))
    return None if mean is None else Readouts(mean, factor)


def stacked_weights(ensemble):
    """Effective weights whose last layer has other lines: means of readouts, then their factors.

    Returns:
        List of [C * S, out, in + 1]; the last one is [C * S, K + G p, p].
    """
    num_features, num_outputs = ensemble.spec.layer_sizes[-2] + 1, ensemble.spec.layer_sizes[-1]
    mean = ensemble.readouts.mean.reshape(-1, num_features, num_outputs)
    factors = np.swapaxes(ensemble.readouts.factors(num_features), 2, 3)
    factors = factors.reshape(len(mean), -1, num_features)
    lines = np.concatenate([np.swapaxes(mean, 1, 2), factors], axis=1)
    scales = ensemble.input_scales(len(ensemble.spec.layer_sizes) - 2)[:, None]
    return [*ensemble.effective_weights[:-1], lines * scales]


def function_moments(ensemble, x):
    """The function's mean and spread with all readouts integrated out, in closed form.

    Args:
        ensemble: Ensemble whose `readouts` have a factor.
        x: Transformed inputs [n, D].

    Returns:
        (mean [n, K], standard deviation [n, K]), transformed.
    """
    num_features, num_outputs = ensemble.spec.layer_sizes[-2] + 1, ensemble.spec.layer_sizes[-1]
    outputs = network_outputs(ensemble, x, ensemble.stacked_weights).astype(np.float64)
    of_draw, roots = outputs[:, :num_outputs], outputs[:, num_outputs:]
    roots = roots.reshape(len(roots), -1, num_features, len(x))
    # [C * S, G, n]; with G = 1 the same for all outputs.
    variance = np.square(roots).sum(axis=2)
    mean = np.einsum("s,skn->kn", ensemble.draw_weights, of_draw)
    spread = np.square(of_draw - mean) + variance
    return mean.T, np.sqrt(np.einsum("s,skn->kn", ensemble.draw_weights, spread)).T
