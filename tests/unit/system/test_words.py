"""Text that may be shown on a terminal, and words that somebody may have meant."""

import pytest

from tfbnn.system.words import did_you_mean, name_of, without_controls


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"), ("naïve λ 質量 ✓", "naïve λ 質量 ✓"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"), ("\x9b31m", r"\x9b31m"),
        ("a\rb\x00\x7f", r"a\rb\x00\x7f"), ("mass\u202egniht", r"mass\u202egniht"),
        ("half \ud800", r"half \ud800"), ("λ\x1b[2J", r"λ\x1b[2J"),
        ("line\u2028line", r"line\u2028line"),
    ],
)  # fmt: skip
def test_controls_come_out_as_escapes(text, shown):
    assert without_controls(text) == shown


def test_a_near_word_is_suggested_and_no_other():
    assert did_you_mean("hcm", ["hmc", "nuts"]) == " Did you mean 'hmc'?"
    assert did_you_mean("gibbs", ["hmc", "nuts"]) == ""
    # Capital letters count as small ones.
    assert did_you_mean("ReLU", ["relu", "tanh"]) == " Did you mean 'relu'?"
    assert did_you_mean("gaussian", ["Gaussian()", "StudentT()"]) == " Did you mean 'Gaussian()'?"


@pytest.mark.parametrize(
    ("value", "name"),
    [("hmc", "hmc"), (len, "len"), (dict, "dict"), (3.5, "float"), (None, "NoneType")],
)
def test_what_a_value_is_called(value, name):
    assert name_of(value) == name
