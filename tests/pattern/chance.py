"""Patterns and rows by chance: every kind of node, condition, measure and mode."""

from __future__ import annotations

from random import Random
from typing import Any

from headrace.core.errors import Unsupported
from headrace.core.pattern import (
    Absent,
    Choice,
    Classifier,
    End,
    Exclude,
    Expression,
    FunctionCall,
    Literal,
    MatchAggregate,
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
)
from headrace.pattern.check import check, variables

NAMES = "ABCD"
SUBSET = ("U", ("A", "B"))


def pattern_by(chance: Random) -> Pattern:
    """A pattern that can be kept; most that chance thinks of can."""
    while True:
        pattern = _anything(chance)
        try:
            check(pattern, closed=True)
        except Unsupported:
            continue
        return pattern


def rows_by(chance: Random) -> list[tuple[int, Any, tuple[Any, ...]]]:
    """Up to nine rows of a key; some at the same time, some far apart."""
    rows, time = [], 0
    for i in range(chance.randint(0, 9)):
        time += chance.choice([0, 1, 1, 2, 3])
        x = chance.choice([None, 0, 1, 2, 3])
        rows.append((time, (0, i), (chance.choice("abcd"), x)))
    return rows


def _anything(chance: Random) -> Pattern:
    node = _node(chance, chance.randint(1, 3))
    names = sorted(variables(node)) or ["A"]
    selection = chance.choice([Selection.STRICT, *Selection])
    subsets = (SUBSET,) if {"A", "B"} <= set(names) else ()
    asked = [*names, None, *(["U"] if subsets else [])]
    skip = chance.choice([Skip(), Skip("to next row"), *[_skip_to(chance, asked)] * 4])
    simple = chance.random() < 0.4
    conditions = tuple(
        (name, _condition(chance, asked, name, simple))
        for name in names
        if name in variables(node) and chance.random() < 0.9
    )
    return Pattern(
        node,
        ("c", "x"),
        conditions,
        tuple((f"m{i}", _measure(chance, asked)) for i in range(chance.randint(0, 3))),
        subsets,
        chance.choice([*RowsPerMatch]),
        Skip("to next row") if selection is Selection.ANY else skip,
        selection,
        chance.choice([2, 4, 8]) if chance.random() < 0.6 or selection is Selection.ANY else None,
    )


def _skip_to(chance: Random, asked: list[str | None]) -> Skip:
    name = chance.choice([name for name in asked if name is not None])
    return Skip(chance.choice(["to first", "to last"]), name)


def _node(chance: Random, depth: int) -> Node:
    if depth == 0 or chance.random() < 0.15:
        leaf = _leaf(chance)
        optional = isinstance(leaf, Variable) and chance.random() < 0.2
        return (
            Repeat(leaf, 0, chance.choice([1, None]), chance.random() < 0.7) if optional else leaf
        )
    inner = tuple(_node(chance, depth - 1) for _ in range(chance.randint(1, 3)))
    kind = chance.choices(
        ["sequence", "choice", "repeat", "permute", "exclude", "empty"], [8, 3, 5, 1, 1, 0.3]
    )[0]
    if kind == "sequence":
        return Sequence(inner)
    if kind == "choice":
        return Choice(inner)
    if kind == "permute":
        return Permute(inner)
    if kind == "exclude":
        return Exclude(inner[0])
    if kind == "empty":
        return Sequence(())
    least, most = chance.choice([(0, None), (1, None), (0, 1), (2, 2), (1, None), (1, 3), (0, 2)])
    return Repeat(inner[0], least, most, chance.random() < 0.7)


def _leaf(chance: Random) -> Node:
    kind = chance.choices(["variable", "absent", "start", "end"], [20, 6, 0.4, 0.4])[0]
    if kind == "variable":
        return Variable(chance.choice(NAMES))
    if kind == "absent":
        return Absent(chance.choice(NAMES))
    return Start() if kind == "start" else End()


def _condition(chance: Random, asked: list[str | None], name: str, simple: bool) -> Expression:
    own = Value("c", RowNavigation(chance.choice([None, name])))
    letter = FunctionCall("=", (own, Literal(name.lower())))
    other = FunctionCall("<>", (own, Literal(chance.choice("abcd"))))
    column = Value("x", RowNavigation())
    if simple:
        near = RowNavigation(chance.choice([None, name]), shift=chance.choice([-1, -1, -2, 0, 1]))
        compared = FunctionCall(chance.choice(["<", "<=", ">"]), (Value("x", near), column))
        return chance.choice([letter, letter, letter, other, compared])
    hard = FunctionCall(
        chance.choice(["<", "<=", ">", "="]), (column, _number(chance, asked, False))
    )
    few = FunctionCall(
        "<", (_aggregate(chance, asked, False, "count"), Literal(chance.randint(1, 3)))
    )
    before = Classifier(RowNavigation(chance.choice(asked), False, chance.choice([0, 0, 1]), -1))
    called = FunctionCall("=", (before, Literal(chance.choice(NAMES))))
    early = FunctionCall("<=", (MatchNumber(), Literal(1)))
    one = chance.choice(
        [letter, other, hard, hard, few, called, early, FunctionCall("is_null", (column,))]
    )
    return (
        FunctionCall("and", (chance.choice([letter, other]), one)) if chance.random() < 0.4 else one
    )


def _place(chance: Random, asked: list[str | None], final: bool) -> RowNavigation:
    shift = chance.choice([0, 0, 0, -1, -2, 1])
    offset = chance.choice([0, 0, 1])
    return RowNavigation(chance.choice(asked), chance.random() < 0.5, offset, shift, final)


def _number(chance: Random, asked: list[str | None], final: bool) -> Expression:
    if chance.random() < 0.6:
        return Value("x", _place(chance, asked, final))
    return _aggregate(chance, asked, final, chance.choice(["sum", "avg", "min", "max", "count"]))


def _aggregate(chance: Random, asked: list[str | None], final: bool, function: str) -> Expression:
    column = None if function == "count" and chance.random() < 0.5 else "x"
    distinct = column is not None and chance.random() < 0.2
    return MatchAggregate(function, column, chance.choice(asked), distinct, final)


def _measure(chance: Random, asked: list[str | None]) -> Expression:
    final = chance.random() < 0.3
    return chance.choice(
        [
            _number(chance, asked, final),
            FunctionCall("+", (_number(chance, asked, False), _number(chance, asked, final))),
            _aggregate(chance, asked, final, "collect_list"),
            Classifier(_place(chance, asked, final)),
            MatchNumber(),
        ]
    )
