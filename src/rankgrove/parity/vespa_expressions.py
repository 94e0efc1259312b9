"""Vespa's ranking expressions: arithmetic, ``if`` and a few functions, over documents at once.

Everything is double, from left to right, as content nodes compute it. Read here are rank profiles
without tensors: their functions and the expression of the first phase.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rankgrove.errors import ModelFileError

Values = dict[str, np.ndarray]
Node = Callable[[Values], np.ndarray]

_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "isNan": lambda x: np.isnan(x).astype(np.float64),
    "relu": lambda x: np.where(x < 0.0, 0.0, x),  # std::max(x, 0.0)
    "tanh": np.tanh,
    "exp": np.exp,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-1.0 * x)),
}
_COMPARISONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_@][\w@$]*)|(?P<symbol><=|>=|==|[-+*/<>!(),.\[\]]))"
)
_NAME = re.compile(r"\s*(?:function|macro)\s+(\w+)\s*\(\s*\)\s*\{|\s*(first-phase)\s*\{")
_EXPRESSION = re.compile(r"\s*expression\s*(:|\{)")


@dataclass(frozen=True)
class VespaProfile:
    """A rank profile.

    Attributes
    ----------
    features : rank features that its expressions read, in the order of the first use of each
    functions : its functions, in the order of the file
    first_phase : the expression that scores
    """

    features: tuple[str, ...]
    functions: tuple[tuple[str, Node], ...]
    first_phase: Node

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Return the scores of documents; NaN where a document lacks a feature."""
        known: Values = dict(zip(self.features, np.array(values, np.float64).T, strict=True))
        known[""] = np.zeros(len(values))
        with np.errstate(all="ignore"):
            for name, expression in self.functions:
                known[name] = expression(known)
            return self.first_phase(known)


def read_profile(text: str) -> VespaProfile:
    """Parse a rank profile; a function may use the functions above it."""
    features: dict[str, None] = {}
    functions: dict[str, Node] = {}
    first_phase: Node | None = None
    at = 0
    while match := _search(_NAME, text, at):
        start = _search(_EXPRESSION, text, match.end())
        if start is None:
            raise ModelFileError("a function of the rank profile has no expression.")
        end = text.find("}" if start[1] == "{" else "\n", start.end())
        if end < 0:
            raise ModelFileError("the rank profile ends within an expression.")
        try:
            node = _Parser(text[start.end() : end], functions, features).whole()
        except RecursionError:
            raise ModelFileError(
                "an expression of the rank profile is nested too deeply."
            ) from None
        if match[2]:
            first_phase = node
        else:
            functions[match[1]] = node
        at = end
    if first_phase is None:
        raise ModelFileError("the rank profile has no first phase.")
    return VespaProfile(tuple(features), tuple(functions.items()), first_phase)


def _search(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    return re.compile(r"^" + pattern.pattern, re.MULTILINE).search(text, at)


class _Token(NamedTuple):
    kind: str | None
    text: str


@dataclass
class _Parser:
    """Recursive descent over one expression."""

    text: str
    functions: dict[str, Node]
    features: dict[str, None]
    at: int = 0
    tokens: list[_Token] = field(init=False)

    def __post_init__(self) -> None:
        self.tokens, place = [], 0
        text = self.text.rstrip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                raise ModelFileError(f"Vespa cannot parse {text[place : place + 20]!r}.")
            self.tokens.append(_Token(match.lastgroup, match[match.lastgroup or 0]))
            place = match.end()
        self.tokens.append(_Token(None, ""))

    def whole(self) -> Node:
        node = self._comparison()
        if self._peek().kind is not None:
            raise ModelFileError(f"Vespa does not expect {self._peek().text!r} in an expression.")
        return node

    def _peek(self) -> _Token:
        return self.tokens[self.at]

    def _take(self, text: str | None = None) -> str:
        token = self.tokens[self.at]
        if text is not None and token.text != text:
            raise ModelFileError(f"Vespa expects {text!r} in an expression, not {token.text!r}.")
        self.at += 1
        return token.text

    def _comparison(self) -> Node:
        left = self._sum()
        sign = self._peek().text
        if sign not in _COMPARISONS:
            return left
        self._take()
        right, compare = self._sum(), _COMPARISONS[sign]
        return lambda known: compare(left(known), right(known)).astype(np.float64)

    def _sum(self) -> Node:
        terms = [(1.0, self._product())]
        while self._peek().text in ("+", "-"):
            sign = 1.0 if self._take() == "+" else -1.0
            terms.append((sign, self._product()))

        def total(known: Values) -> np.ndarray:
            value = terms[0][1](known)
            for sign, term in terms[1:]:
                value = value + term(known) if sign > 0 else value - term(known)
            return value

        return total if len(terms) > 1 else terms[0][1]

    def _product(self) -> Node:
        node = self._value()
        while self._peek().text in ("*", "/"):
            sign, left, right = self._take(), node, self._value()
            node = _times(left, right) if sign == "*" else _over(left, right)
        return node

    def _value(self) -> Node:
        kind, text = self._peek()
        if kind == "number":
            number = float(self._take())
            return lambda known: np.full(known[""].shape, number)
        self._take()
        if text == "-":
            inner = self._value()
            return lambda known: -inner(known)
        if text == "!":
            inner = self._value()
            return lambda known: (inner(known) == 0.0).astype(np.float64)
        if text == "(":
            inner = self._comparison()
            self._take(")")
            return inner
        if kind != "name":
            raise ModelFileError(f"Vespa does not expect {text!r} in an expression.")
        if text == "if":
            return self._if()
        if text in _FUNCTIONS and self._peek().text == "(":
            self._take("(")
            inner, function = self._comparison(), _FUNCTIONS[text]
            self._take(")")
            return lambda known: function(inner(known))
        return self._reference(text)

    def _if(self) -> Node:
        self._take("(")
        condition = self._comparison()
        self._take(",")
        true = self._comparison()
        self._take(",")
        false = self._comparison()
        self._take(")")
        return lambda known: np.where(condition(known) != 0.0, true(known), false(known))

    def _reference(self, name: str) -> Node:
        """Read a function of the profile, or a feature: name, arguments in brackets, output."""
        if self._peek().text == "(":
            depth = 0
            while True:
                token = self._take()
                depth += (token == "(") - (token == ")")
                name += token
                if depth == 0:
                    break
                if not token:
                    raise ModelFileError("a bracket in an expression is not closed.")
        while self._peek().text == ".":
            name += self._take() + self._take()
        name = name.removesuffix("()")
        if name not in self.functions:
            self.features.setdefault(name)
        return lambda known: known[name]


def _times(left: Node, right: Node) -> Node:
    return lambda known: left(known) * right(known)


def _over(left: Node, right: Node) -> Node:
    return lambda known: left(known) / right(known)
