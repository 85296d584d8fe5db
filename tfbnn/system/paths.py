"""The type of the names of files and folders that users pass in."""

import os

StrPath = str | os.PathLike[str]
