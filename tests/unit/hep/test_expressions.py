"""Expressions: what they are worth, what can be solved, and what no text can make them do."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfbnn.hep.expressions import Expression

VALUES = {"a": 3.0, "b": -2.0, "MASS:1000022": -100.0, "NMIX:1:3": 0.5}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("1 + 2*3 - 4/8", 6.5), ("2**3**2", 512.0), ("-2**2", -4.0), ("2**-1", 0.5),
        ("- -a", 3.0), ("a - b - 1", 4.0), ("12/2/3", 2.0), ("(a + b)*2", 2.0),
        ("log10(abs(MASS:1000022))", 2.0), ("mass:1000022 + nmix:1:3", -99.5),
        ("exp(log(a))", 3.0), ("sqrt(a**2 + 16)", 5.0), ("sign(b)*max(a, b, 1)", -3.0),
        ("sum(1, 2, a)/min(2, a)", 3.0), (".5e1 + 1.E-1", 5.1),
    ],
)  # fmt: skip
def test_values(text, expected):
    assert Expression(text)(VALUES) == pytest.approx(expected, rel=1e-15)


def test_variables_in_order_of_the_text():
    assert Expression("b*mass:2 + a*b - NMIX:1:-3").names == ("b", "MASS:2", "a", "NMIX:1:-3")
    array = Expression("a**2 - b")({"a": np.array([1.0, 2.0]), "b": 1.0})
    np.testing.assert_array_equal(array, [0.0, 3.0])


TREES = st.recursive(
    st.sampled_from(["1.5", "2", "a", "b", "NMIX:1:3"]),
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from(["+", "-", "*", "/"]), part).map(
            lambda three: f"({three[0]} {three[1]} {three[2]})"
        ),
        st.tuples(st.sampled_from(["abs", "exp", "sqrt"]), part).map(
            lambda two: f"{two[0]}({two[1]})"
        ),
    ),
    max_leaves=12,
)


@given(TREES)
def test_values_are_those_of_python(text):
    names = {"abs": np.abs, "exp": np.exp, "sqrt": np.sqrt, "a": np.float64(3), "b": np.float64(-2)}
    # Numbers of NumPy, which divides by zero.
    text_of = {"NMIX:1:3": "np.float64(0.5)", "1.5": "np.float64(1.5)", "2": "np.float64(2)"}
    python = re.sub(r"NMIX:1:3|1\.5|2", lambda found: text_of[found[0]], text)
    with np.errstate(all="ignore"):
        expected = eval(python, names | {"np": np})
    np.testing.assert_allclose(Expression(text)(VALUES), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "text", ["s", "log10(s)", "log(s / a)", "2*log10(s) + 1", "(s - a)/MASS:1000022", "a + s*b - 1"]
)
def test_solutions_undo_expressions(text):
    expression, truth = Expression(text), np.array([0.5, 2.0, 40.0])
    value = expression(VALUES | {"s": truth})
    np.testing.assert_allclose(expression.solve("s", value, VALUES), truth, rtol=1e-12)


@pytest.mark.parametrize(
    "text, message",
    [
        ("s + s", "must occur in it once"),
        ("a", "once"),
        ("abs(s)", "abs has no inverse"),
        ("a / s", "/ has no inverse"),
    ],
)
def test_what_cannot_be_solved_is_said(text, message):
    with pytest.raises(ValueError, match=message):
        Expression(text).solve("s", np.ones(1), VALUES)


# What somebody could put into a stranger's file: Python, its ways around, and work without end.
# fmt: off
ATTACKS = [
    "__import__('os').system('id')", "open('/etc/passwd')", "open(a)", "eval(a)", "exec(a)",
    "compile(a)", "globals()", "locals()", "vars()", "dir()", "getattr(a, b)", "a.__class__",
    "a.__class__.__mro__", "().__class__.__bases__", "[].append(1)", "[x for x in a]", "{1: 2}",
    "lambda: 1", "a if b else 1", "a and b", "not a", "a == b", "a < b", "a := 1", "a = 1",
    "a; b", "a, b", "a\\b", "a % b", "a // b", "a @ b", "a | b", "a & b", "a ^ b", "~a", "a << 9",
    "'text'", '"text"', "f'{a}'", "`id`", "$(id)", "${a}", "{{a}}", "while 1: pass",
    "for i in a: i", "import os", "raise a", "yield a", "await a", "0x10", "1_000", "1j", "1e999",
    "9" * 400, "np.exp(1)", "exp.__call__(1)", "exp(1)(2)", "max()", "abs(1, 2)", "exp",
    "log10 log10(1)", "MASS:", "MASS:x", "MASS:1:2:", "MASS:" + "9" * 30, "(" * 3000 + ")" * 3000,
    "(" * 50 + "1" + ")" * 50, "abs(" * 50 + "1" + ")" * 50, "2**" * 60 + "2",
    "+".join("1" * 500), "1 " * 900, "e" * 2001, "", " ", "\x00", "a\x00", "é + 1", "１ + 1",
    "../../etc/passwd", "%s%s%s",
]
# fmt: on


@pytest.mark.parametrize("text", ATTACKS)
def test_attacks_are_refused_or_are_names_of_nothing(text):
    try:
        expression = Expression(text)
    except ValueError as error:
        assert len(str(error)) < 600 and "Error" not in str(error)
    else:  # a variable, which is nothing but a key of what it is given
        assert expression.names == (text.strip(),)
        with pytest.raises(KeyError):
            expression({})


@pytest.mark.parametrize("text", ["9**9**9**9**9**9", "exp(exp(exp(9)))", "log(-1)", "1/0"])
def test_too_large_or_undefined_is_no_number_and_no_error(text):
    assert not math.isfinite(Expression(text)({}))


def test_a_text_is_kept_in_one_line():
    assert Expression(" a\n + b ").text == "a + b"


def test_anything_but_text_is_refused():
    with pytest.raises(TypeError, match="must be text"):
        Expression(3)
