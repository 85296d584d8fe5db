"""Every class of a family has every function and every method that the family needs."""

import importlib
import inspect
import pkgutil
from argparse import ArgumentParser
from dataclasses import dataclass

import pytest

from tests.support.registries import FAMILIES, kept_registries
from tfbnn import BayesianMLP, posterior
from tfbnn.cli.fit_options import add_options, make_model
from tfbnn.data import transforms
from tfbnn.engine import density, export
from tfbnn.engine.density import densities
from tfbnn.spec import likelihoods, priors
from tfbnn.spec.model_spec import ModelSpec
from tfbnn.spec.required import REQUIRED

for room in (density, export, posterior):
    for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        importlib.import_module(module.name)


@pytest.fixture(autouse=True)
def own_classes_are_forgotten():
    with kept_registries():
        yield


def missing():
    """(function, class) of all that is not registered, and (method, class) of all that is abstract."""
    functions = [
        (function.__name__, cls.__name__)
        for family, required in REQUIRED.items()
        for function in required
        for cls in FAMILIES[family].values()
        if function.dispatch(cls) is function.dispatch(object)
    ]
    methods = [
        (method, cls.__name__)
        for registry in FAMILIES.values()
        for cls in registry.values()
        for method in sorted(cls.__abstractmethods__)
    ]
    return functions + methods


def test_nothing_is_missing():
    assert missing() == []


@pytest.mark.parametrize(
    ("function", "cls"),
    [
        (densities.row_log_likelihood, likelihoods.StudentT),
        (densities.weight_log_prior, priors.Laplace),
        (densities.scale_log_prior, priors.LogNormal),
    ],
    ids=lambda entry: entry.__name__,
)
def test_a_registration_taken_away_is_missed_and_named(function, cls):
    original = function.dispatch(cls)
    function.register(cls, function.dispatch(object))
    try:
        assert missing() == [(function.__name__, cls.__name__)]
        words = f"{function.__name__} is not registered for {cls.__name__}.*new_likelihood.md"
        with pytest.raises(TypeError, match=words):
            function(cls(), None, None, None, None)
    finally:
        function.register(cls, original)


def test_a_new_class_is_asked_for_all_functions():
    class Toy(likelihoods.Likelihood, name="toy"):
        """Everything is missing."""

    class ToyPrior(priors.WeightPrior):
        def sample(self, generator, shape):
            return generator.normal(size=shape)

    class ToyScale(priors.ScalePrior):
        def sample(self, generator, shape):
            return generator.gamma(1.0, size=shape)

    names = {}
    for function, cls in missing():
        names.setdefault(cls, set()).add(function)
    functions = {"row_log_likelihood", "readout_targets", "likelihood_information"}
    assert names.pop("Toy") >= functions | {"scale", "log_density"}
    assert names == {
        "ToyPrior": {"weight_log_prior", "weight_precision"},
        "ToyScale": {"scale_log_prior", "scale_curvature"},
    }


@pytest.mark.parametrize(
    ("complete", "method"),
    [
        (likelihoods.Gaussian, "noise_quantile"),
        (likelihoods.Categorical, "class_probabilities"),
        (priors.Normal, "sample"),
        (priors.HalfNormal, "sample"),
        (transforms.Log10, "forward_onnx"),
        (transforms.Log10, "inverse_onnx"),
    ],
    ids=lambda entry: getattr(entry, "__name__", entry),
)
def test_a_class_without_a_method_cannot_be_made(complete, method):
    family = next(
        cls for cls in complete.__mro__ if method in getattr(cls, "__abstractmethods__", ())
    )
    toy = type(complete)("Toy", (complete,), {method: inspect.getattr_static(family, method)})
    with pytest.raises(TypeError, match=rf"abstract class Toy.*{method}"):
        toy()


def test_a_likelihood_without_a_name_is_refused():
    @dataclass(frozen=True)
    class Nameless(likelihoods.LocationScale):
        noise_scale: float = 1.0
        scale_prior: priors.ScalePrior = priors.HalfNormal()
        has_exponential_moments = True

        def log_noise_density(self, residual, scale):
            return -residual

        def noise_quantile(self, probability):
            return probability

    with pytest.raises(TypeError, match="likelihood must be one of.*Nameless"):
        BayesianMLP([1, 1], likelihood=Nameless())


def test_files_and_the_command_line_know_a_class_as_soon_as_it_is_there():
    class Wide(likelihoods.Gaussian, name="wide"):
        """Inherits everything that is registered."""

        def num_outputs(self, num_targets, num_classes=0):
            return num_targets + 1

    assert missing() == []
    spec = BayesianMLP([1, 1], prior=priors.Normal(1.0), likelihood=Wide(0.5)).spec
    assert ModelSpec.from_json(spec.to_json()) == spec
    parser = ArgumentParser()
    add_options(parser)
    options = "rows.csv --target y --layers 3 --likelihood wide --noise-scale 0.5".split()
    args = parser.parse_args(options)
    with pytest.raises(ValueError, match="--likelihood wide takes one column"):
        make_model(args, num_features=1, num_targets=1)
