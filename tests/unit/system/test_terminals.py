"""Standard streams that are closed, narrow or a terminal."""

import io
import sys

import pytest

from tfbnn.system.terminals import data_output, plain_standard_output


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_what_is_printed_is_plain(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with plain_standard_output():
        print("a\x1b[31mb", "λ")
    assert stream.getvalue() == "a\\x1b[31mb λ\n" and sys.stdout is stream


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("ascii", rb"caf\xe9 \u03b1"), ("latin-1", b"caf\xe9 \\u03b1"), ("utf-8", "café α".encode())],
)
def test_no_character_is_too_much_for_an_encoding(monkeypatch, encoding, expected):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    with plain_standard_output():
        print("café α", end="", flush=True)
    assert stream.buffer.getvalue() == expected and stream.errors == "strict"


def test_data_are_as_they_are_except_on_a_terminal(monkeypatch):
    for stream, expected in ((io.StringIO(), "\x1b"), (Terminal(), r"\x1b")):
        monkeypatch.setattr(sys, "stdout", stream)
        with plain_standard_output():
            data_output().write("\x1b")
        assert stream.getvalue() == expected
