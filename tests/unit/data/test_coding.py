"""Columns of text, categories and flags: what they become, and what is refused with its place."""

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.coded import COLOURS, FRAME, INPUTS, with_text
from tfbnn.data.bad_rows import BadRowError
from tfbnn.data.coding import FLAGS, MOST_VALUES, NUMBERS, TEXTS, Coding, Column, as_inputs
from tfbnn.data.learn_coding import learn_coding
from tfbnn.data.tables import read_table
from tfbnn.data.transforms import fit_pipeline

CODING = learn_coding(FRAME, "x")


def column(values, name="colour"):
    """The one Column that is learned of a frame beside one of numbers."""
    coding = learn_coding(pd.DataFrame({name: values, "a": np.arange(float(len(values)))}), "x")
    return None if coding is None else coding.columns[0]


def test_what_the_columns_become():
    assert [(c.name, c.kind) for c in CODING.columns] == [
        ("mass", NUMBERS), ("colour", TEXTS), ("ok", FLAGS), ("kind", TEXTS), ("mix", NUMBERS),
    ]  # fmt: skip
    assert CODING.input_names == INPUTS and CODING.num_inputs == 7
    briefs = ["colour (3 values)", "ok (true or false)", "kind (2 values)"]
    assert [c.brief for c in CODING.coded] == briefs
    colours = (FRAME["colour"] == colour for colour in COLOURS)
    others = (FRAME["ok"], FRAME["kind"] == "right", FRAME["mix"])
    expected = np.column_stack([FRAME["mass"], *colours, *others])
    found = CODING.encoded(FRAME, "x")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected.astype(float))


def test_frames_of_numbers_and_arrays_need_no_code():
    numbers = FRAME[["mass", "mix"]]
    for x in (numbers, numbers.astype(object), numbers.astype("Float64"), numbers.to_numpy()):
        assert learn_coding(x, "x") is None
    assert learn_coding([["u", 1.0]], "x") is None  # refused as what it is: no numbers


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.array(["u", "v"] * 4, "string"), Column("colour", TEXTS, ("u", "v"))),
        (pd.Series([" u", "v "] * 4, dtype=object), Column("colour", TEXTS, ("u", "v"))),
        (pd.Categorical(["u", "v"] * 4, ["w", "v", "u"]), Column("colour", TEXTS, ("u", "v"))),
        (pd.Categorical([2016, 2017] * 4), Column("colour", TEXTS, ("2016", "2017"))),
        (pd.Categorical([2016.0, 2017.5] * 4), Column("colour", TEXTS, ("2016", "2017.5"))),
        (pd.Categorical([True, False] * 4), Column("colour", FLAGS)),
        (pd.array([True, False] * 4, "boolean"), Column("colour", FLAGS)),
        (pd.Series([True, True] * 4, dtype=object), Column("colour", FLAGS)),
        (["TRUE", "false"] * 4, Column("colour", FLAGS)),
        (["u"] * 8, Column("colour", TEXTS, ("u",))),
        ([1, 2] * 4, None),
        (pd.Series([1, 2.5] * 4, dtype=object), None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_kinds_of_columns(values, expected):
    assert column(values) == expected


def test_one_value_is_an_input_two_are_one_and_three_are_three():
    for count in (1, 2, 3, 5):
        values = [f"v{number}" for number in range(count)] * 3
        found = column(values).encoded(np.array(values), "x")
        assert found.shape == (3 * count, 1 if count < 3 else count)
        if count > 2:
            np.testing.assert_array_equal(found.sum(axis=1), 1.0)
    assert column(["u", "v"] * 3).input_names == ("colour=v",)


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        (["u", None, "v"], BadRowError, "column 'colour' of x must have a value.*None in row 1"),
        (["u", "v", " "], BadRowError, "received ' ' in row 2"),
        (["u", "v", "NaN"], BadRowError, "received 'NaN' in row 2"),
        (pd.Categorical(["u", None, "v"]), BadRowError, "received nan in row 1"),
        (pd.array([True, None, False], "boolean"), BadRowError, "received <NA> in row 1"),
        (["u", 1.5, "v"], TypeError, "either text or numbers, received both: float, str"),
        (["u", True, "v"], TypeError, "received both: bool, str"),
        (
            ["1", "2", "1"],
            ValueError,
            "numbers that are written as text, such as '1'.*--categories",
        ),
        (["u", "v", "w"], ValueError, "3 different values in 3 rows.*--ignore"),
        ([f"v{n % 101}" for n in range(999)], ValueError, "101 different values.*at most 100"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_category_is_refused(values, error, words):
    with pytest.raises(error, match=words):
        column(pd.Series(values, dtype=object) if isinstance(values, list) else values)


def test_numbers_that_are_called_categories_are_categories():
    assert column(pd.Categorical(["1", "2"] * 3)).values == ("1", "2")
    many = [f"v{n}" for n in range(MOST_VALUES)] * 2
    assert len(column(many).values) == MOST_VALUES


def test_inputs_of_one_name_are_refused():
    frame = pd.DataFrame({"a=u": [1.0, 2.0] * 4, "a": ["t", "u"] * 4})
    with pytest.raises(ValueError, match="unique names, but two columns give 'a=u'"):
        learn_coding(frame, "x")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (
            with_text("colour", "bleu"),
            "column 'colour' of x must hold what it held in the fit, 'blue', 'green', 'naïve λ', "
            r"received 'bleu' in row 3\. Did you mean 'blue'\? Nothing was learned of it: ",
        ),
        (with_text("colour", None), "column 'colour' of x must have a value in every row"),
        (with_text("ok", 2), "column 'ok' .*'False', 'True', received 2 in row 3"),
        (with_text("ok", "maybe"), "received 'maybe' in row 3"),
        (with_text("kind", "neither"), "'left', 'right', received 'neither' in row 3"),
        (with_text("mix", np.inf), r"x must be finite.*in row 3, column 6 \('mix'\)"),
    ],
)  # fmt: skip
def test_values_that_the_fit_has_not_seen_are_refused_with_their_place(frame, words):
    with pytest.raises(BadRowError, match=words):
        as_inputs(frame, "x", 7, CODING)


def test_text_in_a_column_of_numbers_is_refused_by_its_name():
    with pytest.raises(TypeError, match="column 'mass' of x must hold real numbers"):
        CODING.encoded(with_text("mass", "heavy"), "x")


def test_flags_in_every_disguise():
    expected, texts = CODING.encoded(FRAME, "x"), FRAME["ok"].astype(str)
    disguises = (FRAME["ok"].astype(kind) for kind in (int, float, object))
    for flags in (*disguises, texts, texts.str.upper()):
        np.testing.assert_array_equal(CODING.encoded(FRAME.assign(ok=flags), "x"), expected)


def test_whole_numbers_are_the_names_that_they_were():
    years = pd.Categorical([2016, 2017, 2018] * 3)
    coding = learn_coding(pd.DataFrame({"year": years}), "x")
    expected = coding.encoded(pd.DataFrame({"year": years}), "x")
    for entries in ([2016, 2017, 2018], [2016.0, 2017.0, 2018.0], ["2016", " 2017", "2018"]):
        found = coding.encoded(pd.DataFrame({"year": entries * 3}), "x")
        np.testing.assert_array_equal(found, expected)


def test_a_gap_changes_the_spelling_of_whole_numbers_in_a_file_and_not_their_meaning(tmp_path):
    years = [2016, 2017, 2018] * 3
    for gap in ([], [None]):  # with a gap, pandas writes 2016.0
        pd.DataFrame({"year": [*years, *gap]}).to_csv(tmp_path / f"{len(gap)}.csv", index=False)
    whole, with_gap = (
        read_table(tmp_path / f"{count}.csv", categories={"year"}, gaps=True) for count in (0, 1)
    )
    frame = pd.DataFrame({"year": years})
    for fitted in (whole, with_gap, frame.astype("category")):
        coding = learn_coding(fitted, "x", "indicator")
        expected = coding.encoded(fitted, "x")[:9]
        for x in (whole, frame):
            np.testing.assert_array_equal(coding.encoded(x, "x"), expected)
    assert learn_coding(with_gap, "x", "indicator").columns[0].values[:2] == ("2016.0", "2017.0")
    both = Column("release", TEXTS, ("1", "1.0"))
    entries = np.array(["1", "1.0", "1"], dtype=object)
    np.testing.assert_array_equal(both.encoded(entries, "x")[:, 0], [0, 1, 0])


def test_a_nameless_array_holds_coded_numbers():
    numbers = CODING.encoded(FRAME, "x")
    for x in (numbers, numbers.tolist(), numbers.astype(object)):
        found = as_inputs(x, "x", 7, CODING)
        np.testing.assert_array_equal(found.values, numbers)
        assert found.names == INPUTS
    for x in (FRAME.to_numpy(), FRAME[["mass"]].to_numpy(), numbers.astype(str)):
        with pytest.raises(ValueError, match=r"data frame with the columns \['mass', 'colour'.*or "
                           r"the 7 numbers that they become, \['mass', 'colour=blue'"):  # fmt: skip
            as_inputs(x, "x", 7, CODING)


def test_all_values_of_a_column_have_one_scale():
    frame = FRAME.assign(colour=np.where(FRAME.index < 2, "green", FRAME["colour"]))
    coding = learn_coding(frame, "x")
    values = coding.encoded(frame, "x")
    plain = fit_pipeline(("standardize",), values, "x")
    found = coding.even(plain)
    (own,), (scale,) = ([np.array(step.scale) for step in p.steps] for p in (plain, found))
    np.testing.assert_allclose(scale[1:4], np.sqrt(np.mean(own[1:4] ** 2)), rtol=1e-15)
    assert np.delete(scale, [1, 2, 3]).tolist() == np.delete(own, [1, 2, 3]).tolist()
    assert found.steps[0].mean == plain.steps[0].mean
    # Of values that are as frequent as each other it is their own.
    plain = fit_pipeline(("standardize",), CODING.encoded(FRAME, "x"), "x")
    np.testing.assert_allclose(CODING.even(plain).steps[0].scale, plain.steps[0].scale, rtol=1e-12)
    assert CODING.even(fit_pipeline((), values, "x")).steps == ()


class Imitation:
    """A frame as polars has them: named columns, types of its own, no pandas."""

    def __init__(self, columns):
        self._columns, self.columns = columns, list(columns)
        self.dtypes = ["Categorical" if n == "kind" else "String" for n in columns]

    def __getitem__(self, names):
        return Imitation({name: self._columns[name] for name in names})

    def __array__(self, dtype=None, copy=None):
        return np.array(list(zip(*self._columns.values())), dtype=object)


def test_anything_that_passes_for_a_frame_is_coded(monkeypatch):
    expected = CODING.encoded(FRAME, "x")
    frame = Imitation({name: FRAME[name].tolist() for name in FRAME})
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert learn_coding(frame, "x") == CODING
    np.testing.assert_array_equal(CODING.encoded(frame, "x"), expected)


texts = st.text(min_size=1, max_size=6).filter(
    lambda text: text == text.strip() and not text.casefold().startswith(("nan", "true", "false"))
)


@st.composite
def frames(draw):
    """Frames with a column of text that differs in no way from what users may have."""
    values = draw(st.lists(texts, min_size=1, max_size=6, unique=True))
    entries = draw(st.permutations(values * 2))
    name = draw(st.text(max_size=5))
    return pd.DataFrame({name: pd.Categorical(entries), f"{name}!": np.arange(len(entries)) / 3})


@settings(max_examples=15, deadline=None)
@given(frames())
def test_a_code_comes_back_out_of_json_and_gives_the_same_numbers(frame):
    coding = learn_coding(frame, "x")
    found = Coding.from_json(coding.to_json())
    assert found == coding
    inputs = found.encoded(frame, "x")
    np.testing.assert_array_equal(inputs, coding.encoded(frame, "x"))
    # The code tells all values apart.
    name, values = frame.columns[0], coding.columns[0].values
    assert len(np.unique(inputs[:, :-1], axis=0)) == len(values) == frame[name].nunique()


GOOD = CODING.to_json()


def with_entry(**changes):
    return [GOOD[0], GOOD[1] | changes, *GOOD[2:]]


@pytest.mark.parametrize(
    "entries",
    [
        "colour", {}, [], [GOOD[0]], ["mass"], [GOOD[0], {"name": "colour", "kind": "texts"}],
        with_entry(more=1), with_entry(name=3), with_entry(name="mass"), with_entry(kind="dates"),
        with_entry(kind=["texts"]), with_entry(kind="numbers"), with_entry(kind="flags"),
        with_entry(values=[]), with_entry(values=None), with_entry(values="abc"),
        with_entry(values=["a", 1]), with_entry(values=["a", ["b"]]), with_entry(values=["a", "a"]),
        with_entry(values=["a", ""]), with_entry(values=["a", "b "]),
        with_entry(values=[f"v{n}" for n in range(MOST_VALUES + 1)]),
        [*with_entry(name="x", values=["a", "b", "c"]), {"name": "x=a", "kind": "numbers", "values": []}],
    ],
    ids=lambda value: str(value)[-60:],
)  # fmt: skip
def test_a_code_that_nothing_can_have_written_is_refused(entries):
    with pytest.raises((TypeError, ValueError), match="coding must"):
        Coding.from_json(entries)
