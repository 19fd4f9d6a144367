"""A row pattern: the order of rows, and the conditions on them.

A pattern is a tree of nodes over variables, whose names are in upper case. A condition or a measure
is a tree of expressions whose leaves are values of single rows, counted from the rows that a
variable took, and aggregates over them. tests/pattern checks what the matcher makes of them.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class _Noun(msgspec.Struct, frozen=True, tag=True):
    """Patterns are kept in plans, so they are msgspec structs with a tag."""


# The pattern


class Variable(_Noun, frozen=True):
    name: str


class Sequence(_Noun, frozen=True):
    """All parts, one after the other; without parts, the empty pattern."""

    parts: tuple[Node, ...]


class Choice(_Noun, frozen=True):
    """One of the parts; the left one is preferred."""

    parts: tuple[Node, ...]


class Repeat(_Noun, frozen=True):
    part: Node
    least: int
    most: int | None  # None: without end
    greedy: bool = True


class Permute(_Noun, frozen=True):
    """All parts in any order; the order of writing is preferred."""

    parts: tuple[Node, ...]


class Exclude(_Noun, frozen=True):
    """Rows that match, but are not part of the output."""

    part: Node


class Absent(_Noun, frozen=True):
    """NOT: any rows that do not match the variable, as few as possible."""

    name: str


class Start(_Noun, frozen=True):
    """Before the first row of the key."""


class End(_Noun, frozen=True):
    """After the last row of the key."""


Node = Variable | Sequence | Choice | Repeat | Permute | Exclude | Absent | Start | End


def variables(node: Node) -> set[str]:
    """The names of all variables of a pattern, those of NOT too.

    >>> sorted(variables(Sequence((Variable("A"), Absent("B")))))
    ['A', 'B']
    """
    if isinstance(node, Variable | Absent):
        return {node.name}
    parts = getattr(node, "parts", None) or ((node.part,) if hasattr(node, "part") else ())
    return {name for part in parts for name in variables(part)}


class RowsPerMatch(StrEnum):
    """Which rows of a match are output."""

    ONE = "one row per match"
    SHOW_EMPTY = "all rows per match show empty matches"
    OMIT_EMPTY = "all rows per match omit empty matches"
    UNMATCHED = "all rows per match with unmatched rows"


class Selection(StrEnum):
    """Which rows may be skipped between those of a match."""

    STRICT = "strict"
    NEXT = "skip till next"
    ANY = "skip till any"


class Skip(msgspec.Struct, frozen=True):
    """Where the search continues after a match: past its last row, at the row after its first, or
    at the first or last row that a variable or subset took.
    """

    to: str = "past last row"  # or "to next row", "to first", "to last"
    name: str | None = None


# Conditions and measures


class RowNavigation(msgspec.Struct, frozen=True):
    """A row, relative to the match: `offset` rows after the first or before the last of those that
    a variable or subset took (None: any variable), and from there `shift` rows on or back in the
    key.
    """

    name: str | None = None
    first: bool = False
    offset: int = 0
    shift: int = 0
    final: bool = False  # counted in the whole match, not up to the current row


class Value(_Noun, frozen=True):
    """A column of one row."""

    column: str
    place: RowNavigation


class Classifier(_Noun, frozen=True):
    """The variable that took a row."""

    place: RowNavigation


class MatchNumber(_Noun, frozen=True):
    pass


class MatchId(_Noun, frozen=True):
    pass


CLASSIFIED = "classifier()"  # in place of a column: the variable that took the row


class MatchAggregate(_Noun, frozen=True, tag="Aggregate"):
    """`function` is count, sum, avg, min, max or collect_list; without a column, count counts
    rows.
    """

    function: str
    column: str | None
    name: str | None = None
    distinct: bool = False
    final: bool = False


class Literal(_Noun, frozen=True, tag="Constant"):
    value: bool | int | float | str | None


class FunctionCall(_Noun, frozen=True, tag="Call"):
    """An operator or function of headrace/pattern/evaluate.py."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Value | Classifier | MatchNumber | MatchId | MatchAggregate | Literal | FunctionCall


class Pattern(msgspec.Struct, frozen=True, tag=True):
    """A whole pattern. Rows are tuples of `columns`; times are microseconds. A variable without a
    condition takes any row.
    """

    node: Node
    columns: tuple[str, ...]
    conditions: tuple[tuple[str, Expression], ...] = ()
    measures: tuple[tuple[str, Expression], ...] = ()
    subsets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rows: RowsPerMatch = RowsPerMatch.ONE
    skip: Skip = Skip()
    selection: Selection = Selection.STRICT
    within_us: int | None = None
    steps_max: int | None = None  # rows taken and skipped, on all ways, before a key is ignored


SET_ASIDE = b"set aside"  # in place of the state of a key whose search has exceeded its steps


class Threshold(msgspec.Struct, frozen=True, tag=True):
    """At least so many events of a key within an interval: rows, or different values of a column.

    An event reaches it if the interval `(time - within_us, time]` has at least `least` with this
    event, and fewer without it. Rows are tuples of `columns`.
    """

    columns: tuple[str, ...]
    least: int
    within_us: int
    counted: str | None = None  # the column whose different values count; None counts events
