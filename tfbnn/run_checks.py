"""Whether a run may go on in a folder: what decides the draws must be what it was begun with."""

from tfbnn.exceptions import RunFolderError

__all__ = ["check_environment", "check_same_run"]


def check_same_run(folder, definition):
    """Refuses to go on with a run as another one.

    Raises:
        RunFolderError: Names what differs.
    """
    _refuse_differences(folder, folder.description["fixed"], definition.to_json()["fixed"])
    began_with = folder.description["num_results"]
    if definition.num_results < began_with:
        raise RunFolderError(
            f"The run in {folder.path!r} has num_results={began_with}, received "
            f"{definition.num_results}. It can have more, not fewer; tfbnn.load takes what is there."
        )


def check_environment(folder, definition, here):
    """Refuses to go on under other versions, or on another kind of device.

    Args:
        folder: RunFolder.
        definition: The RunDefinition in it.
        here: What `tfbnn.engine.environment.describe_environment` says.

    Raises:
        RunFolderError: Names what differs.
    """
    _refuse_differences(folder, definition.environment, here)


def _refuse_differences(folder, there, here):
    differences = list(_differences(there, here, ""))
    if differences:
        raise RunFolderError(
            f"The run in {folder.path!r} cannot go on as another one: {'; '.join(differences[:3])}. "
            "Use what it was begun with, or start a new run in another folder."
        )


def _differences(there, here, place):
    """Yields what differs between two JSON-able values, each with its place."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in dict.fromkeys([*there, *here]):
            yield from _differences(there.get(key), here.get(key), f"{place}.{key}".lstrip("."))
    elif there != here:
        if place.endswith("rows"):
            yield f"the {place} differ"
        else:
            yield f"{place} is {there!r:.80} there and {here!r:.80} here"
