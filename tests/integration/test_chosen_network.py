"""A fit with nothing given: from rows to a file, on from a folder, by estimators and the command."""

import json

import numpy as np
import pytest

import tfbnn
from tests.support.small_runs import assert_same_draws
from tfbnn.cli import main
from tfbnn.spec.open_spec import NOISES

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(40, 2))
Y = X[:, 0] + 0.1 * GENERATOR.normal(size=40)
FEW = dict(num_chains=2, num_burnin_steps=20, pretraining=None, effort=0.1, verbose=0)
FEW |= {"jit_compile": False}

pytestmark = pytest.mark.statistics


@pytest.fixture(autouse=True, scope="module")
def narrow():
    """Candidates that are quick to compile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfbnn.spec.open_spec.HIDDEN_LAYERS", ((3,), (4,)))
        patch.setattr("tfbnn.spec.open_spec.NOISES", NOISES[:2])
        patch.setattr("tfbnn.fit.choices.compare_networks.can_be_infinite", lambda *_: False)
        patch.setattr("tfbnn.fit.choices.compare_networks._NUM_STEPS", 120)
        patch.setattr("tfbnn.fit.choices.compare_networks._FEWEST_STEPS", 40)
        yield


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chosen") / "run"
    model = tfbnn.BayesianMLP()
    run = model.fit_posterior(X, Y, num_results=10, output=folder, **FEW)
    return model, run, folder


def test_the_report_says_what_was_chosen_against_what(fitted):
    model, run, _ = fitted
    choice = run.choices[0]
    assert choice.what == "network" and choice.chosen.startswith(model.spec.architecture_text)
    assert "3 " in choice.why and "4 " in choice.why and "HeteroscedasticGaussian" in choice.why
    assert f"network {choice.chosen}" in " ".join(run.report().split())
    assert model.spec.layer_sizes[0] == 2 and model.spec.layer_sizes[1] in (3, 4)


def test_it_goes_on_by_either_call_and_is_kept(fitted, tmp_path):
    model, _, folder = fitted
    same, again = tfbnn.BayesianMLP(), tfbnn.load(folder)
    same.fit_posterior(X, Y, num_results=20, output=folder, resume=True, **FEW)
    resumed, _ = tfbnn.resume(folder, verbose=0)
    assert_same_draws(same, resumed)
    np.testing.assert_array_equal(same.posterior.draws[:, :10], again.posterior.draws)
    model.save(tmp_path / "chosen.h5")
    np.testing.assert_allclose(
        tfbnn.load(tmp_path / "chosen.h5").predict(X).mean, model.predict(X).mean
    )


def test_the_command_chooses_the_same(fitted, tmp_path, capsys):
    _, run, _ = fitted
    table, path = tmp_path / "rows.csv", str(tmp_path / "m.h5")
    np.savetxt(
        table, np.column_stack([X, Y]), delimiter=",", header="a,b,y", comments="", fmt="%.17g"
    )
    options = "--num-chains 2 --num-burnin-steps 20 --num-results 2 --no-pretraining --effort 0.1 --no-jit-compile"
    main(["fit", str(table), "--target", "y", "-o", path, "--json", *options.split()])
    told = json.loads(capsys.readouterr().out)["choices"]["network"]
    assert told["chosen"] == run.choices[0].chosen


def test_an_estimator_chooses_the_same_whatever_the_seed(fitted):
    pytest.importorskip("sklearn")
    from tfbnn.sklearn import BayesianMLPRegressor

    few = {name: value for name, value in FEW.items() if name != "verbose"}
    regressor = BayesianMLPRegressor(**few, num_results=2, random_state=1).fit(X, Y)
    assert regressor.run_.choices[0] == fitted[1].choices[0]
    assert regressor.model_.spec == fitted[0].spec
