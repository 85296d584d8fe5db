"""Convergence of an ensemble, of its predictions first."""

from tfbnn.diagnostics.convergence import diagnose
from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.posterior.prediction import function_draws
from tfbnn.system.arrays import Array


def diagnose_ensemble(ensemble: Ensemble, x_reference: Array | None = None) -> Diagnosis:
    """Diagnosis of an ensemble at transformed inputs [R, D], by default those saved with it."""
    if x_reference is None:
        x_reference = ensemble.x_pipeline.forward(ensemble.x_reference)
    function = function_draws(ensemble, x_reference)
    function = function.reshape(ensemble.num_chains, ensemble.num_results, *function.shape[1:])
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
    )
