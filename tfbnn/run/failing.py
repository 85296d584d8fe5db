"""The error that names the chains of a run that failed."""

import os

from tfbnn.exceptions import ChainError
from tfbnn.run.result import Failures
from tfbnn.system.paths import StrPath


def chain_error(
    failures: Failures,
    output: StrPath | None,
    kept: str = "model.posterior",
    command: str | None = "tfbnn resume",
) -> ChainError:
    """ChainError that names the chains of failures, dict tuple of chains -> exception.

    Args:
        failures: At least one.
        output: The run folder, or None.
        kept: Where the draws of the other chains are.
        command: What goes on with a run folder on the command line, if anything does.
    """
    causes: dict[str, list[int]] = {}
    for chains, error in failures.items():
        causes.setdefault(f"{type(error).__name__}: {error}".rstrip("."), []).extend(chains)
    texts = [f"chain {', '.join(map(str, chains))}: {cause}" for cause, chains in causes.items()]
    rest = f"The draws of the others are in {kept}."
    if output is not None and os.path.isdir(output):
        rest += " Go on with resume=True" + (f", or: {command} {output}" if command else ".")
    raised = ChainError(f"{len(failures)} of the runs of chains failed, {'; '.join(texts)}. {rest}")
    raised.__cause__ = next(iter(failures.values()))
    return raised
