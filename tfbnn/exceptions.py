"""The errors and warnings that tfbnn raises itself."""

__all__ = ["ConvergenceWarning", "DataWarning", "ModelFileError", "NotFittedError", "StartError"]


class NotFittedError(ValueError, AttributeError):
    """Raised when a model without posterior draws is asked for something that needs them."""


class ModelFileError(ValueError):
    """Raised when a file is not a tfbnn model, is damaged, or contradicts itself."""


class StartError(ValueError):
    """Raised when the log density or its gradient is not finite where a chain starts."""


class ConvergenceWarning(UserWarning):
    """Issued once after a run whose diagnostics say that the draws should not be trusted yet."""


class DataWarning(UserWarning):
    """Issued when data are usable but probably not what was meant (constant columns, one row)."""
