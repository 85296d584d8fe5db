"""Cells of a table are numbers in plain notation; labels are numbers where none can merge."""

import numpy as np
import pytest

from tfbnn.data.numbers import is_number, label_numbers
from tfbnn.data.validation import as_matrix


@pytest.mark.parametrize("text", ["0", "-1", "+1.5", ".5", "1.", " 2 ", "1e-3", "1.0E+02", "007"])
def test_plain_notation_is_a_number(text):
    assert is_number(text)


@pytest.mark.parametrize(
    "text", ["", " ", "nan", "inf", "1e999", "1_000", "0_0", "12_5", "１２", "٣", "1,5", "0x1", "a"]
)
def test_other_text_is_not(text):
    assert not is_number(text)


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        ("10,2,10,-3", [10, 2, 10, -3]),
        ("1.0,2.0", [1, 2]),
        ("9007199254740993,9007199254740992", [9007199254740993, 9007199254740992]),
        ("0,18446744073709551615", [0, 18446744073709551615]),
        ("0.5,-0.5", [0.5, -0.5]),
    ],
)
def test_labels_that_are_all_numbers_are_exact(texts, numbers):
    assert label_numbers(texts.split(",")).tolist() == numbers


@pytest.mark.parametrize(
    "texts",
    [
        "10,1_0,1_1", "01,02,1", "100,1e2,5e1", "007,010,042", "1,1.0", "0.50,0.5", "-0,0",
        "-0.0,1", "+1,2", "1,x", "１,2", "18446744073709551615,-1", "18446744073709551616",
        "1" * 5000,
    ],
)  # fmt: skip
def test_labels_stay_text_where_numbers_would_merge_or_rename_them(texts):
    assert label_numbers(texts.split(",")) is None


@pytest.mark.parametrize("seed", range(20))
def test_different_texts_are_different_labels(seed):
    """Whatever near-numbers are thrown together, as many labels come out as there are texts."""
    rng = np.random.default_rng(seed)
    pieces = ["0", "1", "10", ".", "-", "+", "e", "_", "9007199254740993"]
    texts = ["".join(rng.choice(pieces, rng.integers(1, 4))) for _ in range(rng.integers(1, 6))]
    numbers = label_numbers(texts)
    assert numbers is None or len(set(numbers.tolist())) == len(set(texts))


def test_advice_fits_what_is_wrong():
    with pytest.raises(ValueError, match="Drop or repair these rows") as raised:
        as_matrix([[1.0, np.inf]], "x")
    assert "indicator" not in str(raised.value)
    with pytest.raises(ValueError, match="missing='indicator'"):
        as_matrix([[1.0, np.nan]], "x")
