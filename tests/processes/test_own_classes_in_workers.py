"""Priors and noise of a user's own in worker processes, which import them by the caller's word alone."""

import numpy as np
import pytest

import tfbnn
from tests.support import small_runs
from tests.support.own_classes import Logistic, StudentTPrior
from tests.support.small_runs import X, Y, assert_same_draws, small_model
from tfbnn.engine.running.advance import advance_lane
from tfbnn.storage import RunFolder

RUN = small_runs.RUN | {"jit_compile": False}
CLASSES = [Logistic, StudentTPrior]


def own_model():
    return small_model(prior=StudentTPrior(), likelihood=Logistic())


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """(Model fitted by two worker processes, its run folder)."""
    model, folder = own_model(), tmp_path_factory.mktemp("workers") / "run"
    model.fit_posterior(X, Y, output=folder, num_workers=2, **RUN)
    return model, folder


@pytest.mark.filterwarnings("ignore::tfbnn.ConvergenceWarning")
def test_workers_draw_what_one_process_draws(there):
    model, folder = there
    assert RunFolder.open(folder).description["in_workers"]
    here = own_model()
    here.fit_posterior(X, Y, num_workers=1, **RUN)
    np.testing.assert_allclose(here.posterior.draws, model.posterior.draws, rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore::tfbnn.ConvergenceWarning")
def test_a_run_in_workers_goes_on_by_its_folder_and_the_classes(there):
    model, folder = there
    longer, _ = tfbnn.resume(folder, custom=CLASSES, num_results=60, verbose=0)
    np.testing.assert_array_equal(longer.posterior.draws[:, :40], model.posterior.draws)
    whole = own_model()
    whole.fit_posterior(X, Y, output=folder, resume=True, **(RUN | {"num_results": 60}))
    assert_same_draws(whole, longer)


def test_what_a_folder_names_is_not_imported(there):
    _, folder = there
    with pytest.raises(tfbnn.RunFolderError, match="StudentTPrior, Logistic in it is no prior"):
        advance_lane(str(folder), 0)
