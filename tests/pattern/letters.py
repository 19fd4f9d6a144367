"""A small language for tests: `found("A B+ C", "xabbc")` gives "A1 B2 B3 C4".

Rows are letters, one a microsecond; a variable takes the rows of its letter, if no other condition
is given. A match is its variables, each with the number of the row that it took; matches are
separated by commas, an empty match is "()" with its start row, an unmatched row is "-" with it.
"""

from __future__ import annotations

import re
from typing import Any

from headrace.core.pattern import (
    Absent,
    Choice,
    Classifier,
    End,
    Exclude,
    Expression,
    FunctionCall,
    Literal,
    MatchNumber,
    Node,
    Pattern,
    Permute,
    Repeat,
    RowNavigation,
    RowsPerMatch,
    Selection,
    Sequence,
    Skip,
    Start,
    Value,
    Variable,
    variables,
)
from headrace.pattern.check import check
from headrace.pattern.matcher import Matcher

TOKEN = re.compile(r"PERMUTE|NOT|[A-Z]|\{-|-\}|\{\d*,?\d*\}|[()|,*+?^$]")
BOUNDS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def node(text: str) -> Node:
    """Read a pattern."""
    return _choice(TOKEN.findall(text))


def _choice(tokens: list[str]) -> Node:
    parts = [_sequence(tokens)]
    while tokens and tokens[0] == "|":
        tokens.pop(0)
        parts.append(_sequence(tokens))
    return parts[0] if len(parts) == 1 else Choice(tuple(parts))


def _sequence(tokens: list[str]) -> Node:
    parts = []
    while tokens and tokens[0] not in ("|", ")", ",", "-}"):
        parts.append(_quantified(tokens))
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts))


def _quantified(tokens: list[str]) -> Node:
    part = _primary(tokens)
    while tokens and (tokens[0] in BOUNDS or re.match(r"\{[\d,]", tokens[0])):
        token = tokens.pop(0)
        least, most = BOUNDS.get(token) or _bounds(token)
        greedy = not (tokens and tokens[0] == "?")
        if not greedy:
            tokens.pop(0)
        part = Repeat(part, least, most, greedy)
    return part


def _bounds(token: str) -> tuple[int, int | None]:
    least, comma, most = token.strip("{}").partition(",")
    return int(least or 0), int(most or least) if most or not comma else None


def _primary(tokens: list[str]) -> Node:
    token = tokens.pop(0)
    if token == "NOT":
        return Absent(tokens.pop(0))
    if token in "^$":
        return Start() if token == "^" else End()
    if token == "PERMUTE":
        parts = []
        while tokens.pop(0) != ")":
            parts.append(_choice(tokens))
        return Permute(tuple(parts))
    if token in ("(", "{-"):
        part = _choice(tokens)
        tokens.pop(0)
        return Exclude(part) if token == "{-" else part
    return Variable(token)


def letter(name: str) -> Expression:
    return FunctionCall("=", (Value("letter", RowNavigation()), Literal(name.lower())))


def pattern(
    text: str,
    rows: RowsPerMatch = RowsPerMatch.SHOW_EMPTY,
    skip: Skip | None = None,
    selection: Selection = Selection.STRICT,
    within: int | None = None,
    measures: dict[str, Expression] | None = None,
    subsets: dict[str, str] | None = None,
    **conditions: Expression | None,
) -> Pattern:
    """A pattern over letters; a condition of None takes any row."""
    read = node(text)
    defined = {name: letter(name) for name in sorted(variables(read))} | conditions
    if skip is None:
        skip = Skip("to next row") if selection is Selection.ANY else Skip()
    return Pattern(
        read,
        ("letter", "x"),
        tuple((name, condition) for name, condition in defined.items() if condition is not None),
        tuple((measures or {}).items()),
        tuple((name, tuple(members)) for name, members in (subsets or {}).items()),
        rows,
        skip,
        selection,
        within,
    )


def lettered(letters: str, numbers: list[Any] | None = None) -> list[Any]:
    """A row for each letter; `x` is its number, or the one given."""
    xs = list(range(len(letters))) if numbers is None else numbers
    return [(i, (0, i), (char, x)) for i, (char, x) in enumerate(zip(letters, xs, strict=True))]


def found(text: str, letters: str, mark: int | None = None, **more: Any) -> str:
    """The matches in the letters; with a mark, the input goes on after them."""
    measures = {"number": MatchNumber(), "variable": Classifier(RowNavigation())}
    searched = pattern(text, measures=measures, **more)
    check(searched, closed=True)
    search = Matcher(searched).begin()
    search.take(lettered(letters))
    matches: dict[Any, list[str]] = {}
    for i, given in enumerate(search.matches(mark, ended=mark is None)):
        number, variable = given.measures
        name = variable or ("-" if number is None else "()")
        matches.setdefault(number or f"unmatched {i}", []).append(f"{name}{given.row[1][1]}")
    return ", ".join(" ".join(match) for match in matches.values())


def measured(expression: Expression, text: str, letters: str, **more: Any) -> list[Any]:
    """A measure's values, one for each match, or for each row if `rows` says so."""
    numbers = more.pop("numbers", None)
    searched = pattern(text, **{"rows": RowsPerMatch.ONE, "measures": {"it": expression}, **more})
    check(searched, closed=True)
    search = Matcher(searched).begin()
    search.take(lettered(letters, numbers))
    return [given.measures[0] for given in search.matches(None, ended=True)]
