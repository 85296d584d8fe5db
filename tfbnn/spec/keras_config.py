"""Classes that the config of a Keras model may name: those that only compute with their inputs.

Keras builds a model from a config by importing what it names. A file may come from a stranger, so
it is checked against this list before Keras sees it: no Lambda, whose config is code; no layer that
reads another file, as TFSMLayer and vocabularies do; no module but Keras' own.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_MODULES = (
    "keras",
    "keras.layers",
    "keras.src.models.functional",
    "keras.initializers",
    "keras.regularizers",
    "keras.constraints",
)
# Arithmetic such as `a + b` of two tensors: classes in these modules do nothing else.
_OPERATIONS = ("keras.src.ops.numpy", "keras.src.ops.nn")
_CLASS = re.compile("[A-Z][A-Za-z0-9]*")
_MODELS = ("Sequential", "Functional", "Model")
_LAYERS = (
    *("InputLayer", "Dense", "EinsumDense", "Embedding", "Activation", "Identity", "Masking"),
    *("ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax"),
    *("BatchNormalization", "LayerNormalization", "GroupNormalization", "RMSNormalization"),
    *("UnitNormalization", "Normalization", "Rescaling"),
    *("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "AlphaDropout"),
    *("GaussianDropout", "GaussianNoise", "ActivityRegularization"),
    *("Conv1D", "Conv2D", "Conv3D", "DepthwiseConv1D", "DepthwiseConv2D"),
    *("SeparableConv1D", "SeparableConv2D"),
    *("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"),
    *("AveragePooling1D", "AveragePooling2D", "AveragePooling3D"),
    *("MaxPooling1D", "MaxPooling2D", "MaxPooling3D"),
    *("GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D"),
    *("GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D"),
    *("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D", "UpSampling1D", "UpSampling2D"),
    *("UpSampling3D", "Cropping1D", "Cropping2D", "Cropping3D"),
    *("Flatten", "Reshape", "Permute", "RepeatVector"),
    *("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate", "Dot"),
    *("MultiHeadAttention", "GroupedQueryAttention", "Attention", "AdditiveAttention"),
    *("LSTM", "GRU", "SimpleRNN", "LSTMCell", "GRUCell", "SimpleRNNCell", "RNN"),
    *("StackedRNNCells", "Bidirectional", "TimeDistributed", "SpectralNormalization"),
)
_OTHERS = (
    *("DTypePolicy", "__tuple__", "__keras_tensor__", "__tensor__", "__numpy__", "__slice__"),
    *("GlorotUniform", "GlorotNormal", "HeUniform", "HeNormal", "LecunUniform", "LecunNormal"),
    *("Zeros", "Ones", "Constant", "RandomNormal", "RandomUniform", "TruncatedNormal"),
    *("VarianceScaling", "Orthogonal", "OrthogonalInitializer", "Identity"),
    *("L1", "L2", "L1L2", "OrthogonalRegularizer"),
    *("MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm"),
)
# A model inside a model takes about five levels.
_MOST_LEVELS = 100
_TOO_DEEP = f"the config of the Keras model must have at most {_MOST_LEVELS} levels, found more"
KNOWN = frozenset((*_MODELS, *_LAYERS, *_OTHERS))


def check_config(config: Any, custom: Iterable[type] = ()) -> None:
    """Check that the config of a model names only classes that are known to be harmless.

    Args:
        config: As `keras.saving.serialize_keras_object` gives it.
        custom: Classes that the user passes, who is responsible for what they do.

    Raises:
        ValueError: With the name of the class, or for a config that is nested too deeply.
    """
    modules = {kind.__name__: kind.__module__ for kind in custom}
    for entry in dicts_in(config):
        if "class_name" not in entry:
            continue
        name, module, registered = map(entry.get, ("class_name", "module", "registered_name"))
        if name in modules:
            # Keras receives the class by its name alone, whatever name it is registered under.
            is_harmless, registered = module in (None, modules[name]), None
        else:
            # With "package>name" Keras would use a class that this process has registered.
            is_operation = module in _OPERATIONS and bool(_CLASS.fullmatch(str(name)))
            is_harmless = is_operation or (name in KNOWN and module in (None, *_MODULES))
        if registered not in (None, name) or not is_harmless:
            raise ValueError(
                f"the model names {name!r:.99} of {module!r:.99}, which is no layer of Keras that a "
                "file may hold. A Lambda, or another layer that holds code or reads files, has to be "
                "written as a class of one's own"
            )


def parsed_config(architecture: str) -> Any:
    """Parse the JSON text of a config.

    Raises:
        ValueError: For text that is not JSON, or is nested deeper than any model.
    """
    try:
        return json.loads(architecture)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def dicts_in(config: Any, levels: int = _MOST_LEVELS) -> Iterator[dict[str, Any]]:
    """Yield all dicts in a config, the outer ones first.

    Raises:
        ValueError: If it is nested deeper than `levels`.
    """
    if not levels:
        raise ValueError(_TOO_DEEP)
    if isinstance(config, dict):
        yield config
        config = list(config.values())
    if isinstance(config, list):
        for value in config:
            yield from dicts_in(value, levels - 1)
