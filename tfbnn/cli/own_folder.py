"""The run folder that `tfbnn fit` keeps by itself beside the model file, as long as the run goes on.

So that a stop or a kill of a long run loses nothing that a user has not thought of.
"""

import os
import shlex
from typing import TypeGuard

from tfbnn.cli.console import say
from tfbnn.exceptions import RunFolderError, RunLockedError
from tfbnn.storage import RunFolder

# A minute, where the machine is three times as slow, or as busy, as estimates suppose.
_LONG_SECONDS = 20.0


def own_folder(model_file: str, seconds: float) -> str | None:
    """The folder for a run, which can be made and is not there yet, or None where it keeps none.

    Args:
        model_file: Where the model will be saved.
        seconds: How long the run will take, see `estimated_fit_seconds`.

    Raises:
        ValueError: When a stopped run is there: it is not for a new one to remove it.
        RunLockedError: When another process is about to begin a run there.
    """
    folder = _name(model_file)
    if RunFolder.around(folder) is not None:
        raise ValueError(
            f"{folder} holds a run that did not come to its end. Go on with it: tfbnn resume "
            f"{shlex.quote(folder)} -o {shlex.quote(model_file)}; or remove the folder to begin "
            "anew."
        )
    if seconds < _LONG_SECONDS:
        return None
    try:
        with RunFolder.reserved(folder):
            pass
        RunFolder.remove(folder)  # the run makes it when it begins
    except RunLockedError:
        raise
    except (RunFolderError, OSError) as error:
        # Such as a file system without locks.
        say(f"No run folder is kept, so that a stopped run will not go on: {error}")
        return None
    say(f"This may take more than a minute: draws are kept in {folder} until the model is saved.")
    return folder


def is_own_folder(folder: str | None, model_file: str | None) -> TypeGuard[str]:
    """Whether a run folder is the one that belongs to a model file, and goes with its run's end."""
    if folder is None or model_file is None:
        return False
    return os.path.realpath(folder) == os.path.realpath(_name(model_file))


def _name(model_file: str) -> str:
    return f"{model_file}.run"
