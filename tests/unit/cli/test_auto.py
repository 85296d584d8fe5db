"""Options of `tfbnn fit` that are not given are chosen; those that are keep their meaning."""

import argparse

import numpy as np
import pytest

from tfbnn.cli.fit_options import add_options, fit_arguments, kernel_argument, make_model
from tfbnn.engine.kernels.hmc import HMC
from tfbnn.engine.kernels.nuts import NUTS
from tfbnn.fit.model import BayesianMLP
from tfbnn.likelihoods import Categorical, Gaussian
from tfbnn.priors import HierarchicalNormal, Laplace, Normal
from tfbnn.run.options import FitOptions
from tfbnn.spec.settings_json import Pretraining


def parsed(options=""):
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(["rows.csv", "--target", "y", *options.split()])


def spec(options=""):
    return make_model(parsed(options), 3, 1).spec


AUTO = "--prior auto --parameterization auto --y-transform auto --noise-scale learned"


@pytest.mark.parametrize("options", ["--layers 50", f"--layers 50 {AUTO}"])
def test_layers_that_are_given_have_the_defaults_of_the_model(options):
    expected = BayesianMLP([3, 50, 1]).spec
    assert spec(options) == expected and spec(options).choices == expected.choices
    assert spec(options).is_open


def test_with_nothing_given_rows_choose_layers_and_noise():
    asked = make_model(parsed(), 3, 1).asked
    assert asked == BayesianMLP([3, "auto", 1]).asked
    assert asked == make_model(parsed("--layers auto --likelihood auto"), 3, 1).asked
    known = make_model(parsed("--noise-scale 0.5"), 3, 1).asked
    assert known == BayesianMLP([3, "auto", 1], likelihood=Gaussian(0.5)).asked
    classes = make_model(parsed("--likelihood categorical"), 3, 1, num_classes=4).asked
    assert classes == BayesianMLP([3, "auto", 4], likelihood=Categorical()).asked


@pytest.mark.parametrize("options", ["", "--kernel auto --num-burnin-steps auto"])
def test_with_nothing_given_the_fit_has_everything_open(options):
    args = parsed(options)
    assert FitOptions(**fit_arguments(args), **kernel_argument(args)) == FitOptions()


@pytest.mark.parametrize(
    "options, prior",
    [
        ("--prior-scale 0.5", Normal(0.5)),
        ("--prior normal", Normal(1.0)),
        ("--prior laplace --prior-scale 2", Laplace(2.0)),
        ("--prior hierarchical", HierarchicalNormal()),
    ],
)
def test_a_prior_that_is_given_is_standard(options, prior):
    found = spec(f"--layers 50 {options}")
    assert {layer.kernel for layer in found.priors} == {prior}
    assert found.parameterization == "standard"
    assert spec(f"--layers 50 {options} --parameterization ntk").parameterization == "ntk"


def test_options_that_a_report_advises_are_followed():
    """Parse options of settings that are "auto" by default, as the diagnosis writes them."""
    args = parsed("--kernel hmc --target-accept-prob 0.9")
    assert kernel_argument(args) == {"kernel": HMC(target_accept_prob=0.9)}


def test_what_is_given_is_not_chosen():
    args = parsed("--epochs 7 --kernel nuts --num-burnin-steps 9 --y-transform none --layers 4")
    options = FitOptions(**fit_arguments(args), **kernel_argument(args))
    assert options.pretraining == Pretraining(epochs=7)
    assert (options.kernel, options.num_burnin_steps) == (NUTS(), 9)
    assert spec("--y-transform none --layers 4").y_transform == ()
    assert fit_arguments(parsed("--no-pretraining")) == {"pretraining": None}
    assert fit_arguments(parsed("--likelihood-power 0.25")) == {"likelihood_power": 0.25}
    assert spec("--layers none").layer_sizes == (3, 1)


def test_chains_start_at_a_number_or_a_model_file(fitted, tmp_path):
    arguments = fit_arguments(parsed("--initial-state 0.5"))
    assert arguments == {"initial_state": 0.5} and FitOptions(**arguments).pretraining is None
    fitted.save(tmp_path / "bnn.h5")
    arguments = fit_arguments(parsed(f"--initial-state {tmp_path / 'bnn.h5'}"))
    np.testing.assert_array_equal(arguments["initial_state"].draws, fitted.posterior.draws)
    with pytest.raises(ValueError, match="Leave one of them out"):
        FitOptions(**fit_arguments(parsed("--initial-state 0.5 --epochs 3")))
    with pytest.raises(FileNotFoundError):
        fit_arguments(parsed("--initial-state absent.h5"))
