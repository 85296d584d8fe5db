"""The description of a model: validation of its arguments, JSON, the places in theta."""

import json
import re

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows, plain_spec
from tfbnn import likelihoods, priors
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.network_spec import check_prior_sizes
from tfbnn.spec.rows import learn_transforms, prepare_rows

WEIGHT_PRIORS = [
    priors.Normal(0.7),
    priors.Laplace(2.0),
    priors.Uniform(-1.5, 2.5),
    priors.HierarchicalNormal(),
    priors.HierarchicalNormal(priors.HalfNormal(0.3)),
    priors.HierarchicalNormal(priors.InverseGamma(2.0, 0.5)),
    priors.HierarchicalNormal(priors.LogNormal(-1.0, 0.4)),
]
LIKELIHOODS = [
    likelihoods.Gaussian(),
    likelihoods.Gaussian(0.1),
    likelihoods.Gaussian([0.1, 0.2]),
    likelihoods.Gaussian("learned", priors.HalfCauchy(0.2)),
    likelihoods.StudentT(3.5, 0.2),
    likelihoods.HeteroscedasticGaussian(),
]


def through_json(spec):
    return ModelSpec.from_json(json.loads(json.dumps(spec.to_json(), allow_nan=False)))


def test_defaults_are_the_documented_ones():
    spec = tfbnn.BayesianMLP([5, 20, 20, 1]).spec
    assert spec.is_open
    spec = spec.closed(("standardize",), "the targets are not positive, say")
    sampled = priors.HierarchicalNormal(priors.HalfNormal(1.0))
    explicit = tfbnn.BayesianMLP(
        [5, 20, 20, 1],
        activation=["tanh", "tanh"],
        prior=[{"kernel": priors.ARD(priors.HalfNormal(1.0)), "bias": sampled}, sampled, sampled],
        likelihood=likelihoods.Gaussian("learned", priors.HalfNormal(1.0)),
        parameterization="ntk",
        x_transform="standardize",
        y_transform=["standardize"],
        dtype="float32",
    ).spec
    assert spec == explicit and hash(spec) == hash(explicit)


@pytest.mark.parametrize("likelihood", [likelihoods.Bernoulli(), likelihoods.Categorical()])
def test_default_scales_of_classes_may_be_larger(likelihood):
    outputs = 1 if likelihood == likelihoods.Bernoulli() else 3
    wide = priors.HierarchicalNormal(priors.HalfNormal(3.0))
    prior = [{"kernel": priors.ARD(priors.HalfNormal(3.0)), "bias": wide}, wide]
    chosen = tfbnn.BayesianMLP([5, 20, outputs], likelihood=likelihood)
    given = tfbnn.BayesianMLP(
        [5, 20, outputs], prior=prior, parameterization="ntk", likelihood=likelihood
    )
    assert chosen.spec == given.spec


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"layer_sizes": 5}, TypeError, r"layer_sizes .*list of widths.* 5"),
        ({"layer_sizes": []}, ValueError, r"layer_sizes .*\[\]"),
        ({"layer_sizes": [3]}, ValueError, r"layer_sizes .*inputs and of outputs.*\[3\]"),
        ({"layer_sizes": [2, 0, 1]}, ValueError, "layer_sizes .*at least 1.*0"),
        ({"layer_sizes": [2, 4.0, 1]}, TypeError, "layer_sizes .*integer.*4.0"),
        ({"layer_sizes": [2, 65537, 1]}, ValueError, "layer_sizes .*up to 65536.*with 65537"),
        ({"layer_sizes": [2] * 66}, ValueError, "layer_sizes .*at most 64 layers.*65 layers"),
        ({"activation": "tahn"}, ValueError, "activation .*'tanh'.*'tahn'"),
        ({"activation": None}, TypeError, "activation .*None"),
        ({"activation": ["tanh", "relu"]}, ValueError, "activation .*1, one per hidden.* 2"),
        ({"prior": "normal"}, TypeError, "prior .*Normal.*'normal'"),
        ({"prior": priors.HalfNormal()}, TypeError, "prior .*HalfNormal"),
        ({"prior": [priors.Normal()] * 3}, ValueError, "prior .*list of 2.* 3"),
        ({"prior": {"kernel": priors.Normal()}}, ValueError, "prior .*'kernel' and 'bias'"),
        ({"prior": {"kernel": priors.Normal(), "bias": 1}}, TypeError, "prior .*1"),
        ({"likelihood": "gaussian"}, TypeError, "likelihood .*Gaussian.*'gaussian'"),
        ({"likelihood": likelihoods.Gaussian([0.1, 0.2])}, ValueError, "noise_scale .*1.* 2"),
        ({"likelihood": likelihoods.HeteroscedasticGaussian()}, ValueError, "even.*received 1"),
        ({"parameterization": "NTK"}, ValueError, "parameterization .*ntk.*'NTK'"),
        ({"x_transform": "log"}, ValueError, "x_transform .*log10.*'log'"),
        ({"y_transform": ["log10", "cube"]}, ValueError, "y_transform .*log10.*'cube'"),
        ({"y_transform": {"log10"}}, TypeError, "y_transform"),
        ({"dtype": 64}, TypeError, "dtype .*float32.*64"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused_by_name(arguments, error, match):
    with pytest.raises(error, match=match):
        tfbnn.BayesianMLP(**{"layer_sizes": [2, 4, 1], **arguments})


@pytest.mark.parametrize(
    "name", "Normal Laplace HalfNormal HalfCauchy LogNormal InverseGamma".split()
)
def test_scales_of_priors_must_be_positive_numbers(name):
    for error, values in (
        (ValueError, [0, -1.0, np.nan, np.inf]),
        (TypeError, ["1", None, True, 1j]),
    ):
        for scale in values:
            with pytest.raises(error, match=re.escape(f"scale={scale!r}")) as caught:
                getattr(priors, name)(scale=scale)
            assert "scale must be " in str(caught.value)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: priors.Uniform(1.0, 1.0), ValueError, "high must be > 1.0"),
        (lambda: priors.Uniform(np.nan, 1.0), ValueError, "low must be finite"),
        (lambda: priors.Uniform(0.0, "1"), TypeError, "high must be a number"),
        (lambda: priors.InverseGamma(concentration=0), ValueError, "concentration must be > 0"),
        (lambda: priors.LogNormal(loc=np.nan), ValueError, "loc must be finite"),
        (lambda: priors.HierarchicalNormal(priors.Normal()), TypeError, "scale_prior .*HalfCauchy"),
        (lambda: priors.HierarchicalNormal(1.0), TypeError, "scale_prior .*1.0"),
        (lambda: likelihoods.Gaussian(scale_prior=priors.Normal()), TypeError, "scale_prior"),
        (lambda: likelihoods.StudentT(2), ValueError, "df must be > 2"),
    ],
)
def test_other_settings_of_priors_and_likelihoods_are_checked(make, error, match):
    with pytest.raises(error, match=match):
        make()


EXTREME = [
    priors.Normal,
    priors.Laplace,
    lambda size: priors.HierarchicalNormal(priors.HalfCauchy(size)),
    lambda size: priors.HierarchicalNormal(priors.HalfNormal(size)),
    lambda size: priors.HierarchicalNormal(priors.InverseGamma(scale=size**2)),
    lambda size: priors.HierarchicalNormal(priors.LogNormal(np.log(size))),
    lambda size: priors.HierarchicalNormal(priors.LogNormal(scale=size)),
    lambda size: priors.Uniform(-size, size),
    lambda size: {"kernel": priors.Normal(), "bias": priors.Normal(size)},
]


@pytest.mark.parametrize("prior", EXTREME, ids=range(len(EXTREME)))
def test_priors_of_sizes_that_the_dtype_cannot_square_are_refused(prior):
    for size in (1e-60, 1e-19, 1e19, 1e60):
        with pytest.raises(ValueError, match="sizes of.*for float32.*dtype='float64'"):
            tfbnn.BayesianMLP([2, 3, 1], prior=prior(size))
        tfbnn.BayesianMLP([2, 3, 1], prior=prior(size), dtype="float64")
    for size in (1e-17, 1e17):
        tfbnn.BayesianMLP([2, 3, 1], prior=prior(size))


@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_float64_has_its_limits_too(size):
    for settings in (
        {"prior": priors.Normal(size)},
        {"likelihood": likelihoods.Gaussian(scale_prior=priors.HalfNormal(size))},
    ):
        with pytest.raises(ValueError, match="sizes of.*for float64"):
            tfbnn.BayesianMLP([2, 3, 1], dtype="float64", **settings)


def test_a_file_may_say_what_a_new_model_may_not():
    spec = plain_spec([2, 3, 1], prior=priors.Laplace(1e30), dtype="float32")
    assert ModelSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("cls", [likelihoods.Gaussian, likelihoods.StudentT])
@pytest.mark.parametrize(
    ("error", "noise_scales"),
    [
        (ValueError, [0.0, -0.1, np.nan, np.inf, "auto", [0.1, -0.2], [[0.1]]]),
        (TypeError, [None, True, [0.1, "a"], 1j]),
    ],
)
def test_noise_scales_must_be_positive_or_learned(cls, error, noise_scales):
    for noise_scale in noise_scales:
        with pytest.raises(error, match="noise_scale must be"):
            cls(noise_scale=noise_scale)


@pytest.mark.parametrize(
    ("prior", "likelihood"),
    [(prior, LIKELIHOODS[0]) for prior in WEIGHT_PRIORS]
    + [(WEIGHT_PRIORS[0], likelihood) for likelihood in LIKELIHOODS[1:]],
    ids=str,
)
def test_json_round_trip_gives_an_equal_spec(prior, likelihood):
    # A Uniform prior has no scale for ntk.
    parameterization = "standard" if isinstance(prior, priors.Uniform) else "ntk"
    spec = tfbnn.BayesianMLP(
        [3, 4, 5, 2],
        activation=["relu", "silu"],
        prior=[prior, {"kernel": prior, "bias": priors.Normal(3.0)}, priors.Laplace()],
        likelihood=likelihood,
        parameterization=parameterization,
        y_transform=["log10", "standardize"],
        dtype="float64",
    ).spec
    back = through_json(spec)
    assert back == spec
    assert back.layout == spec.layout


def test_numpy_scalars_survive_json():
    scale = priors.LogNormal(np.int64(0), np.float32(1))
    for prior, likelihood in (
        (priors.Uniform(np.float32(-1), np.int64(1)), likelihoods.StudentT(np.int64(4))),
        (priors.HierarchicalNormal(scale), likelihoods.Gaussian(np.float32(0.1))),
    ):
        settings = {"prior": prior, "likelihood": likelihood, "y_transform": "log10"}
        spec = tfbnn.BayesianMLP(np.array([2, 4, 1]), **settings).spec
        assert through_json(spec) == spec


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("likelihood", "name"), "os.system"),
        (("likelihood", "df"), 5),
        (("priors", 0, "kernel"), {"name": "Gaussian"}),
        (("priors", 0, "kernel", "scale"), -1.0),
        (("priors", 0, "kernel", "scale"), [1.0]),
        (("priors", 0), {"name": "HalfNormal"}),
        (("activations", 0), "__class__"),
        (("layer_sizes",), [2, 4]),
        (("layer_sizes", 1), 1e3),
        (("dtype",), "object"),
    ],
    ids=str,
)
def test_json_that_describes_no_model_is_refused(path, value):
    entry = tfbnn.BayesianMLP([2, 4, 1]).spec.to_json()
    inner = entry
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises((TypeError, ValueError)):
        ModelSpec.from_json(entry)


@pytest.mark.parametrize("part", ["everywhere", "bias"])
def test_ntk_refuses_a_uniform_prior(part):
    uniform = priors.Uniform(-1.0, 1.0)
    prior = uniform if part == "everywhere" else {"kernel": priors.Normal(), "bias": uniform}
    with pytest.raises(ValueError, match="Uniform.*ntk.*standard"):
        tfbnn.BayesianMLP([2, 4, 1], prior=prior, parameterization="ntk")


def test_theta_holds_kernel_then_bias_layer_by_layer_then_scales():
    hierarchical = priors.HierarchicalNormal()
    spec = tfbnn.BayesianMLP(
        [2, 3, 2],
        prior=[{"kernel": priors.ARD(), "bias": priors.Normal()}, hierarchical],
        likelihood=likelihoods.Gaussian("learned"),
    ).spec
    expected = (
        [f"layer 1 kernel[{i}, {j}]" for i in range(2) for j in range(3)]
        + [f"layer 1 bias[{j}]" for j in range(3)]
        + [f"layer 2 kernel[{i}, {j}]" for i in range(3) for j in range(2)]
        + [f"layer 2 bias[{j}]" for j in range(2)]
        + ["log noise scale[0]", "log noise scale[1]"]
        + ["log prior scale of layer 1 kernel[0]", "log prior scale of layer 1 kernel[1]"]
        + ["log prior scale of layer 2 kernel", "log prior scale of layer 2 bias"]
    )
    layout = spec.layout
    assert [layout.parameter_name(i) for i in range(layout.num_parameters)] == expected
    assert layout.num_weights == 17 and layout.num_noise == 2
    with pytest.raises(IndexError, match="23 entries.*23"):
        layout.parameter_name(23)


def test_kernels_are_stored_row_by_row():
    layout = tfbnn.BayesianMLP(
        [2, 3, 1], prior=priors.Normal(), likelihood=likelihoods.Gaussian(0.1)
    ).spec.layout
    (kernel, bias), (readout, offset) = layout.kernels_and_biases(np.arange(26.0).reshape(2, 13))
    np.testing.assert_array_equal(kernel[0], [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(bias[0], [6, 7, 8])
    np.testing.assert_array_equal(readout[1], [[22], [23], [24]])
    np.testing.assert_array_equal(offset[1], [25])


@pytest.mark.parametrize(("sizes", "hidden"), [([2, 1], 0), ([2, 4, 1], 1), ([2, 4, 4, 4, 1], 3)])
def test_one_activation_per_hidden_layer(sizes, hidden):
    assert tfbnn.BayesianMLP(sizes, activation="sin").spec.activations == ("sin",) * hidden


def test_summary_shows_every_layer_and_the_number_of_parameters():
    lines = []
    model = tfbnn.BayesianMLP([5, 20, 7, 1], activation=["tanh", "relu"], prior=priors.Normal())
    model.summary(lines.append)
    (text,) = lines
    for part in ("[5, 20]", "[20, 7]", "[7, 1]", "tanh", "relu", "120", "147", "Normal(1)"):
        assert part in text
    # 120 + 147 + 8 weights and one noise scale.
    assert "276" in text


@pytest.mark.parametrize(
    ("dtype", "taken", "refused"),
    [("float32", [1e-18, 1e30], [1e-25, 1e-60, 1e60]), ("float64", [1e-60], [1e-300])],
)
def test_noise_out_of_the_range_of_the_dtype_is_refused(dtype, taken, refused):
    """Noise of the model, and of rows: log densities would be -inf or nan."""
    x, y = make_rows(9, 2, 1)
    spec = plain_spec((2, 1), dtype=dtype)

    def of_model(scale):
        noisy = plain_spec((2, 1), dtype=dtype, likelihood=likelihoods.Gaussian((scale,)))
        check_prior_sizes(noisy)

    def of_rows(scale):
        learn_transforms(spec, prepare_rows(spec, x, y, np.full(9, scale)), None)

    for check in (of_model, of_rows):
        for scale in taken:
            check(scale)
        for scale in refused:
            with pytest.raises(ValueError, match=f"noise_scale .* {dtype}"):
                check(scale)
