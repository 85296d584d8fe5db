"""Extract what is compared of the texts in seen.py: numbers, verdicts and names, but no sentences."""

import json
import re

import numpy as np

__all__ = ["facts", "one_sided"]

# States of chains that a run left on its way. The runs that go on show what was saved last.
_ON_THE_WAY = re.compile("run folder/.*/checkpoint-")
# Files of draws, each with as many as a block has, and its length goes by the clock.
_SEGMENT = re.compile(r"(run folder/.*)/segment-\d+\.h5/(?:arrays/(.*))?")
_JSON = ("metadata", "run")
_TEXTS = ("report", "summary", "warnings", "words")
# A piece of advice, which ends its line, or its indented paragraph of a report.
_ADVICE = re.compile(r"Next:.*(\n +.*)*")
_COUNTED = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|^\w*Warning(?=:)")
# A sentence that is a finding.
_FINDINGS = ("verdict",)
_ENTRY = " entry "


class _Words(np.ndarray):
    """The numbers of a sentence."""


def facts(found, with_words=True):
    """Return what is compared of one side of a case.

    Args:
        found: Dict name -> array, texts among them.
        with_words: Whether the numbers in sentences are; those of a run are entries of JSON, too.

    Returns:
        Dict name -> array without texts, and with one array for all segments of a chain group. An
        entry of JSON has " entry " in its name. Dicts, lists, sentences and nulls are entries, too,
        so that nothing takes the place of another unseen.
    """
    result, segments = {}, {}
    for name, array in found.items():
        kind = name.rsplit("/", 1)[-1] if array.dtype.kind == "U" else None
        if _ON_THE_WAY.match(name):
            continue
        if segment := _SEGMENT.match(name):
            folder, quantity = segment.groups()
            if quantity:
                segments.setdefault(f"{folder}/segments/{quantity}", []).append(array)
        elif kind in _JSON:
            for path, entry in _entries(json.loads(str(array))):
                is_number = with_words or not isinstance(entry, _Words)
                result[f"{name}{_ENTRY}{path}"] = entry if is_number else np.array("sentence")
        elif kind in _TEXTS:
            if with_words:
                result[name] = _numbers(str(array), is_ordered=kind != "warnings")
        else:
            result[name] = array
    return result | {name: np.concatenate(arrays) for name, arrays in segments.items()}


def one_sided(a, b):
    """Entries of JSON in one dict name -> array, as of `facts`, that another lacks.

    Args:
        a: The dict with the entries.
        b: The dict without them. Where it lacks the whole JSON, nothing is told.

    Returns:
        Sorted list of names without those inside others, and the set of all names.
    """
    lacking = {
        name
        for name in a.keys() - b.keys()
        if _ENTRY in name and name.split(_ENTRY)[0] + _ENTRY in b
    }
    return sorted(name for name in lacking if name.rpartition("/")[0] not in lacking), lacking


def _entries(value, path=""):
    """Yields (path, array) for everything in a JSON value."""
    if isinstance(value, dict):
        yield path, np.array("dict")
        for key, entry in value.items():
            inside = f"{path}/{key}" if path else key
            yield from [(inside, np.array(entry))] if key in _FINDINGS else _entries(entry, inside)
    elif isinstance(value, list) and not all(isinstance(entry, int | float) for entry in value):
        yield path, np.array(f"list of {len(value)}")
        for index, entry in enumerate(value):
            yield from _entries(entry, f"{path}/{index}")
    elif isinstance(value, str) and " " in value:
        yield path, _numbers(value).view(_Words)
    else:
        yield path, np.array("null" if value is None else value)


def _numbers(words, is_ordered=True):
    """The numbers in a text without its advice, and the categories of warnings."""
    lines = _ADVICE.sub("", words).splitlines()
    counted = filter(None, (" ".join(_COUNTED.findall(line)) for line in lines))
    # Other words break lines elsewhere.
    return np.array(" ".join(counted) if is_ordered else "\n".join(sorted(counted)))
