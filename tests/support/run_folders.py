"""Run folders that a test makes by itself."""

from tfbnn.storage.run.folder import RunFolder


def created_run(path, description, arrays, num_groups):
    """Make a run folder at once, see `RunFolder.reserved`."""
    with RunFolder.reserved(path) as make:
        return make(description, arrays, num_groups)
