"""Expressions of SLHA places and named inputs: `log10(abs(MASS:1000022))`, `N13**2 - N14**2`.

An expression is parsed into a tree of the operations below and evaluated on arrays by NumPy. It is
never run as Python code. So an expression from an untrusted file cannot read files, call other
functions or loop forever.

    sum     = product { ("+" | "-") product }
    product = signed { ("*" | "/") signed }
    signed  = ("+" | "-") signed | power
    power   = atom [ "**" signed ]
    atom    = number | place | name | function "(" sum { "," sum } ")" | "(" sum ")"

An SLHA place is the name of a block followed by integers, separated by colons: `NMIX:1:3`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from tfbnn.system.arrays import Array
from tfbnn.system.words import did_you_mean

# Limits of one expression: more than physical formulas need, and still quick to evaluate.
_MOST_CHARACTERS, _MOST_TOKENS, _MOST_DEPTH = 2000, 400, 40

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<place>[A-Za-z]\w*(?::-?\d{1,18})+(?![\w:]))"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\*\*|[-+*/(),]))",
    re.ASCII,
)
_ONE: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "log10": np.log10,
    "sign": np.sign,
    "sqrt": np.sqrt,
}
_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
    # Functions of any number of arguments.
    "max": np.maximum,
    "min": np.minimum,
    "sum": np.add,
}
FUNCTIONS = (*_ONE, "max", "min", "sum")
# t -> a where t = function(a).
_INVERSES: dict[str, Callable[[Array], Array]] = {
    "log": np.exp,
    "log10": lambda t: 10.0**t,
}
# (t, b) -> a where t = a o b. For sums and products, the unknown may also be on the right.
_SOLUTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.subtract,
    "-": np.add,
    "*": np.divide,
    "/": np.multiply,
}


class _Node(NamedTuple):
    """Node of the tree: an operation on other nodes, or a number or variable without parts."""

    operation: str
    parts: tuple["_Node", ...] = ()
    number: float | None = None


@dataclass(frozen=True)
class Expression:
    """Parsed expression. Two expressions are equal if their texts are.

    Attributes:
        text: Text of the expression, in one line.
        names: Variables in the order of the text: names of inputs, and SLHA places such as
            `MASS:1000022`, with blocks in capitals.

    Raises:
        TypeError, ValueError: For anything but text of the grammar above.
    """

    text: str
    names: tuple[str, ...] = field(init=False, compare=False)
    _root: _Node = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"An expression must be text, received {self.text!r:.200}.")
        # In one line, because it is written in the headers of tables.
        object.__setattr__(self, "text", " ".join(self.text.split()))
        root = _Parser(self.text).parse()
        object.__setattr__(self, "_root", root)
        object.__setattr__(self, "names", tuple(dict.fromkeys(_variables(root))))

    def __call__(self, values: Mapping[str, Any]) -> Array:
        """Evaluate the expression at values of its variables, numbers or arrays [N].

        Returns:
            Array [N]; NaN or inf where the expression is not defined.
        """
        with np.errstate(all="ignore"):
            return np.asarray(_value(self._root, values), dtype=np.float64)

    def solve(self, name: str, value: Array, values: Mapping[str, Any]) -> Array:
        """Solve for one variable, given the value of the expression.

        Args:
            name: A variable that occurs once in the expression, inside invertible operations only:
                `log`, `log10`, either side of `+` and `*`, left side of `-` and `/`.
            value: Value of the expression, an array that broadcasts with the variables.
            values: Values of the other variables.

        Raises:
            ValueError: For an expression that cannot be solved for the variable.
        """
        node, found = self._root, value
        with np.errstate(all="ignore"):
            while node != _Node(name):
                held = [name in _variables(part) for part in node.parts]
                if sum(held) != 1:
                    raise ValueError(
                        f"{self.text!r} cannot be solved for {name}, which must occur in it once."
                    )
                if node.operation in _INVERSES:
                    found, node = _INVERSES[node.operation](found), node.parts[0]
                    continue
                if node.operation not in (_SOLUTIONS if held[0] else "+*"):
                    raise ValueError(
                        f"{self.text!r} cannot be solved for {name}: {node.operation} has no inverse here. Use "
                        f"log10(X), X / Y and the like, with {name} on the left."
                    )
                solve = _SOLUTIONS[node.operation]
                found = solve(found, _value(node.parts[held[0]], values))
                node = node.parts[not held[0]]
        return found


def _value(node: _Node, values: Mapping[str, Any]) -> Any:
    if not node.parts:
        return values[node.operation] if node.number is None else np.float64(node.number)
    parts = [_value(part, values) for part in node.parts]
    if node.operation in _ONE:
        return _ONE[node.operation](*parts)
    return reduce(_TWO[node.operation], parts)


def _variables(node: _Node) -> Iterator[str]:
    if not node.parts and node.number is None:
        yield node.operation
    for part in node.parts:
        yield from _variables(part)


class _Parser:
    """Recursive-descent parser of one expression."""

    def __init__(self, text: str) -> None:
        self._text, self._depth = text, 0
        if len(text) > _MOST_CHARACTERS:
            raise ValueError(
                f"An expression may have {_MOST_CHARACTERS} characters, received {len(text)}. Split it "
                "into named parts."
            )
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._refusal(f"cannot read {text[position:].strip()[:20]!r}")
            if len(self._tokens) == _MOST_TOKENS:
                raise self._refusal(f"it has more than {_MOST_TOKENS} parts")
            self._tokens.append((match.lastgroup or "", match.group().strip()))
            position = match.end()
        self._tokens.append(("end", ""))
        self._tokens.reverse()

    def parse(self) -> _Node:
        """Parse the whole text and return its tree."""
        root = self._sum()
        if self._tokens[-1][0] != "end":
            raise self._refusal(f"cannot go on at {self._tokens[-1][1]!r}")
        return root

    def _refusal(self, reason: str) -> ValueError:
        return ValueError(
            f"{self._text!r:.200} is no expression: {reason}. Known are + - * / **, numbers, places such as "
            f"MASS:1000022, names, and {', '.join(FUNCTIONS)}."
        )

    def _takes(self, *signs: str) -> str:
        """Consume and return the next token if it is one of these signs; otherwise return ""."""
        kind, text = self._tokens[-1]
        if kind == "sign" and text in signs:
            self._tokens.pop()
            return text
        return ""

    def _sum(self) -> _Node:
        node = self._product()
        while sign := self._takes("+", "-"):
            node = _Node(sign, (node, self._product()))
        return node

    def _product(self) -> _Node:
        node = self._signed()
        while sign := self._takes("*", "/"):
            node = _Node(sign, (node, self._signed()))
        return node

    def _signed(self) -> _Node:
        # Every level of nesting, by brackets or exponents, passes through here.
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise self._refusal(f"it is nested more than {_MOST_DEPTH} deep")
        negative = False
        while sign := self._takes("+", "-"):
            negative ^= sign == "-"
        node = self._atom()
        if self._takes("**"):
            node = _Node("**", (node, self._signed()))
        self._depth -= 1
        return _Node("-", (_Node("", number=0.0), node)) if negative else node

    def _atom(self) -> _Node:
        kind, text = self._tokens.pop()
        if kind == "number":
            number = float(text)
            if np.isinf(number):
                raise self._refusal(f"{text[:20]} is too large")
            return _Node("", number=number)
        if kind == "place":
            return _Node(text.upper())
        if kind == "name":
            return self._function(text) if self._takes("(") else _Node(text)
        if (kind, text) != ("sign", "("):
            raise self._refusal(f"cannot go on at {text!r}" if text else "it ends too early")
        node = self._sum()
        self._close()
        return node

    def _function(self, name: str) -> _Node:
        if name not in FUNCTIONS:
            raise self._refusal(f"unknown function {name!r:.80}.{did_you_mean(name, FUNCTIONS)}")
        parts = [self._sum()]
        while self._takes(","):
            parts.append(self._sum())
        self._close()
        if name in _ONE and len(parts) > 1:
            raise self._refusal(f"{name} takes one argument, received {len(parts)}")
        return _Node(name, tuple(parts))

    def _close(self) -> None:
        if not self._takes(")"):
            raise self._refusal("a ) is missing")
