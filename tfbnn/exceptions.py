"""The errors and warnings that tfbnn raises itself."""


class NotFittedError(ValueError, AttributeError):
    """Raised when a model without posterior draws is asked for something that needs them."""


class ChainError(RuntimeError):
    """Raised after a run in which a chain failed; the draws of the others are kept.

    Attributes:
        samples: Of `tfbnn.sample` its Samples of the others, else None.
    """

    samples: object = None


class ModelFileError(ValueError):
    """Raised when a file is not a tfbnn model, is damaged, or contradicts itself."""


class RunFolderError(ValueError):
    """Raised when a folder is not a run, is damaged, contradicts itself, or is a run already."""


class RunLockedError(RunFolderError):
    """Raised when another process writes the part of a run folder that this one wants to write."""


class RunFolderWarning(UserWarning):
    """Issued when the last commit of a run is damaged and the one before it is used."""


class StartError(ValueError):
    """Raised when the log density, its gradient or a kernel's metric is not finite at a start."""


class ConvergenceWarning(UserWarning):
    """Issued when the draws of a run should not be trusted yet.

    A chain stands still, or, once after the run, its diagnostics fail.
    """


class VerdictWarning(ConvergenceWarning):
    """Issued once after a run whose draws are not usable yet: what its report says in one line."""


class DataWarning(UserWarning):
    """Issued when data are usable but probably not what was meant (constant columns, one row)."""
