"""Models of columns of text: every entry point takes frames, tables and coded numbers alike."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tests.support.builders import config_of_run, plain_spec
from tests.support.coded import COLOURS, FRAME, INPUTS, NUM_ROWS, TARGETS, coded_ensemble, with_text
from tests.support.entries import fake_fit
from tests.support.model_file_edits import craft, refused_after, rewrite
from tests.support.run_folders import created_run
from tfbnn.exceptions import DataWarning, RunFolderError
from tfbnn.fit.handing_on import known_from
from tfbnn.fit.model import BayesianMLP
from tfbnn.hep.process import Process
from tfbnn.priors import ARD, Normal
from tfbnn.run.description import check_same_run, config_to_arrays, config_to_json, read_config
from tfbnn.spec.rows import learn_transforms, prepare_rows, rows_to_fit
from tfbnn.storage.run.folder import RunFolder
from tfbnn.trust import EDGE, OUTSIDE

PRIOR = [{"kernel": ARD(), "bias": Normal()}, Normal()]


@pytest.fixture(scope="module")
def model():
    return BayesianMLP.from_ensemble(coded_ensemble(prior=PRIOR))


def answers(model, x):
    """Return the answers of the entry points that need no TensorFlow."""
    return [
        model.predict(x, include_noise=True).stddev.tolist(),
        model.predict_draws(x).tolist(),
        model.evaluate(x, TARGETS)["rmse"],
        model.diagnose(x).rhat_function.tolist(),
        model.code_inputs(x).tolist(),
    ]


def test_a_frame_without_rows_is_refused(model):
    for entry in (model.predict, model.predict_draws, model.code_inputs):
        with pytest.raises(ValueError, match="x must have .* at least one row"):
            entry(FRAME[:0])


def test_frames_and_coded_numbers_give_the_same_answers(model):
    numbers = model.posterior.coding.encoded(FRAME, "x")
    expected = answers(model, numbers)
    assert answers(model, FRAME) == expected
    assert answers(model, FRAME[[*FRAME][::-1]]) == expected
    assert answers(model, FRAME.astype({"colour": "category", "kind": "str"})) == expected
    with pytest.warns(DataWarning, match="ignored: 'year'"):
        assert answers(model, FRAME.assign(year=3)) == expected


def test_what_the_fit_has_not_seen_is_refused_everywhere(model):
    violet = with_text("colour", "violet")
    for call in (
        lambda: model.predict(violet),
        lambda: model.predict_draws(violet),
        lambda: model.evaluate(violet, TARGETS),
        lambda: model.diagnose(violet),
        lambda: model.stack_chains(violet, TARGETS),
        lambda: model.compress(5, "stride", x_reference=violet),
        lambda: model.code_inputs(violet),
    ):
        with pytest.raises(ValueError, match=r"'colour' of (validation )?x .*'violet' in row 3\."):
            call()


def test_relevance_and_trust_are_of_inputs(model):
    assert model.relevance().names == INPUTS
    assert "colour=naïve λ" in str(model.relevance())
    usual = model.predict(FRAME, return_trust=True).trust
    assert (usual >= EDGE).all()
    # Numbers that no table becomes: two colours at once.
    strange = model.code_inputs(FRAME)[:1]
    strange[:, 1:4] = 1.0
    assert model.predict(strange, return_trust=True).trust.tolist() == [OUTSIDE]


def test_a_flag_that_was_never_true_is_outside():
    with pytest.warns(DataWarning, match="of x are constant"):
        ensemble = coded_ensemble(FRAME.assign(ok=False))
    model = BayesianMLP.from_ensemble(ensemble)
    frame = FRAME.assign(ok=np.arange(NUM_ROWS) == 2)
    trust = model.predict(frame, return_trust=True).trust
    assert trust[2] == OUTSIDE and (np.delete(trust, 2) >= EDGE).all()


# ----------------------------------------------------------------------------------------
# Rows of a fit
# ----------------------------------------------------------------------------------------


def spec_of(num_inputs=7, **changes):
    return plain_spec((num_inputs, 3, 1), **({"x_transform": "standardize"} | changes))


def test_rows_of_a_fit_are_coded_once_and_for_all():
    frame = FRAME.assign(colour=np.where(FRAME.index < 5, "green", FRAME["colour"]))
    held_out = frame[["mix", "kind", "ok", "colour", "mass"]][:3]
    rows, validation = rows_to_fit(spec_of(), frame, TARGETS, None, (held_out, TARGETS[:3]))
    assert rows.feature_names == validation.feature_names == INPUTS
    assert rows.coding == validation.coding and rows.coding.names == tuple(FRAME)
    np.testing.assert_array_equal(validation.x, rows.x[:3])
    learned = learn_transforms(spec_of(), rows, validation)
    assert len(set(learned.x_pipeline.steps[0].scale[1:4])) == 1
    with pytest.raises(ValueError, match="'colour' of validation x .* received 'violet' in row 3"):
        rows_to_fit(spec_of(), frame, TARGETS, None, (with_text("colour", "violet"), TARGETS))


def test_networks_that_do_not_go_with_the_columns():
    words = "columns that make 7: 'colour' 3, 'ok' 1, 'kind' 1, one each.*a network with 7 inputs"
    with pytest.raises(ValueError, match=words):
        prepare_rows(spec_of(5), FRAME, TARGETS, None)
    with pytest.raises(ValueError, match="'log10' takes positive.*'colour', 'ok', 'kind'"):
        prepare_rows(spec_of(x_transform=("log10", "standardize")), FRAME, TARGETS, None)


def test_a_model_that_chains_start_from_has_coded_the_columns():
    earlier = coded_ensemble(prior=Normal(1.0))
    known = known_from(tfbnn.BayesianMLP.from_spec(earlier.spec), earlier)
    fewer = FRAME[FRAME["colour"] != "green"]
    rows, _ = rows_to_fit(earlier.spec, fewer, TARGETS[: len(fewer)], None, None, known)
    assert rows.coding == earlier.coding and rows.feature_names == INPUTS
    assert rows.transforms == (earlier.x_pipeline, earlier.y_pipeline)
    # Coded numbers keep the names, without which no file could be written.
    numbers = earlier.coding.encoded(FRAME, "x")
    rows, _ = rows_to_fit(earlier.spec, numbers, TARGETS, None, None, known)
    assert rows.feature_names == INPUTS


def test_a_run_folder_keeps_the_code(tmp_path):
    spec = spec_of()
    rows = prepare_rows(spec, FRAME, TARGETS, None)
    config = replace(config_of_run(spec, rows.x, rows.y), rows=rows)
    content = config_to_json(config)
    created_run(tmp_path / "run", content, config_to_arrays(config), 1)
    found = read_config(RunFolder.open(tmp_path / "run")).rows
    assert found.coding == rows.coding and found.feature_names == INPUTS
    np.testing.assert_array_equal(found.x, rows.x)
    # The same numbers of other colours are another run.
    check_same_run(RunFolder.open(tmp_path / "run"), config)
    azure = FRAME.assign(colour=FRAME["colour"].replace("blue", "azure"))
    other = replace(config, rows=prepare_rows(spec, azure, TARGETS, None))
    np.testing.assert_array_equal(other.rows.x, rows.x)
    with pytest.raises(RunFolderError, match="continued with other arguments: coding is"):
        check_same_run(RunFolder.open(tmp_path / "run"), other)
    # Runs of releases that coded nothing.
    del content["fixed"]["coding"]
    created_run(tmp_path / "old", content, config_to_arrays(config), 1)
    assert read_config(RunFolder.open(tmp_path / "old")).rows.coding is None


@pytest.mark.tensorflow
def test_a_fit_keeps_the_code_with_the_model(engine, tmp_path):
    model = BayesianMLP([7, 5, 1], prior=Normal(1.0))
    fake_fit(model, FRAME, TARGETS, validation_data=(FRAME[:5], TARGETS[:5]))
    model.save(tmp_path / "model.h5")
    loaded = tfbnn.load(tmp_path / "model.h5")
    assert loaded.posterior.coding == model.posterior.coding
    np.testing.assert_array_equal(loaded.posterior.x_reference, model.code_inputs(FRAME[:5]))
    np.testing.assert_array_equal(loaded.predict(FRAME).mean, model.predict(FRAME).mean)
    theta = model.posterior.draws[0, 0]
    numbers = model.code_inputs(FRAME)
    assert model.log_prob(theta, FRAME, TARGETS) == model.log_prob(theta, numbers, TARGETS)


# ----------------------------------------------------------------------------------------
# Model files
# ----------------------------------------------------------------------------------------


def test_a_code_of_any_text_comes_back_out_of_a_file_and_gives_the_same_numbers(tmp_path):
    """test_coding.py tests JSON alone with random text."""
    name, values = "\x00\n\"λ'\\", ["\x00", "質\u2028量", "\x1b[2J", "a=b", "'"]
    frame = pd.DataFrame({name: pd.Categorical(values * 3), f"{name}.": np.arange(15) / 7})
    ensemble = coded_ensemble(frame, np.arange(15.0))
    BayesianMLP.from_ensemble(ensemble).save(tmp_path / "model.h5")
    loaded = tfbnn.load(tmp_path / "model.h5")
    assert loaded.posterior.coding == ensemble.coding
    numbers = ensemble.coding.encoded(frame, "x")
    np.testing.assert_array_equal(loaded.code_inputs(frame), numbers)
    np.testing.assert_array_equal(loaded.predict(frame).mean, loaded.predict(numbers).mean)


COLUMN = {"name": "colour", "kind": "texts", "values": list(COLOURS)}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (rewrite("coding", value="colour"), "coding in metadata has the wrong type"),
        (rewrite("coding", value=[]), "coding must have a column"),
        (rewrite("coding", value=[COLUMN]), "feature_names must be .* by the coding"),
        (rewrite("coding", 1, "values", value=["a", "b", "c"]), "feature_names must be .* by the"),
        (rewrite("coding", 1, value=7), "name, kind and values"),
        (rewrite("feature_names", value=None), "feature_names must be .* found None"),
        (rewrite("feature_names", 1, value="colour=red"), "feature_names must be"),
    ],
)
def test_a_crafted_code_is_refused(model, tmp_path, edit, message):
    path = tmp_path / "model.h5"
    model.save(path)
    refused_after(edit, path, rf"(?s)model\.h5.*{message}")


def test_a_file_without_a_code_has_numbers(model, tmp_path):
    model.save(tmp_path / "model.h5")
    craft(tmp_path / "model.h5", rewrite("coding", value=None))
    loaded = tfbnn.load(tmp_path / "model.h5").posterior
    assert loaded.feature_names == INPUTS and loaded.coding is None


def test_onnx_files_say_what_the_numbers_are(model, tmp_path):
    onnx = pytest.importorskip("onnx")
    model.to_onnx(tmp_path / "model.onnx")
    said = {p.key: json.loads(p.value) for p in onnx.load(tmp_path / "model.onnx").metadata_props}
    assert said["feature_names"] == [*INPUTS] and said["coding"][1] == COLUMN


def test_a_process_of_slha_files_takes_numbers(model):
    with pytest.raises(ValueError, match="columns of text or flags: colour, ok, kind"):
        Process((1, 2), model, "fb", 13000.0, {})
