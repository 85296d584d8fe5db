"""The description of a network out of the metadata of a file, of whichever kind it is."""

from collections.abc import Iterable
from typing import Any

from tfbnn.spec.keras_spec import KerasSpec
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.network_spec import NetworkSpec


def spec_from_json(entry: dict[str, Any], custom: Iterable[Any] = ()) -> NetworkSpec:
    """What `to_json` of a network's spec wrote, validated; `custom` as of `with_custom`.

    Raises:
        OwnClassError: For a prior or likelihood that is neither built in nor among those.
        KeyError, TypeError, ValueError: For anything else.
    """
    kind = KerasSpec if KerasSpec.describes(entry) else ModelSpec
    return kind.from_json(entry, custom)
