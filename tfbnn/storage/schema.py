"""Every name inside a tfbnn file. Nobody else writes a dataset or attribute name.

Groups and statistics carry ArviZ names; dimensions are chain, draw, param.
"""

__all__ = [
    "CHAIN_WEIGHTS",
    "COUNTS",
    "DTYPES",
    "FORMAT",
    "FORMAT_VERSION",
    "METADATA",
    "SAMPLE_STATS",
    "STATISTICS",
    "THETA",
    "X_REFERENCE",
]

FORMAT = "tfbnn-model"
# Version 0 makes no promise: a later release may refuse it.
FORMAT_VERSION = 0

THETA = "posterior/theta"  # [chain, draw, param], float32 or float64
CHAIN_WEIGHTS = "posterior/chain_weights"  # [chain], float64
SAMPLE_STATS = "sample_stats"  # group of [chain, draw]
STATISTICS = {
    "lp": "<f8",
    "acceptance_rate": "<f4",
    "step_size": "<f4",
    "n_steps": "<i4",
    "diverging": "u1",
    "energy": "<f8",
}
# Entries of provenance that diagnostics and warnings rely on: integers, or absent.
COUNTS = (
    "num_results_requested",
    "num_steps_between_results",
    "num_divergent",
    "max_tree_depth",
)
DTYPES = ("<f4", "<f8", "<i4", "|u1")
X_REFERENCE = "constant_data/x_reference"  # [row, input], float64, original units

# UTF-8 JSON as bytes: spec, transforms, feature names, class labels, provenance.
METADATA = "metadata"
