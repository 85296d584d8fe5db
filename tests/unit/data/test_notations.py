"""Numbers in another notation, units, and codes for missing values: never taken for something else."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tfbnn.data.learn_coding import learn_coding
from tfbnn.data.missing_codes import warn_of_codes
from tfbnn.data.tables import read_table
from tfbnn.exceptions import DataWarning
from tfbnn.spec.rows import rows_to_fit

NUM_ROWS = 24
TARGETS = np.linspace(1.0, 2.0, NUM_ROWS)
SPEC = tfbnn.BayesianMLP([2, 3, 1]).spec


def column_of(values):
    return [values[row % len(values)] for row in range(NUM_ROWS)]


@pytest.mark.parametrize(
    "values",
    [
        ["1.100,00", "1.200,00"], ["1,100,000.5", "1,200,000.5"], ["1'100", "1'200"],
        ["10%", "20 %"], ["$100", "$1,200"], ["10 €", "12,5 €"],
        ["100 GeV", "200 GeV", "1e3 GeV"], ["3km/h", "5km/h", "7km/h"], ["100+-2", "120 ± 3"],
        ["900 GeV", "1 TeV", "2.5 TeV"], ["$5", "6 €"], ["-", "10%", "20%", "?"],
    ],
)  # fmt: skip
def test_other_notations_are_refused_by_column_and_value(values, tmp_path):
    frame = pd.DataFrame({"m": column_of(values), "g": np.arange(NUM_ROWS) / 8})
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    for x in (frame, read_table(tmp_path / "t.csv", texts=True)):
        with pytest.raises(ValueError, match="column 'm' of x has dates, or numbers in another"):
            learn_coding(x, "x")
    coding = learn_coding(frame.astype({"m": "category"}), "x")
    assert set(coding.columns[0].values) == set(values)


@pytest.mark.parametrize("gap", [[], ["NA"], ["-"], ["n/a", "none"]])
@pytest.mark.parametrize(
    "values",
    [["2020/01/15", "2021/1/5"], ["2020.01.15"], ["01/02/20", "12/31/19"], ["2020-01", "2020-12"]],
)
def test_dates_are_refused_in_any_notation_and_with_gaps(values, gap):
    for written in (values, [f"{value} 10:30" for value in values]):
        frame = pd.DataFrame({"m": column_of([*gap, *written])})
        with pytest.raises(ValueError, match="column 'm' of x has dates, or .* such as '[0-9]"):
            learn_coding(frame, "x")


@pytest.mark.parametrize(
    "values",
    [
        ["2WD", "4WD"], ["2010-11", "2011-12", "2012-13"], ["20.04.10", "22.04.11"], ["-", "NA"],
        ["2WD", "4WD", "-"], ["1st", "2nd", "3rd", "4th"], ["18-25", "26-35", "36+"],
        ["<=50K", ">50K"], ["12D3", "12D4", "E1"], ["a1", "a2", "a3"], ["5 GeV", "low", "high"],
        ["1.2.3", "1.2.4", "2.0.0"],
    ],
)  # fmt: skip
def test_names_with_digits_stay_categories(values):
    frame = pd.DataFrame({"m": column_of(values)})
    assert set(learn_coding(frame, "x").columns[0].values) == set(values)


def test_exponents_of_fortran_are_numbers_in_text_files(tmp_path):
    (tmp_path / "t.csv").write_text("m,y\n1.0D+02,1\n.5d-1,2\n-2.D3,3\n7,4\n")
    table = read_table(tmp_path / "t.csv", texts=True)
    assert table.numbers(["m"]).ravel().tolist() == [100.0, 0.05, -2000.0, 7.0]
    frame = pd.DataFrame({"m": column_of(["1.0D+02", "2.0D+02"])})
    with pytest.raises(ValueError, match="column 'm' of x has numbers that are written as text"):
        learn_coding(frame, "x")


def test_the_advice_on_commas_asks_what_they_are(tmp_path):
    (tmp_path / "t.csv").write_text('m,y\n"1,100",1\n"1,200",2\n')
    with pytest.raises(ValueError, match="'1,100'; write decimal points, and no commas"):
        read_table(tmp_path / "t.csv")


class Quantity(np.ndarray):
    """Numbers that say their unit, as those of astropy do."""

    unit = "fb"


class Pint(SimpleNamespace):
    def __array__(self, dtype=None, copy=None):
        return np.array(self.magnitude, dtype)


X = np.column_stack([np.linspace(0.0, 1.0, NUM_ROWS), np.arange(NUM_ROWS) % 3])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((X.view(Quantity), TARGETS, None), "x must hold plain numbers.*unit fb"),
        ((X, TARGETS.view(Quantity), None), "y must hold plain numbers.*to_value"),
        ((X, TARGETS, TARGETS.view(Quantity)), "noise_scale must hold.*magnitude"),
        ((X, Pint(magnitude=TARGETS, units="picobarn"), None), "y must hold.*unit picobarn"),
    ],
)
def test_units_are_not_dropped(rows, words):
    with pytest.raises(TypeError, match=words):
        rows_to_fit(SPEC, *rows, None)


def test_what_is_called_unit_but_has_none_is_taken():
    frame = pd.DataFrame(X, columns=["unit", "units"])
    plain = Pint(magnitude=TARGETS, units="dimensionless")
    rows, _ = rows_to_fit(SPEC, frame, plain, frame["unit"] + 1.0, None)
    assert rows.feature_names == ("unit", "units")


@pytest.mark.parametrize("code", [-999.0, -9999.0, -99.0, 9999.9, 1e20, 999999.0, -32768.0])
def test_codes_for_missing_values_are_named_before_a_fit(code):
    x = pd.DataFrame(X.astype(np.float32), columns=["a", "b"])
    x.loc[:2, "b"] = code
    with pytest.warns(DataWarning, match=r"column 'b' of x .*count.*3.*'indicator'"):
        rows_to_fit(SPEC, x, TARGETS, None, None)
    y = np.where(np.arange(NUM_ROWS) < 2, code, TARGETS)
    with pytest.warns(DataWarning, match="column 0 of y .* 2.*drop these rows"):
        rows_to_fit(SPEC, X, y, None, None)


ROW = np.arange(300.0)
ORDINARY = {
    "integers": ROW,
    "years": 1900 + ROW % 120,
    "one-hot": ROW % 3 == 0,
    "constant 999": np.full(300, 999.0),
    "two values": np.where(ROW % 2, 999.0, 0.0),
    "percentages": np.where(ROW < 20, 99.9, ROW % 100),
    "counts capped at 999": np.minimum(ROW**2 / 50, 999.0),
    "a detector that saturates": np.minimum(50 * ROW, 9999.0),
    "16 bits": np.clip(400 * (ROW - 150), -32768, 32767),
    "masses up to 9999": np.where(ROW < 30, 9999.0, 20 * ROW),
    "decades": 10.0 ** (ROW % 24),
    "one outlier": np.where(ROW == 3, -999.0, ROW),
    "zeros": np.where(ROW < 200, 0.0, ROW),
}


@pytest.mark.parametrize("values", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_columns_are_not_accused(values):
    warn_of_codes(np.asarray(values, float)[:, None], "x", "")
