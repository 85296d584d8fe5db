"""What may be shown on a terminal, and what somebody may have meant."""

import pytest

from tfbnn.system.words import did_you_mean, without_controls


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("naïve λ 質量 ✓", "naïve λ 質量 ✓"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\rb\x00\x7f", r"a\rb\x00\x7f"),
        ("mass\u202egniht", r"mass\u202egniht"),
        ("half \ud800", r"half \ud800"),
        ("λ\x1b[2J", r"λ\x1b[2J"),
        ("line\u2028line", r"line\u2028line"),
    ],
)
def test_controls_come_out_as_escapes(text, shown):
    assert without_controls(text) == shown


def test_a_near_word_is_suggested_and_no_other():
    assert did_you_mean("hcm", ["hmc", "nuts"]) == " Did you mean 'hmc'?"
    assert did_you_mean("gibbs", ["hmc", "nuts"]) == ""
