"""Errors and warnings that tfbnn defines."""


class NotFittedError(ValueError, AttributeError):
    """Raised when a model without posterior draws is asked for something that needs them."""


class ChainError(RuntimeError):
    """Raised after a run in which a chain failed; the draws of the other chains are kept.

    Attributes:
        samples: Samples of the other chains if `tfbnn.sample` raised the error, else None.
    """

    samples: object = None


class ModelFileError(ValueError):
    """Raised when a file is not a tfbnn model, is damaged, or contradicts itself."""


class RunFolderError(ValueError):
    """Raised when a folder is no run, is damaged, contradicts itself, or already holds a run."""


class RunLockedError(RunFolderError):
    """Raised when another process is writing the same part of a run folder."""


class RunFolderWarning(UserWarning):
    """Issued when a commit of a run failed, or the last one is damaged and the one before it is used."""


class StartError(ValueError):
    """Raised when the log density, its gradient or a kernel's metric is not finite at a start."""


class ConvergenceWarning(UserWarning):
    """Issued when the draws of a run should not be trusted yet.

    This happens when a chain stops moving, and once after a run whose diagnostics fail.
    """


class VerdictWarning(ConvergenceWarning):
    """Issued once after a run whose draws are not usable yet, with the verdict of its report."""


class DataWarning(UserWarning):
    """Issued when data are usable but probably not as intended (constant columns, one row)."""
