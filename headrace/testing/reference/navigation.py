"""The expressions of DEFINE and MEASURES over the rows of a match: `Expression.value(match)`.

`expression_of` replaces each navigation, aggregate and column by a column of its own, so that the
reference's `evaluate` is left with plain values. A `RowExpression` is any navigation: from the
first or the last row of a variable so many rows on among the variable's rows, then so many among
all rows of the key. `v.x` reads v's last row. So far means up to the current row, FINAL to the end.
tests/testing/test_navigation.py has a table of expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headrace.core.errors import BadDefinition, UnknownColumn, Unsupported
from headrace.testing.reference.aggregates import aggregate, aggregating
from headrace.testing.reference.expressions import evaluate, operands
from headrace.testing.reference.names import key_column, read
from headrace.testing.reference.tokenizer import closing, text_tokens
from headrace.testing.reference.values import Key, Row, Value

_CLASSIFIER: Key = ("", "the variable that took the row")
_NUMBER: Key = ("", "the match's number")
_ID: Key = ("", "the match's id")
_LOGICAL, _PHYSICAL = ("nav_first", "nav_last"), ("nav_prev", "nav_next")
_SIDES = ("nav_running", "nav_final")
_KNOWN = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.ArrayAgg)
_RENAMED = {
    "FIRST": "nav_first", "LAST": "nav_last", "PREV": "nav_prev", "NEXT": "nav_next",
    "COLLECT_LIST": "array_agg", "CLASSIFIER": "classifier", "MATCH_NUMBER": "match_number",
    "MATCH_ID": "match_id",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MatchedRow:
    """The row with this number among the rows of the key, and the variable that took it."""

    row: int
    variable: str
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class MatchContext:
    """The context of an expression in a match: its rows so far, all of them, and any row of the
    key.

    `row_at` gives a row of the key by its number, None outside them; it may raise MissingRow.
    """

    taken: tuple[MatchedRow, ...]
    final: tuple[MatchedRow, ...]
    row_at: Callable[[int], Row | None]
    number: int | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class MatchNames:
    """What names can mean: columns in lower case, and variables with those that they stand for."""

    columns: frozenset[str]
    variables: Mapping[str, tuple[str, ...]]

    def of(self, variable: str, taken: tuple[MatchedRow, ...]) -> list[MatchedRow]:
        """The rows of a variable, or of all if it is empty."""
        members = self.variables.get(variable)
        return [one for one in taken if members is None or one.variable in members]


@dataclass(frozen=True, slots=True)
class RowExpression:
    """The expression in one row."""

    expression: exp.Expr
    variable: str
    first: bool = False
    logical: int = 0
    physical: int = 0
    final: bool = False

    def value(self, seen: MatchContext, names: MatchNames) -> Value:
        rows = names.of(self.variable, seen.final if self.final else seen.taken)
        if len(rows) <= self.logical:
            return None
        found = rows[self.logical if self.first else -1 - self.logical].row + self.physical
        row = seen.row_at(found)
        return None if row is None else evaluate(self.expression, _classified(row, found, seen))

    def of_row(self, variable: str, names: MatchNames) -> bool:
        said = {column.name for column in self.expression.find_all(exp.Column)}
        own = not self.variable or variable in names.variables[self.variable]
        near = _CLASSIFIER[1] not in said or not self.physical
        return own and near and not self.first and not self.logical and _NUMBER[1] not in said


@dataclass(frozen=True, slots=True)
class AggregateExpression:
    """An aggregate over the rows of one variable."""

    call: exp.Expr
    variable: str
    final: bool = False

    def value(self, seen: MatchContext, names: MatchNames) -> Value:
        taken = names.of(self.variable, seen.final if self.final else seen.taken)
        rows = [_classified(seen.row_at(one.row) or {}, one.row, seen) for one in taken]
        if not isinstance(self.call, exp.ArrayAgg):
            return aggregate(self.call, rows)
        values = (evaluate(self.call.this, row) for row in rows)
        return [value for value in values if value is not None]


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression whose columns are what `parts` say of the match."""

    tree: exp.Expr
    parts: Mapping[Key, RowExpression | AggregateExpression]
    names: MatchNames

    def value(self, seen: MatchContext) -> Value:
        values = {key: part.value(seen, self.names) for key, part in self.parts.items()}
        return evaluate(self.tree, values | {_NUMBER: seen.number, _ID: seen.id})

    def of_row(self, variable: str) -> bool:
        """Whether it is about the row that the variable takes and rows near it, whatever was taken
        before."""
        return not _says_number(self.tree) and all(
            isinstance(part, RowExpression) and part.of_row(variable, self.names)
            for part in self.parts.values()
        )


def _says_number(tree: exp.Expr) -> bool:
    return any(column.name == _NUMBER[1] for column in tree.find_all(exp.Column))


def _classified(row: Row, number: int, seen: MatchContext) -> Row:
    variables = (one.variable for one in seen.final if one.row == number)
    return row | {_CLASSIFIER: next(variables, None), _NUMBER: seen.number, _ID: seen.id}


def expression_of(text: str, names: MatchNames, *, define: bool) -> Expression:
    """Read an expression of DEFINE or MEASURES."""
    items = read(f"SELECT {_renamed(text)}").expressions
    if len(items) != 1:
        raise BadDefinition(f"'{text}' is not a single expression")
    reader = _Reader(names, define)
    return Expression(items[0].transform(reader.changed), reader.parts, names)


def _renamed(text: str) -> str:
    """The same text with names of ours, for which sqlglot has no meaning of its own."""
    pieces = text_tokens(text)
    edits: list[tuple[int, int, str]] = []
    for number, piece in enumerate(pieces):
        following = [p.text for p in pieces[number + 1 : number + 3]]
        if piece.word in _RENAMED and following[:1] == ["("]:
            edits.append((piece.start, piece.end, _RENAMED[piece.word]))
        if piece.word in {"RUNNING", "FINAL"} and following[1:] == ["("]:
            end = pieces[closing(pieces, number + 2)].end
            edits += [(piece.start, piece.end, f"nav_{piece.word.lower()}("), (end, end, ")")]
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


@dataclass
class _Reader:
    """Reads one tree; what it finds out about the match is in `parts`."""

    names: MatchNames
    define: bool
    parts: dict[Key, RowExpression | AggregateExpression] = field(default_factory=dict)

    def changed(self, node: exp.Expr) -> exp.Expr:
        if _called(node, *_SIDES):
            return self._sided(node)
        if _called(node, *_LOGICAL, *_PHYSICAL):
            return self._kept(self._look(node))
        if _aggregates(node):
            return self._kept(self._aggregate(node))
        if isinstance(node, exp.Column) or _called(node, "classifier"):
            return self._kept(RowExpression(*self._plain(node)))
        return self._of_the_match(node)

    def _kept(self, part: RowExpression | AggregateExpression) -> exp.Expr:
        key = ("", f"part{len(self.parts)}")
        self.parts[key] = part
        return key_column(key)

    def _sided(self, node: exp.Expr) -> exp.Expr:
        """RUNNING or FINAL before a call."""
        final, call = node.name == "nav_final", node.expressions[0]
        if final and self.define:
            raise _final_in_define()
        if _aggregates(call):
            return self._kept(replace(self._aggregate(call), final=final))
        if _called(call, *_LOGICAL):
            return self._kept(replace(self._look(call), final=final))
        raise BadDefinition(
            "RUNNING and FINAL are only allowed before FIRST, LAST or an aggregate",
            detail=f"found before {call.sql(dialect='spark')}.",
        )

    def _look(self, node: exp.Expr) -> RowExpression:
        argument, count = _arguments(node)
        if _called(node, *_LOGICAL):
            rows = 0 if count is None else count
            return RowExpression(
                *self._plain(argument), first=node.name == "nav_first", logical=rows
            )
        rows = (1 if count is None else count) * (-1 if node.name == "nav_prev" else 1)
        return replace(self._inner(argument), physical=rows)

    def _inner(self, node: exp.Expr) -> RowExpression:
        """The row from which PREV or NEXT counts."""
        final = _called(node, "nav_final")
        if final and self.define:
            raise _final_in_define()
        call = node.expressions[0] if _called(node, *_SIDES) else node
        if _called(call, *_LOGICAL):
            return replace(self._look(call), final=final)
        return RowExpression(*self._plain(node))

    def _aggregate(self, node: exp.Expr) -> AggregateExpression:
        if not isinstance(node, _KNOWN):
            raise Unsupported(
                f"a pattern does not support the aggregate {_shown(node)}",
                hint="supported are count, sum, avg, min, max, array_agg and collect_list.",
            )
        if isinstance(node, exp.Count) and node.this.is_star:
            variable = self._variable(node.this.text("table"))
            return AggregateExpression(exp.Count(this=exp.Star()), variable)
        found = [self._plain(part) for part in operands(node)]
        variables = {variable for _, variable in found}
        if len(variables) != 1:
            raise _mixed_variables(node)
        call = node.copy()
        for name, (part, _) in zip(_operand_names(node), found, strict=True):
            call.set(name, part)
        return AggregateExpression(call, variables.pop())

    def _plain(self, node: exp.Expr) -> tuple[exp.Expr, str]:
        """An expression over the columns of one row, and the variable that it names."""
        found: list[str] = []

        def change(part: exp.Expr) -> exp.Expr:
            if _called(part, *_LOGICAL, *_PHYSICAL, *_SIDES) or _aggregates(part):
                raise BadDefinition(f"{_shown(part)} is not allowed inside {_shown(outer)}")
            if _called(part, "classifier"):
                found.append(self._variable(part.expressions[0].name if part.expressions else ""))
                return key_column(_CLASSIFIER)
            if isinstance(part, exp.Column):
                found.append(self._variable(part.text("table")))
                return self._column(part)
            return self._of_the_match(part)

        outer = node.parent or node
        tree = node.copy().transform(change)
        if len(set(found)) > 1:
            raise _mixed_variables(outer)
        return tree, found[0] if found else ""

    def _column(self, node: exp.Column) -> exp.Expr:
        name = node.name.lower()
        if name not in self.names.columns:
            raise UnknownColumn(f"there is no column '{_shown(node)}' in the pattern's input")
        return key_column(("", name))

    def _variable(self, name: str) -> str:
        if name and name.upper() not in self.names.variables:
            raise BadDefinition(f"there is no pattern variable '{name}'")
        return name.upper()

    def _of_the_match(self, node: exp.Expr) -> exp.Expr:
        if _called(node, "match_number"):
            return key_column(_NUMBER)
        if _called(node, "match_id"):
            if self.define:
                raise BadDefinition(
                    "MATCH_ID() is not allowed in DEFINE, because only a complete match has an id"
                )
            return key_column(_ID)
        return node


def _aggregates(node: exp.Expr) -> bool:
    return aggregating(node) or isinstance(node, exp.ArrayAgg)


def _called(node: exp.Expr, *names: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name in names


def _arguments(node: exp.Expr) -> tuple[exp.Expr, int | None]:
    """What a navigation is about, and how far it goes if it says so."""
    argument, *counts = node.expressions or [exp.Null()]
    if not counts:
        return argument, None
    if len(counts) > 1 or not counts[0].is_int or isinstance(counts[0], exp.Neg):
        raise BadDefinition(f"{_shown(node)}: the offset must be a non-negative integer")
    return argument, int(counts[0].name)


def _operand_names(node: exp.Expr) -> list[str]:
    return [name for name in node.arg_types if isinstance(node.args.get(name), exp.Expr)]


def _mixed_variables(node: exp.Expr) -> BadDefinition:
    return BadDefinition(
        f"{_shown(node)} uses columns of more than one pattern variable",
        hint="use one variable inside a navigation or aggregate.",
    )


def _final_in_define() -> BadDefinition:
    return BadDefinition("FINAL is not allowed in DEFINE")


def _shown(node: exp.Expr) -> str:
    return node.sql(dialect="spark").replace("NAV_", "").replace("nav_", "")
