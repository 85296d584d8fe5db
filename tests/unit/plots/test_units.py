"""Names of columns in labels."""

from tfbnn.plots.canvas import plain


def test_labels_are_drawn_letter_by_letter():
    assert plain("a$b$") == r"a\$b\$"
    assert plain("_y") == " _y"
    assert plain("x" * 60) == "x" * 39 + "…"
    assert plain("a\x1b[2J\u202e") == r"'a\x1b[2J\u202e'"
