"""Descriptions of Keras models in files: what they hold, and what they may not. Needs no Keras."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tfbnn.likelihoods import Gaussian
from tfbnn.priors import HalfNormal, HierarchicalNormal, LogNormal, Normal
from tfbnn.spec.keras_config import check_config
from tfbnn.spec.keras_priors import VariableFacts, resolve_keras_priors
from tfbnn.spec.keras_spec import KerasSpec, spec_from_json
from tfbnn.spec.network_parts import FrozenVariable, KerasFacts, SampledVariable
from tfbnn.spec.network_spec import draw_parameters
from tfbnn.spec.summary import describe_model

DENSE = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 2}}
CONFIG = {"module": "keras", "class_name": "Sequential", "config": {"layers": [DENSE]}}
FACTS = KerasFacts(
    title="Sequential 'a'",
    keras_version="3.15.1",
    input_shape=(2, 2),
    num_outputs=2,
    num_units=9,
    widest=5,
    num_products=30,
    is_smooth=True,
    readout=0,
    no_jacobian=None,
)
SPEC = KerasSpec(
    facts=FACTS,
    architecture=json.dumps(CONFIG),
    sampled=(
        SampledVariable("a/dense/kernel", 0, (4, 2), 4, HierarchicalNormal(HalfNormal(2.0))),
        SampledVariable("a/dense/bias", 1, (2,), 1, Normal(0.5)),
    ),
    frozen=(FrozenVariable.of("a/norm/gamma", 2, np.array([1.5, -2.0], "float32")),),
    likelihood=Gaussian("learned", scale_prior=LogNormal()),
    parameterization="ntk",
    x_transform=(),
    y_transform=("standardize",),
    dtype="float32",
)


def through_json(spec):
    return json.loads(json.dumps(spec.to_json()))


def test_a_spec_is_read_back():
    assert spec_from_json(through_json(SPEC)) == SPEC
    coarse = replace(SPEC, likelihood_power=0.25, dtype="float64")
    assert spec_from_json(through_json(coarse)) == coarse
    assert hash(spec_from_json(through_json(SPEC))) == hash(SPEC)


def test_frozen_values_are_kept_to_the_bit():
    for dtype in ("float32", "float64", "int32", "uint32", "bool"):
        array = np.arange(6).reshape(2, 3).astype(dtype)
        found = FrozenVariable.of("x", 0, array).array
        np.testing.assert_array_equal(found, array)
        assert found.dtype == dtype


def test_theta_has_weights_then_noise_then_scales():
    layout = SPEC.layout
    # One noise scale for each of two targets.
    assert (layout.num_weights, layout.num_noise, layout.num_parameters) == (10, 2, 13)
    groups = [(span, scales) for _, span, scales in SPEC.weight_groups()]
    assert groups == [(slice(0, 8), slice(12, 13)), (slice(8, 10), slice(13, 13))]
    names = [SPEC.parameter_name(index) for index in (5, 9, 11, 12)]
    assert names == [
        "a/dense/kernel[2, 1]",
        "a/dense/bias[1]",
        "log noise scale[1]",
        "log prior scale of a/dense/kernel",
    ]
    with pytest.raises(IndexError, match="13 entries"):
        SPEC.parameter_name(13)
    kernel, bias = SPEC.readout.layer
    assert kernel.weights == slice(0, 8) and bias.weights == slice(8, 10)
    theta = draw_parameters(SPEC, np.random.default_rng(0))
    assert theta.shape == (13,) and theta.all()


def test_rows_with_axes_are_flattened_and_others_refused():
    x = np.arange(12.0).reshape(3, 2, 2)
    np.testing.assert_array_equal(SPEC.flat_inputs(x), x.reshape(3, 4))
    flat = x.reshape(3, 4)
    assert SPEC.flat_inputs(flat) is flat
    with pytest.raises(ValueError, match=r"\[N, 2, 2\].*\[3, 2, 3\]"):
        SPEC.flat_inputs(np.zeros((3, 2, 3)))
    with pytest.raises(ValueError, match=r"\[N, 2, 2\].*\[4\].*x\[None\]"):
        SPEC.flat_inputs(np.zeros(4))


def test_a_data_set_is_left_to_the_message_that_says_how_to_make_arrays_of_it():
    class Batches:
        def __iter__(self):
            return iter([])

    batches = Batches()
    assert SPEC.flat_inputs(batches) is batches


def test_the_table_names_what_is_fixed():
    text = describe_model(SPEC, ())
    assert "a/norm/gamma    [2]     2           fixed" in text
    assert "2 x 2 -> 2" in text and "weights 10, scales 3" in text
    assert "2 numbers keep their values: 'a/norm/gamma'" in SPEC.notes[0]
    assert "Moving averages" not in SPEC.notes[0]
    mean = FrozenVariable.of("a/norm/moving_mean", 3, np.zeros(2, "float32"))
    noted = replace(SPEC, frozen=(*SPEC.frozen, mean)).notes[0]
    assert "not of the draws; GroupNormalization has none" in noted


def _set(*path, value):
    def change(entry):
        for key in path[:-1]:
            entry = entry[key]
        entry[path[-1]] = value

    return change


def _layer(**changes):
    return json.dumps({**CONFIG, "config": {"layers": [DENSE | changes]}})


BROKEN = {
    "a Lambda": _set("architecture", value=_layer(class_name="Lambda")),
    "code": _set("architecture", value=_layer(config={"function": {"class_name": "__lambda__"}})),
    "another file": _set("architecture", value=_layer(class_name="TFSMLayer")),
    "another module": _set("architecture", value=_layer(module="os")),
    "a function": _set("architecture", value=_layer(class_name="function", module="builtins")),
    "another name": _set("architecture", value=_layer(registered_name="evil>Payload")),
    "a registered name": _set("architecture", value=_layer(registered_name="mine>Dense")),
    "too deep": _set("architecture", value='{"a":' * 900 + "1" + "}" * 900),
    "far too deep": _set("architecture", value="[" * 10**5 + "]" * 10**5),
    "an own class": _set("architecture", value=_layer(class_name="Mine", module=None)),
    "no JSON": _set("architecture", value="{"),
    "an entry more": _set("extra", value=1),
    "a huge shape": _set("sampled", 0, "shape", value=[2**20, 2**20]),
    "a place twice": _set("sampled", 0, "index", value=1),
    "no prior": _set("sampled", 0, "prior", value={"name": "HalfNormal", "scale": 1.0}),
    "nothing sampled": _set("sampled", value=[]),
    "a readout elsewhere": _set("facts", "readout", value=1),
    "a readout of others": _set("facts", "num_outputs", value=4),
    "no base64": _set("frozen", 0, "values", value="***"),
    "values too few": _set("frozen", 0, "values", value="AAAA"),
    "NaN": _set("frozen", 0, "values", value="AADAfwAAwH8="),
    "a dtype of objects": _set("frozen", 0, "dtype", value="object"),
    "an open transform": _set("y_transform", value=["auto"]),
    "a power": _set("likelihood_power", value=2.0),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_what_no_spec_wrote_is_refused(change):
    entry = through_json(SPEC)
    change(entry)
    with pytest.raises((KeyError, TypeError, ValueError)):
        spec_from_json(entry)


class Mine:
    """Stands for a layer."""


def test_arithmetic_and_classes_of_ones_own_pass():
    plus = {"module": "keras.src.ops.numpy", "class_name": "Add", "registered_name": "Add"}
    mine = {"module": __name__, "class_name": "Mine", "registered_name": "package>Mine"}
    for name in ("package>Mine", "package>Other"):
        check_config([plus, mine | {"registered_name": name}], custom=[Mine])
    for entry, custom in ((mine, []), (mine | {"module": "evil"}, [Mine])):
        with pytest.raises(ValueError, match="'Mine'"):
            check_config([plus, entry], custom)


def _facts(path, **others):
    settings = dict(index=0, layers=("Dense",), shape=(2, 2), fan_in=2)
    settings |= dict(is_trainable=True, of_normalisation=False)
    return VariableFacts(path, **(settings | others))


VARIABLES = [
    _facts("net/one/kernel"),
    _facts("net/one/bias"),
    _facts("net/norm/gamma", layers=("LayerNormalization",), of_normalisation=True),
    _facts("net/cell/kernel", layers=("LSTMCell", "LSTM")),
    _facts("net/old/kernel", is_trainable=False),
]


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (Normal(2.0), [2.0, 2.0, None, 2.0, None]),
        ({"bias": Normal(3.0)}, [1.0, 3.0, None, 1.0, None]),
        ({"*/kernel": Normal(3.0)}, [3.0, 1.0, None, 3.0, None]),
        ({"LSTM": Normal(3.0), "*": Normal(4.0)}, [4.0, 4.0, 4.0, 3.0, None]),
        ({"net/one/*": "fixed"}, [None, None, None, 1.0, None]),
        ({"gamma": Normal(0.1)}, [1.0, 1.0, 0.1, 1.0, None]),
    ],
)
def test_the_first_pattern_decides(prior, expected):
    found = resolve_keras_priors(prior, VARIABLES, Normal(1.0))
    assert [one and one.scale for one in found] == expected


def test_a_pattern_that_means_nothing_names_what_there_is():
    with pytest.raises(ValueError, match="'old' of prior means no weights.*'net/one/kernel'"):
        resolve_keras_priors({"old": Normal(1.0)}, VARIABLES, Normal(1.0))
    with pytest.raises(ValueError, match="only weights that are not trainable"):
        resolve_keras_priors({"*/old/*": Normal(1.0)}, VARIABLES, Normal(1.0))
