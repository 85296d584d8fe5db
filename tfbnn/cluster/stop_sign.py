"""A file that asks the tasks of one call to stop, where everything else of the run is too."""

import contextlib
import os
import secrets

from tfbnn.storage.run.folder import STOP


class StopSign:
    """Asks tasks to stop, also those that the scheduler cannot reach any more.

    Attributes:
        path: The file, of a name that no other call has.
    """

    def __init__(self, folder):
        """
        Args:
            folder: The run folder.
        """
        self.path = os.path.join(folder, f"{STOP}{secrets.token_hex(8)}")

    def set(self):
        """Asks them."""
        with open(self.path, "wb"):
            pass

    def clear(self):
        """Removes the file, when no task is left that may look for it."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
