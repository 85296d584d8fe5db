"""The description in a run folder comes back; what older releases did not say has a meaning."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.builders import config_of_run, make_rows, plain_spec
from tests.support.run_folders import created_run
from tfbnn.exceptions import RunFolderError
from tfbnn.run import description
from tfbnn.run.description import check_same_run, config_to_arrays, config_to_json
from tfbnn.spec.rows import prepare_rows, rows_to_fit
from tfbnn.storage.run.folder import RunFolder


@pytest.fixture
def described(tmp_path):
    """Function (y [9] or [9, 1], change of the description) -> the FitConfig out of a folder."""

    def described(y, change=lambda description: description):
        spec, x = plain_spec((2, 3, 1)), make_rows(9, 2, 1)[0]
        config = replace(config_of_run(spec, x, y), rows=prepare_rows(spec, x, y, None))
        created_run(tmp_path / "run", change(config_to_json(config)), config_to_arrays(config), 1)
        return description.read_fit_config(RunFolder.open(tmp_path / "run"))

    return described


@pytest.mark.parametrize("is_vector", [True, False])
def test_a_run_folder_knows_the_shape_of_the_target(described, is_vector):
    y = make_rows(9, 2, 1)[1]
    rows = described(y[:, 0] if is_vector else y).rows
    assert rows.vector_target is is_vector
    assert rows.y.shape == (9, 1)


def test_runs_of_releases_that_did_not_say_it_keep_a_column(described):
    def as_it_was(description):
        return {name: entry for name, entry in description.items() if name != "vector_target"}

    assert described(make_rows(9, 2, 1)[1][:, 0], as_it_was).rows.vector_target is False


def test_a_run_keeps_the_power_of_its_likelihood(tmp_path):
    """Also where nothing says it, as in runs of releases that had no other than 1."""
    x, y = make_rows(9, 2, 1)
    whole = config_of_run(plain_spec((2, 3, 1)), x, y)
    coarse = replace(whole, spec=replace(whole.spec, likelihood_power=0.1))
    for name, begun, other in (("whole", whole, coarse), ("coarse", coarse, whole)):
        content = config_to_json(begun)
        assert ("likelihood_power" in content["fixed"]["spec"]) is (begun is coarse)
        folder = created_run(tmp_path / name, content, config_to_arrays(begun), 1)
        assert description.read_fit_config(folder).spec == begun.spec
        check_same_run(folder, begun)
        there, here = (config.spec.likelihood_power for config in (begun, other))
        message = f"likelihood_power is {there} there and {here} here"
        with pytest.raises(RunFolderError, match=message):
            check_same_run(folder, other)


@pytest.mark.parametrize("power", [0.0, 1.5, "half", None])
def test_a_folder_with_another_power_is_refused(described, power):
    def changed(description):
        spec = description["fixed"]["spec"] | {"likelihood_power": power}
        return description | {"fixed": description["fixed"] | {"spec": spec}}

    with pytest.raises(RunFolderError, match="likelihood_power"):
        described(make_rows(9, 2, 1)[1], changed)


def test_a_run_keeps_which_rows_belong_together(tmp_path):
    x, y = make_rows(9, 2, 1)
    spec = plain_spec((2, 3, 1))
    rows, _ = rows_to_fit(spec, x, y, None, None, groups=list("aabbccdde"))
    without = replace(config_of_run(spec, x, y), rows=replace(rows, groups=None))
    grouped = replace(without, rows=rows)
    folder = created_run(tmp_path / "run", config_to_json(grouped), config_to_arrays(grouped), 1)
    found = description.read_fit_config(folder)
    np.testing.assert_array_equal(found.rows.groups, [0, 0, 1, 1, 2, 2, 3, 3, 4])
    check_same_run(folder, found)
    with pytest.raises(RunFolderError, match="the groups of rows differ"):
        check_same_run(folder, without)
