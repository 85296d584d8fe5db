"""Convergence of an ensemble, of its predictions first, and its agreement with the data."""

from tfbnn.diagnostics.convergence import diagnose
from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.diagnostics.verdict import Predictions
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.fit_checking import check_fit
from tfbnn.posterior.prediction import function_of_chains
from tfbnn.spec.rows import NetworkRows
from tfbnn.system.arrays import Array


def diagnose_ensemble(
    ensemble: Ensemble,
    x_reference: Array | None = None,
    training_rows: NetworkRows | None = None,
    predictions: Predictions | None = None,
    row_groups: Array | None = None,
) -> Diagnosis:
    """The diagnosis of an ensemble.

    Args:
        ensemble: Ensemble.
        x_reference: Transformed inputs [R, D] at which chains are compared, by default those saved
            with the ensemble.
        training_rows: The rows of the fit, transformed; by default what was said of them when the
            ensemble was fitted.
        predictions: Predictions by better rows, or None; see `check_fit`.
        row_groups: Which of them are left out together, as `Rows.groups`.
    """
    function = function_of_chains(ensemble, x_reference)
    provenance, statistics = ensemble.provenance, dict(ensemble.sample_stats)
    if provenance.transitions_per_draw > 1:
        # E-BFMI compares successive transitions; between thinned ones it says nothing.
        del statistics["energy"]
    return diagnose(
        ensemble.draws,
        function,
        statistics,
        max_tree_depth=provenance.max_tree_depth,
        num_divergent=provenance.num_divergent,
        transitions_per_draw=provenance.transitions_per_draw,
        adapts=provenance.adapts_step_size,
        is_adjusted=provenance.bias is None,
        fit=check_fit(ensemble, training_rows, predictions, row_groups),
    )
