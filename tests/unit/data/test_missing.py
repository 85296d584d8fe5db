"""Missing values: refused with all columns that have some, or an input of their own; and dates."""

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tests.support.coded import coded_ensemble
from tfbnn.data.bad_rows import BadRowError
from tfbnn.data.coding import Coding, Column, as_inputs
from tfbnn.data.frames import select_columns
from tfbnn.data.learn_coding import learn_coding
from tfbnn.data.tables import read_table
from tfbnn.data.transforms import fit_pipeline
from tfbnn.exceptions import DataWarning
from tfbnn.plots.slicing import find_slices
from tfbnn.posterior.facts import column_facts
from tfbnn.spec.rows import rows_to_fit

NUM_ROWS = 24
FULL = pd.DataFrame(
    {
        "age": np.arange(20.0, 20.0 + NUM_ROWS),
        "city": np.array(["a", "b", "c"] * 8, dtype=object),
        "ok": np.array([True, False, False] * 8, dtype=object),
        "w": np.linspace(0.0, 1.0, NUM_ROWS),
    }
)
FRAME = FULL.copy()
FRAME.loc[2:6, "age"] = np.nan
FRAME.loc[5, "city"] = None
FRAME.loc[7:8, "ok"] = None
TARGETS = np.linspace(1.0, 2.0, NUM_ROWS)
CITIES = ("city=a", "city=b", "city=c", "city=missing")
INPUTS = ("age", "age=missing", *CITIES, "ok", "ok=missing", "w")


def spec_of(num_inputs):
    return tfbnn.BayesianMLP([num_inputs, 3, 1]).spec


def disguises(tmp_path):
    """The frame as users may have it."""
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    FRAME.to_parquet(tmp_path / "t.parquet")
    nullable = FRAME.assign(age=FRAME["age"].astype("Int64"), ok=FRAME["ok"].astype("boolean"))
    return {
        "frame": FRAME,
        "nullable": nullable.assign(city=nullable["city"].astype("category")),
        "csv": read_table(tmp_path / "t.csv", texts=True, gaps=True),
        "parquet": read_table(tmp_path / "t.parquet", texts=True, gaps=True),
    }


def test_one_refusal_names_all_columns_with_counts_and_what_to_do(tmp_path):
    for name, x in disguises(tmp_path).items():
        with pytest.raises(BadRowError) as caught:
            rows_to_fit(spec_of(4), x, TARGETS, None, None)
        message = str(caught.value)
        for words in ("'age' 5, 'city' 1, 'ok' 2", "row 2", "'indicator'", "SimpleImputer"):
            assert words in message, (name, message)


@pytest.mark.parametrize("values", [[1.0, np.nan], pd.array([1, None], "Int64"), [1.0, None]])
def test_columns_of_numbers_are_refused_with_counts_too(values):
    frame = pd.DataFrame({"a": [*values, *values], "b": [1.0, 2.0, 3.0, np.nan]})
    for x, names in ((frame, ("'a'", "'b'")), (frame.to_numpy(), ("0", "1"))):
        with pytest.raises(BadRowError, match="'indicator'") as caught:
            rows_to_fit(spec_of(2), x, TARGETS[:4], None, None)
        assert f"{names[0]} 2, {names[1]} 1" in str(caught.value)
        assert "in row 1, column 0" in str(caught.value)


def test_the_indicator_is_the_median_and_a_flag_and_of_text_a_category(tmp_path):
    gaps = FRAME.isna().to_numpy()
    median = FRAME["age"].median()
    city, ok = FRAME["city"].to_numpy(), FRAME["ok"].fillna(False).astype(bool)
    columns = [FRAME["age"].fillna(median), gaps[:, 0], *(city == each for each in "abc")]
    expected = np.column_stack([*columns, gaps[:, 1], ok, gaps[:, 2], FRAME["w"]]).astype(float)
    for name, x in disguises(tmp_path).items():
        rows, held_out = rows_to_fit(
            spec_of(9), x, TARGETS, None, (x, TARGETS), missing="indicator"
        )
        assert rows.feature_names == INPUTS, name
        np.testing.assert_array_equal(rows.x, expected, err_msg=name)
        np.testing.assert_array_equal(held_out.x, expected, err_msg=name)
        assert Coding.from_json(rows.coding.to_json()) == rows.coding
    with pytest.raises(ValueError, match=r"'age' 2, 'city' 4, 'ok' 2.*a network with 9 inputs"):
        rows_to_fit(spec_of(4), FRAME, TARGETS, None, None, missing="indicator")
    rows, _ = rows_to_fit(spec_of(2), FULL[["age", "w"]], TARGETS, None, None, missing="indicator")
    assert rows.coding is None and rows.feature_names == ("age", "w")


def test_a_number_and_its_flag_are_standardised_apart():
    coding = learn_coding(FRAME, "x", "indicator")
    plain = fit_pipeline(("standardize",), coding.encoded(FRAME, "x"), "x")
    scale, even = np.array(plain.steps[0].scale), np.array(coding.even(plain).steps[0].scale)
    apart = [0, 1, 6, 7, 8]
    np.testing.assert_array_equal(even[apart], scale[apart])
    assert len(set(even[2:6])) == 1


@pytest.mark.parametrize("column", ["age", "city", "ok"])
def test_a_column_that_had_no_gaps_may_not_have_one_later(column):
    coding = learn_coding(FRAME.assign(**{column: FULL[column]}), "x", "indicator")
    assert as_inputs(FRAME.assign(**{column: FULL[column]}), "x", 8, coding).values.shape[0] == 24
    row = int(np.argmax(FRAME[column].isna()))
    with pytest.raises(BadRowError, match=f"'{column}'.*to rows with such gaps") as caught:
        as_inputs(FRAME, "x", coding.num_inputs, coding)
    assert caught.value.row == row


def test_arrays_without_names_have_columns_x0_x1():
    x = FRAME[["w", "age"]].to_numpy(float)
    rows, _ = rows_to_fit(spec_of(3), x, TARGETS, None, None, missing="indicator")
    assert rows.feature_names == ("x0", "x1", "x1=missing")
    np.testing.assert_array_equal(as_inputs(x.tolist(), "x", 3, rows.coding).values, rows.x)
    np.testing.assert_array_equal(as_inputs(rows.x, "x", 3, rows.coding).values, rows.x)
    with pytest.raises(BadRowError, match=r"row 0, column 0 \('x0'\)"):
        as_inputs([[np.nan, 1.0]], "x", 3, rows.coding)
    with pytest.warns(DataWarning, match="'x0', 'x1'; their order counts"):
        frame = select_columns(FRAME[["w", "age"]], ("x0", "x1"), "x", numbered=True)
    np.testing.assert_array_equal(as_inputs(frame, "x", 3, rows.coding).values, rows.x)
    with pytest.raises(ValueError, match="no column x1"):
        select_columns(
            FRAME[["w", "age"]].set_axis(["x0", "age"], axis=1), ("x0", "x1"), "x", numbered=True
        )
    with pytest.raises(ValueError, match="no column x0, x1"):
        select_columns(FRAME[["w", "age"]], ("x0", "x1"), "x")


def test_a_column_without_any_value_is_refused():
    frame = FRAME.assign(w=np.nan)
    with pytest.raises(ValueError, match="column 'w' of x has no value in any row"):
        learn_coding(frame, "x", "indicator")


def test_the_most_values_and_gaps_are_read_again():
    words = [f"w{row % 100}" for row in range(300)]
    coding = learn_coding(pd.DataFrame({"a": [*words, None]}), "x", "indicator")
    assert Coding.from_json(coding.to_json()) == coding


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "a", "kind": "numbers", "values": [], "fill": np.nan},
        {"name": "a", "kind": "numbers", "values": [], "fill": "missing"},
        {"name": "a", "kind": "numbers", "values": [], "fill": None},
        {"name": "a", "kind": "texts", "values": ["u", "v"], "fill": "missing"},
        {"name": "a", "kind": "texts", "values": ["missing", "v"], "fill": "v"},
        {"name": "a", "kind": "texts", "values": ["missing", "v"], "fill": [1]},
    ],
)
def test_a_file_says_what_stands_for_missing_values(entry):
    with pytest.raises(ValueError, match="for missing values"):
        Column.from_json(entry)


def test_slices_and_facts_of_such_a_model():
    ensemble = coded_ensemble(FRAME, TARGETS, missing="indicator")
    model = tfbnn.BayesianMLP.from_ensemble(ensemble)
    (slices,) = find_slices(model, None, None, None)
    assert [len(one.line.values) for one in slices] == [121, 4, 2, 121]
    assert "age (or missing), city (a, b, c, missing)" in str(dict(column_facts(model.posterior)))


DATES = pd.date_range("2020-01-31", periods=NUM_ROWS)
DATE_COLUMNS = {
    "days": DATES,
    "zone": DATES.tz_localize("UTC"),
    "objects": DATES.date.astype(object),
    "gap": DATES.where(np.arange(NUM_ROWS) > 2),
    "spans": DATES - DATES[0],
    "ISO": DATES.strftime("%Y-%m-%d"),
    "German": DATES.strftime("%d.%m.%Y"),
}


@pytest.mark.parametrize("dates", DATE_COLUMNS.values(), ids=DATE_COLUMNS)
@pytest.mark.parametrize("frame", [FULL, FULL[["w"]]], ids=["text", "numbers"])
def test_dates_are_refused_by_column_with_what_to_do(frame, dates):
    words = "column 'd' of x .*(days since some date|dayofyear|total_seconds)"
    with pytest.raises((TypeError, ValueError), match=words):
        learn_coding(frame.assign(d=dates), "x", "indicator")


def test_a_column_of_numbers_with_gaps_refuses_dates_by_column():
    coding = learn_coding(FRAME[["age", "w"]], "x", "indicator")
    with pytest.raises(TypeError, match="column 'age' of x .* dates"):
        as_inputs(FRAME[["w"]].assign(age=DATES)[["age", "w"]], "x", 3, coding)
