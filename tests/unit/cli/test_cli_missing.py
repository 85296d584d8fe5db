"""The command line on missing values, dates, and what looks like numbers: fit, predict and evaluate."""

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tests.support.coded import FRAME, NUM_ROWS, TARGETS, coded_ensemble
from tests.support.commands import QUICK, check_refusal
from tfbnn.data.learn_coding import learn_coding
from tfbnn.data.table import Table
from tfbnn.data.tables import read_table
from tfbnn.fit.model import BayesianMLP

GAPS = FRAME.astype({"colour": object, "ok": object, "kind": object})
GAPS.loc[3:4, "mass"] = np.nan
GAPS.loc[5, "colour"] = None
GAPS.loc[6, "ok"] = None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("missing")
    table = GAPS.assign(y=TARGETS)
    table.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet")
    table.assign(mix=table["mix"].where(table.index != 9)).to_csv(folder / "mix.csv", index=False)
    days = pd.date_range("2020", periods=NUM_ROWS)
    table.assign(day=days).to_csv(folder / "days.csv", index=False)
    table.assign(day=days).to_parquet(folder / "days.parquet")
    table.assign(y=table["y"].where(table.index != 8)).to_csv(folder / "y.csv", index=False)
    BayesianMLP.from_ensemble(coded_ensemble(GAPS, missing="indicator")).save(folder / "m.h5")
    return folder


def test_predict_and_evaluate_take_what_the_fit_took(run, folder):
    model = tfbnn.load(folder / "m.h5")
    for name in ("t.csv", "t.parquet"):
        assert run(f"predict m.h5 {name} -o out.csv")[0] == 0
        mean = read_table(folder / "out.csv").values[:, 0]
        np.testing.assert_allclose(mean, model.predict(GAPS).mean[:, 0], rtol=1e-8)
        assert run(f"evaluate m.h5 {name}")[0] == 0
    check_refusal(run("predict m.h5 mix.csv"), "(mix.csv, line 11)", "'mix'")
    assert "mass (or missing)" in run("info m.h5")[1]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_fit_names_all_columns_with_missing_values(run, folder, name):
    words = "'mass' 2, 'colour' 1, 'ok' 1"
    check_refusal(run(f"fit {name} --target y -o z.h5"), words, f"({name}, ", "--missing indicator")
    result = run(f"fit {name} --target y --features mass,mix -o z.h5")
    check_refusal(result, "2 NaN", f"({name}, ", "'mass'", "--missing indicator")


@pytest.mark.parametrize("name", ["days.csv", "days.parquet"])
def test_fit_refuses_dates_by_column(run, folder, name):
    result = run(f"fit {name} --target y --missing indicator -o z.h5")
    check_refusal(result, "column 'day' of x", "dates", "days since")


def test_the_name_of_the_target_is_looked_at_first(run, folder):
    for name in ("t.csv", "t.parquet"):
        result = run(f"fit {name} --target yy -o z.h5")
        check_refusal(result, f"{name} has no column yy", "Did you mean 'y'?")
    check_refusal(run("fit y.csv --target y"), "y.csv, line 10, column y: expected a finite number")
    check_refusal(run("fit t.csv --target y --missing mean"), "--missing")


@pytest.mark.tensorflow
def test_fit_takes_missing_values_as_inputs(run, folder, engine):
    options = "--missing indicator --no-pretraining -o fitted.h5"
    code, _, err = run(f"fit t.csv --target y {options}", *QUICK)
    assert code == 0, err
    model = tfbnn.load(folder / "fitted.h5")
    assert "mass=missing" in model.posterior.feature_names
    assert np.isfinite(model.predict(GAPS).mean).all()


def read_table_of(frame):
    return Table.of_columns({name: frame[name].to_numpy() for name in frame})


def test_words_for_missing_values_are_gaps_in_text_too(tmp_path):
    words = ["red", "NA", "blue", "n/a", "none", "null"] * 4
    lines = (f"{row},{word},{word == 'red'}" for row, word in enumerate(words))
    (tmp_path / "t.csv").write_text("\n".join(["a,colour,ok", *lines]))
    table = read_table(tmp_path / "t.csv", texts=True, gaps=True)
    (_, colour, _) = learn_coding(table, "x", "indicator").columns
    assert colour.values == ("blue", "missing", "none", "red") and colour.fill == "missing"
    with pytest.raises(ValueError, match="'colour' of x must have a value in every row, 12 have"):
        learn_coding(table, "x")
