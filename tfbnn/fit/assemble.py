"""From draws to an ensemble: right after a fit, or out of a run folder. Needs no TensorFlow."""

import numpy as np

from tfbnn.data.prepared import TransformedRows
from tfbnn.data.rows import reference_rows
from tfbnn.exceptions import NotFittedError, RunFolderError
from tfbnn.posterior.collapsed import pop_readouts
from tfbnn.posterior.ensemble import Ensemble
from tfbnn.run.definition import RunDefinition
from tfbnn.run.evidence import Ladder
from tfbnn.run.session import read_lanes


def make_ensemble(definition, transformed, draws, statistics, num_divergent, ladder, readouts):
    """The Ensemble of the draws of a run.

    Args:
        definition: RunDefinition.
        transformed: TransformedRows.
        draws: [C, S, P].
        statistics: Dict name -> [C, S].
        num_divergent: Divergent transitions in the sampling phase, of all chains.
        ladder: Ladder of a PowerPosterior, or None.
        readouts: Readouts where the readout was collapsed, or None.
    """
    rows, validation = definition.rows, definition.validation
    return Ensemble(
        spec=definition.spec,
        x_pipeline=transformed.x_pipeline,
        y_pipeline=transformed.y_pipeline,
        draws=draws,
        sample_stats=statistics,
        chain_weights=np.full(len(draws), 1.0 / len(draws)),
        x_reference=reference_rows(rows.x if validation is None else validation.x),
        training_inputs=transformed.inputs,
        feature_names=rows.feature_names,
        row_noise=rows.noise is not None,
        classes=rows.classes,
        provenance=definition.provenance.stating(
            num_results_requested=definition.num_results,
            num_divergent=int(num_divergent),
            log_evidence=None if ladder is None else ladder.log_evidence.to_dict(),
        ),
        readouts=readouts,
    )


def measure_ladder(definition, rung_log_likelihood):
    """The Ladder of a PowerPosterior by its log likelihoods [C, S, m], or None without them."""
    if rung_log_likelihood is None:
        return None
    return Ladder.measure(definition.temperatures, rung_log_likelihood)


def load_run(path):
    """The Ensemble of what a run has committed so far, cut to the draws that every chain has.

    Args:
        path: Run folder, of a run that is finished, was interrupted, or is going on.

    Raises:
        RunFolderError: When the folder holds no run, or is damaged.
        NotFittedError: When no draw is committed yet.
    """
    from tfbnn.storage import RunFolder
    from tfbnn.storage.model.contents import from_arrays, to_arrays

    folder = RunFolder.open(path)
    try:
        # What is refused in a model file is refused here.
        return from_arrays(to_arrays(_committed_ensemble(folder)))
    except (NotFittedError, RunFolderError, MemoryError):
        raise
    except Exception as error:
        # Whatever a crafted folder provokes is a fault of the folder.
        raise RunFolderError(
            f"{folder.path!r} is not a run that can be loaded ({type(error).__name__}: {error})."
        ) from error


def _committed_ensemble(folder):
    definition = RunDefinition.read(folder)
    committed = read_lanes(folder)
    if not committed.draws.shape[1]:
        raise NotFittedError(
            f"The run in {folder.path!r} has not committed a draw of every chain yet. Wait for it, "
            "or go on with it: tfbnn resume."
        )
    statistics = dict(committed.statistics)
    readouts = pop_readouts(statistics)
    ladder = measure_ladder(definition, statistics.pop("rung_log_likelihood", None))
    transformed = TransformedRows.learn(definition.spec, definition.rows, None)
    divergent = sum(sum(lane["num_divergent"]) for lane in committed.counters)
    return make_ensemble(
        definition, transformed, committed.draws, statistics, divergent, ladder, readouts
    )
