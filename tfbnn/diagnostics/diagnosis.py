"""The diagnosis of one run: function space first, then the log density, then the weights.

The posterior of a network has many equivalent modes, because permuting hidden units or flipping
signs changes the weights and leaves the function as it is. Chains that agree on the function are
what predictions need; they need not agree on the weights.
"""

import dataclasses

import numpy as np

from tfbnn.diagnostics import statistics
from tfbnn.diagnostics.advice import find_problems
from tfbnn.diagnostics.presentation import (
    defined,
    ess_text,
    lower,
    number_text,
    plain,
    rhat_text,
    upper,
)

_RHAT_ACCEPTABLE = 1.05
_KEYS = ("lp", "acceptance_rate", "n_steps", "diverging", "energy")


@dataclasses.dataclass(frozen=True, eq=False)
class Diagnosis:
    """Convergence numbers of one run; NaN stands for an undefined one.

    C is the number of chains, N_ref that of reference inputs, K that of outputs and P that of
    parameters.

    Attributes:
        rhat_function: [N_ref, K] rank-normalised split R-hat of the function values.
        ess_function: [N_ref, K] their bulk effective sample size, over all chains.
        tail_ess_function: [N_ref, K] their tail effective sample size.
        mcse_function: [N_ref, K] Monte Carlo standard error of their mean.
        rhat_parameters: [P] R-hat of the weights, secondary (see the module).
        ess_parameters: [P] bulk effective sample size of the weights, secondary.
        rhat_log_prob: R-hat of the log density.
        ess_log_prob: Bulk effective sample size of the log density.
        between_chain_share: [N_ref, K] variance of chain means over total variance.
        recommended_thinning: Smallest thinning at which the lagged autocorrelation is below 0.1
            for 95 % of the function values; one where it is undefined for all.
        ebfmi: [C] energy Bayesian fraction of missing information.
        num_divergent: Divergent transitions over all chains.
        warnings: Sentences that say what is wrong, by how much, and what to do next.
        chain_weights: [C] weights of the chains in predictions, or None where nobody said. All
            numbers above are of the chains as they were sampled, without weights.
        weighting: One line on how the chains are weighted, or None for equal weights.
    """

    rhat_function: np.ndarray
    ess_function: np.ndarray
    tail_ess_function: np.ndarray
    mcse_function: np.ndarray
    rhat_parameters: np.ndarray
    ess_parameters: np.ndarray
    rhat_log_prob: float
    ess_log_prob: float
    between_chain_share: np.ndarray
    recommended_thinning: int
    ebfmi: np.ndarray
    num_divergent: int
    warnings: tuple[str, ...] = ()
    chain_weights: np.ndarray | None = None
    weighting: str | None = None

    def summary(self):
        """Returns the numbers in a few aligned lines, without the text of the warnings."""
        values = self._statistics()
        function, weights = values["function"], values["weights"]
        energies = " ".join(number_text(value) for value in self.ebfmi)
        if np.isnan(self.ebfmi).all():
            energies = "not defined here"
        lines = [
            ("function", rhat_text(function["rhat"])),
            (
                "",
                f"below {_RHAT_ACCEPTABLE}: {100 * function['share_rhat_below_1.05']:.0f} % of "
                f"{self.rhat_function.size} reference outputs; recommended thinning "
                f"{self.recommended_thinning}",
            ),
            ("", ess_text("bulk ESS", function["bulk_ess"])),
            ("", ess_text("tail ESS", function["tail_ess"])),
            (
                "log density",
                f"R-hat {number_text(self.rhat_log_prob)}, ESS {self.ess_log_prob:.0f}",
            ),
            ("", f"E-BFMI {energies}, {self.num_divergent} divergent transitions"),
            ("weights", f"{rhat_text(weights['rhat'])} (secondary: permuted or"),
            ("", "sign-flipped weights give the same function)"),
            ("", ess_text("bulk ESS", weights["bulk_ess"])),
            ("warnings", str(len(self.warnings))),
        ]
        if self.weighting is not None:
            lines.insert(0, ("chains", self.weighting))
        return "\n".join(f"{label:<13}{text}" for label, text in lines)

    def to_dict(self):
        """Returns the summarised numbers as plain Python values that JSON can hold.

        None stands for an undefined (NaN) number, and the string "inf" for an infinite R-hat
        of chains that stand still at different places.
        """
        return plain(self._statistics())

    def _statistics(self):
        rhats = defined(self.rhat_function)
        share = np.mean(rhats < _RHAT_ACCEPTABLE) if rhats.size else np.nan
        return {
            "function": {
                "num_outputs": self.rhat_function.size,
                "num_undefined": self.rhat_function.size - rhats.size,
                "rhat": upper(self.rhat_function),
                "share_rhat_below_1.05": share,
                "bulk_ess": lower(self.ess_function),
                "tail_ess": lower(self.tail_ess_function),
                "mcse": upper(self.mcse_function),
                "between_chain_share": upper(self.between_chain_share),
                "recommended_thinning": self.recommended_thinning,
            },
            "log_density": {
                "rhat": self.rhat_log_prob,
                "bulk_ess": self.ess_log_prob,
                "ebfmi": list(self.ebfmi),
                "num_divergent": self.num_divergent,
            },
            "weights": {
                "rhat": upper(self.rhat_parameters),
                "bulk_ess": lower(self.ess_parameters),
            },
            "warnings": list(self.warnings),
            "chain_weights": None if self.chain_weights is None else list(self.chain_weights),
            "weighting": self.weighting,
        }


def diagnose(
    draws,
    function_draws,
    sample_stats,
    *,
    max_tree_depth=None,
    num_divergent=None,
    transitions_per_draw=1,
):
    """Computes all convergence numbers of a run and says what they mean.

    Args:
        draws: [C, S, P] weight draws.
        function_draws: [C, S, N_ref, K] network outputs at reference inputs under these weights.
        sample_stats: Dict of [C, S] arrays; the keys lp, acceptance_rate, n_steps, diverging and
            energy are used where present, others ignored.
        max_tree_depth: The limit of the sampler, or None if it has none; a trajectory of
            2**max_tree_depth - 1 steps or more counts as cut short.
        num_divergent: Divergent transitions of the whole run, those between kept draws included;
            by default those among the kept draws.
        transitions_per_draw: Transitions per kept draw.

    Returns:
        Diagnosis. What needs an absent key is NaN, and num_divergent zero.

    Raises:
        ValueError: If the shapes do not fit together.
    """
    draws, function_draws = np.asarray(draws), np.asarray(function_draws)
    stats = {key: np.asarray(sample_stats[key]) for key in _KEYS if key in sample_stats}
    _check_shapes(draws, function_draws, stats)
    absent = np.full(draws.shape[:2], np.nan)
    log_probs = stats.get("lp", absent)
    diagnosis = Diagnosis(
        rhat_function=statistics.rhat(function_draws),
        ess_function=statistics.bulk_ess(function_draws),
        tail_ess_function=statistics.tail_ess(function_draws),
        mcse_function=statistics.mcse_mean(function_draws),
        rhat_parameters=statistics.rhat(draws),
        ess_parameters=statistics.bulk_ess(draws),
        rhat_log_prob=float(statistics.rhat(log_probs)),
        ess_log_prob=float(statistics.bulk_ess(log_probs)),
        between_chain_share=statistics.between_chain_variance_share(function_draws),
        recommended_thinning=_common_thinning(function_draws),
        ebfmi=statistics.ebfmi(stats.get("energy", absent)),
        num_divergent=(
            int(np.sum(stats.get("diverging", False))) if num_divergent is None else num_divergent
        ),
    )
    problems = find_problems(
        diagnosis,
        draws,
        stats,
        max_tree_depth=max_tree_depth,
        transitions_per_draw=transitions_per_draw,
    )
    return dataclasses.replace(diagnosis, warnings=problems)


def _check_shapes(draws, function_draws, stats):
    if draws.ndim != 3:
        raise ValueError(f"draws must have shape [C, S, P], received {list(draws.shape)}.")
    leading = draws.shape[:2]
    if function_draws.ndim != 4 or function_draws.shape[:2] != leading:
        raise ValueError(
            f"function_draws must have shape [{leading[0]}, {leading[1]}, N_ref, K] to fit draws, "
            f"received {list(function_draws.shape)}."
        )
    for key, value in stats.items():
        if value.shape != leading:
            raise ValueError(
                f"sample_stats['{key}'] must have shape {list(leading)} to fit draws, "
                f"received {list(value.shape)}."
            )


def _common_thinning(function_draws):
    thinning = defined(statistics.recommended_thinning(function_draws))
    return int(np.quantile(thinning, 0.95, method="higher")) if thinning.size else 1
