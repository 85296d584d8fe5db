"""SLHA spectra as files: which ones are meant, what they say, and where their copies go."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tfbnn.system.atomic import check_writable, replacing

# Of files that a folder is searched for; others can be named.
ENDINGS = (".slha", ".slha1", ".slha2", ".lha", ".spc")


def find_spectra(paths: Sequence[str]) -> list[str]:
    """The files that are meant: those named, and of each folder those with one of `ENDINGS`.

    Raises:
        FileNotFoundError: For what is not there.
        ValueError: For a folder without any.
    """
    found: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            if not os.path.exists(path):
                raise FileNotFoundError(f"No file {path}; give SLHA files, or folders of them.")
            found.append(path)
            continue
        names = [name for name in sorted(os.listdir(path)) if name.lower().endswith(ENDINGS)]
        if not names:
            raise ValueError(
                f"{path} has no file that ends in one of {', '.join(ENDINGS)}. Name the files."
            )
        found += [os.path.join(path, name) for name in names]
    return found


def read_text(path: str) -> str:
    """The text of a spectrum, from which `write_text` makes the same bytes, whatever they are."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


@dataclass(frozen=True)
class Copies:
    """Where copies of spectra go.

    Attributes:
        target: Folder, or file of the only spectrum.
        is_folder: Which of them.
    """

    target: str
    is_folder: bool

    @classmethod
    def of(cls, target: str, given: Sequence[str], spectra: Sequence[str]) -> "Copies":
        """The place that -w names: a file where one spectrum was named, and no folder is there.

        Args:
            target: As given.
            given: Files and folders, as given.
            spectra: The files that are meant.
        """
        is_file = list(given) == list(spectra) and len(spectra) == 1
        return cls(target, not is_file or target.endswith("/") or os.path.isdir(target))

    def path_of(self, spectrum: str) -> str:
        """Path of the copy of a spectrum."""
        if not self.is_folder:
            return self.target
        return os.path.join(self.target, os.path.basename(spectrum))

    def check(self, spectra: Sequence[str], overwrite: bool) -> None:
        """Refuses a place where something would be lost, or nothing can be written.

        Raises:
            ValueError: When two copies would have one name, or a file is there already.
            OSError: When nothing could be written.
        """
        counts = Counter(map(self.path_of, spectra))
        twice = [path for path, count in counts.items() if count > 1]
        if twice:
            raise ValueError(
                f"-w {self.target}: {counts[twice[0]]} spectra would be {twice[0]}. Write those of "
                "each folder to a folder of their own."
            )
        there = [path for path in counts if os.path.lexists(path)]
        if there and not overwrite:
            more = f", and {len(there) - 1} more" if len(there) > 1 else ""
            raise ValueError(
                f"-w {self.target}: {there[0]} is there already{more}. Choose another place, or "
                "pass --overwrite."
            )
        if self.is_folder:
            os.makedirs(self.target, exist_ok=True)
        check_writable(self.path_of(spectra[0]))


def write_text(path: str, text: str) -> None:
    """Writes the text of a spectrum, which has its name once it is complete.

    What is new does not wait for the disk, as its original is there, and 10 000 files take seconds,
    not minutes.
    """
    with replacing(path, lasting=os.path.lexists(path)) as temporary:
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
