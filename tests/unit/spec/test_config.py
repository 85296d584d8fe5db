"""`get_config` and `from_config`: a model as plain arguments, which make the same model."""

import json

import pytest

import tfbnn
from tfbnn import likelihoods, priors

MODELS = {
    "all by default": lambda: tfbnn.BayesianMLP([3, 50, 1]),
    "all given": lambda: tfbnn.BayesianMLP(
        [3, 4, 5, 2],
        activation=["relu", "silu"],
        prior=[
            priors.Laplace(2.0),
            {"kernel": priors.Normal(0.3), "bias": priors.HierarchicalNormal()},
            priors.Normal(),
        ],
        likelihood=likelihoods.StudentT(3.5, 0.2),
        parameterization="standard",
        x_transform=None,
        y_transform=["log10", "standardize"],
        dtype="float64",
    ),
    "classes": lambda: tfbnn.BayesianMLP([3, 4, 3], likelihood=likelihoods.Categorical()),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_made_again(name):
    model = MODELS[name]()
    config = json.loads(json.dumps(model.get_config(), allow_nan=False))
    copy = tfbnn.BayesianMLP.from_config(config)
    assert type(copy) is tfbnn.BayesianMLP
    assert copy.spec == model.spec and copy.spec.choices == model.spec.choices
    assert copy.get_config() == model.get_config()


def test_what_was_left_open_stays_open():
    config = tfbnn.BayesianMLP([3, 50, 1]).get_config()
    assert {config[name] for name in ("prior", "parameterization", "y_transform")} == {"auto"}
    assert config["likelihood"]["scale_prior"] == "auto"
    config = tfbnn.BayesianMLP([3, 50, 1], y_transform=None).get_config()
    assert config["y_transform"] == [] and config["prior"] == "auto"


def test_a_loaded_model_says_what_its_fit_came_to(fitted, tmp_path):
    fitted.save(tmp_path / "bnn.h5")
    config = tfbnn.load(tmp_path / "bnn.h5").get_config()
    assert config["y_transform"] == ["standardize"] and config["prior"][0]["name"] == "LayerPrior"
    assert tfbnn.BayesianMLP.from_config(config).spec == fitted.spec
    with pytest.raises(tfbnn.NotFittedError):
        tfbnn.BayesianMLP.from_config(config).posterior  # noqa: B018


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"layers": 3}, ValueError, "config must be a dict with the entries"),
        ({"likelihood": "gaussian"}, ValueError, "expected one of .*'gaussian'"),
        ({"prior": [{"name": "Normal", "scale": -1.0}] * 2}, ValueError, "scale must be > 0"),
    ],
)
def test_what_is_no_config_is_refused(change, error, match):
    config = tfbnn.BayesianMLP([3, 50, 1]).get_config() | change
    with pytest.raises(error, match=match):
        tfbnn.BayesianMLP.from_config(config)


def test_what_is_no_dict_or_not_all_of_it_is_refused():
    with pytest.raises(TypeError, match="config must be a dict"):
        tfbnn.BayesianMLP.from_config([3, 50, 1])
    with pytest.raises(ValueError, match="config must be a dict with the entries"):
        tfbnn.BayesianMLP.from_config({"layer_sizes": [3, 50, 1]})
