"""SQL over views, turned into SQL over their stored form.

In the store a timestamp is microseconds, a date is days, and a window `hour` is the two columns
`hour_start` and `hour_end`. Views that read views and ad-hoc queries both come through here. Only
known relations, functions and forms pass: whatever is not in the tables below is refused.
tests/compile/test_translate.py compares answers with the reference interpreter.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from sqlglot import exp

from headrace.compile.plan import WINDOW, OutputPlan
from headrace.core.aggregate import Estimate, roughest
from headrace.core.errors import BadQuery, HeadraceError, UnknownColumn, Unsupported
from headrace.core.origin import Origin
from headrace.core.time import DAY, HOUR, MINUTE, SECOND, duration_us, from_iso
from headrace.define.dialect import sql_of


def typed_name(view: str) -> str:
    """The relation in the store that has a view's answer in storage form."""
    return f"_typed_{view}"


Relations = dict[str, tuple[OutputPlan, ...]]

_NODES = (
    exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Join, exp.Where, exp.Group, exp.Having,
    exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Distinct, exp.Star, exp.Column,
    exp.Identifier, exp.Alias, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Neg, exp.Add,
    exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT,
    exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.Case,
    exp.If, exp.Coalesce, exp.Nullif, exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Filter,
    exp.Round, exp.Abs, exp.Upper, exp.Lower, exp.Length, exp.Trim, exp.Substring, exp.Concat,
    exp.DPipe, exp.Cast, exp.DataType, exp.TimestampTrunc, exp.DateTrunc, exp.Interval, exp.Var,
    exp.Greatest, exp.Least, exp.Tuple, exp.DataTypeParam, exp.Dot, exp.IntDiv, exp.Floor,
    exp.Ceil, exp.CountIf,
)  # fmt: skip
_AVAILABLE = (
    "over views there is one SELECT with comparisons, arithmetic, CASE, coalesce, text functions, "
    "date_trunc, count, sum, min, max, avg, joins, GROUP BY, HAVING, ORDER BY and LIMIT."
)
_TIMES = ("TIMESTAMP", "TIMESTAMPTZ", "DATE")
_CASTS = {
    "TEXT": "TEXT",
    "VARCHAR": "TEXT",
    "INT": "INTEGER",
    "BIGINT": "INTEGER",
    "DOUBLE": "REAL",
}
_TRUNC = {"SECOND": SECOND, "MINUTE": MINUTE, "HOUR": HOUR, "DAY": DAY}
# The type of these is the type of what they are made of.
_SAME_TYPE = (
    exp.Paren, exp.Min, exp.Max, exp.Filter, exp.Coalesce, exp.TimestampTrunc, exp.DateTrunc,
    exp.Nullif, exp.Greatest, exp.Least, exp.Neg,
)  # fmt: skip
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)


@dataclass(frozen=True, slots=True)
class Result:
    """One column of a translated query; a window takes two columns of the store's result."""

    name: str
    type: str | None  # None: told by the values
    estimate: Estimate | None = None
    key: bool = False  # a key of a view, as it is


@dataclass(frozen=True, slots=True)
class Translated:
    tree: exp.Select
    results: tuple[Result, ...]
    relations: tuple[str, ...]


def translate(query: exp.Query, relations: Relations, origin: Origin | None = None) -> Translated:
    """Check a query over views and turn it into one over their stored form."""
    try:
        return _Translator(query.copy(), relations).run()
    except HeadraceError as error:
        error.origin = error.origin or origin
        raise


Scope = dict[str, dict[str, OutputPlan]]


class _Translator:
    def __init__(self, query: exp.Expr, relations: Relations) -> None:
        self.query = query
        self.known = {name.lower(): (name, outputs) for name, outputs in relations.items()}
        self.used: dict[str, None] = {}

    def run(self) -> Translated:
        self.check_nodes()
        if not isinstance(self.query, exp.Select):
            raise Unsupported("a query over views is one SELECT")
        scope = self.scope(self.query)
        results = self.select(self.query, scope)
        for node in list(self.query.walk()):
            self.storage_form(node)
        return Translated(self.query, results, tuple(self.used))

    # What is let through

    def check_nodes(self) -> None:
        for node in self.query.walk():
            if not isinstance(node, _NODES):
                what = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
                raise Unsupported(f"'{what}' is not available over views", hint=_AVAILABLE)
            if isinstance(node, exp.Cast) and node.to.this.name not in {*_CASTS, *_TIMES}:
                raise Unsupported(f"a cast to {node.to.sql()} is not available over views")
            if isinstance(node, exp.Count) and len(getattr(node.this, "expressions", [])) > 1:
                raise Unsupported("count(DISTINCT …) takes one value over views")
            if isinstance(node, exp.Group) and node.sql().upper().endswith("BY ALL"):
                raise Unsupported("GROUP BY ALL is not available over views", hint="name the keys.")

    def scope(self, select: exp.Select) -> Scope:
        """The outputs of each relation, by its alias."""
        tables = [select.args["from_"].this] if select.args.get("from_") else []
        tables += [join.this for join in select.args.get("joins") or []]
        return {table.alias_or_name.lower(): self.outputs_of(table) for table in tables}

    def outputs_of(self, table: exp.Table) -> dict[str, OutputPlan]:
        """The outputs of a view, whose table is pointed at the stored form."""
        if table.db or table.name.lower() not in self.known:
            close = difflib.get_close_matches(table.name, [n for n, _ in self.known.values()], 1)
            raise BadQuery(
                f"there is no view '{table.name}'",
                hint=f"did you mean '{close[0]}'?" if close else None,
            )
        name, outputs = self.known[table.name.lower()]
        self.used[name] = None
        alias = exp.to_identifier(table.alias_or_name.lower(), quoted=True)
        table.set("alias", exp.TableAlias(this=alias))
        table.set("this", exp.to_identifier(typed_name(name), quoted=True))
        return {out.name.lower(): out for out in outputs}

    # The SELECT

    def select(self, select: exp.Select, scope: Scope) -> tuple[Result, ...]:
        found = [pair for item in select.expressions for pair in self.items(item, scope)]
        select.set("expressions", [column for columns, _ in found for column in columns])
        given = {result.name.lower(): columns[0].unalias() for columns, result in found}
        places = [columns[0].unalias() for columns, _ in found]
        group = select.args.get("group")
        keys = (
            {e.name.lower() for e in group.expressions if isinstance(e, exp.Column)}
            if group
            else set()
        )
        # ORDER BY means an output by its name first; HAVING does where the name is no key.
        meant = {"order": given, "having": {k: v for k, v in given.items() if k not in keys}}
        for part in ("where", "group", "having", "order"):
            if clause := select.args.get(part):
                self.ordinals(clause, places)
                self.columns(clause, scope, meant.get(part, {}), windows=part in {"group", "order"})
        for join in select.args.get("joins") or []:
            self.columns(join, scope, {})
        return tuple(result for _, result in found)

    def items(self, item: exp.Expr, scope: Scope) -> list[tuple[list[exp.Expr], Result]]:
        """The stored columns of a select item, which may be several, with what they are."""
        if item.is_star:
            wanted = item.table.lower() if isinstance(item, exp.Column) else None
            return [
                self.plain(out, alias, out.name)
                for alias, outputs in scope.items()
                if wanted in (None, alias)
                for out in outputs.values()
            ]
        inner = item.unalias()
        name = item.alias or (inner.name if isinstance(inner, exp.Column) else sql_of(inner))
        found = self.find(inner, scope) if isinstance(inner, exp.Column) else None
        if found and found[2] is None:
            return [self.plain(found[1], found[0], name)]
        holder = exp.Alias(this=inner.copy(), alias=exp.to_identifier(name, quoted=True))
        self.columns(holder, scope, {})
        return [([holder], Result(name, self.type(holder.this), self.estimate(holder.this)))]

    def plain(self, out: OutputPlan, alias: str, name: str) -> tuple[list[exp.Expr], Result]:
        edges = ("_start", "_end") if out.type == WINDOW else ("",)
        columns: list[exp.Expr] = [
            exp.alias_(_column(out.name + edge, alias, out), name + edge, quoted=True)
            for edge in edges
        ]
        return columns, Result(name, out.type, out.estimate, out.keyed)

    def ordinals(self, clause: exp.Expr, places: list[exp.Expr]) -> None:
        """ORDER BY 2 and GROUP BY 2 mean the second item."""
        for item in clause.expressions if isinstance(clause, exp.Order | exp.Group) else ():
            literal = item.this if isinstance(item, exp.Ordered) else item
            if isinstance(literal, exp.Literal) and not literal.is_string:
                number = int(literal.name)
                if not 1 <= number <= len(places):
                    raise BadQuery(f"there is no item {number} to group or order by")
                literal.replace(places[number - 1].copy())

    def columns(
        self, clause: exp.Expr, scope: Scope, given: dict[str, exp.Expr], *, windows: bool = False
    ) -> None:
        """Point each column at its stored form; with `windows`, a window stands for its start."""
        for column in [c for c in clause.find_all(exp.Column) if not c.meta.get("stored")]:
            output = not column.table and column.name.lower() in given
            if output and not column.find_ancestor(exp.AggFunc):
                column.replace(exp.paren(given[column.name.lower()].copy()))
                continue
            found = self.find(column, scope)
            if found is None:
                raise self.unknown(column, scope)
            alias, out, edge = found
            if out.type == WINDOW and edge is None and not windows:
                raise Unsupported(
                    f"the window '{out.name}' is two times",
                    hint=f"write {out.name}.start or {out.name}.end.",
                )
            name = f"{out.name}_{edge or 'start'}" if out.type == WINDOW else out.name
            column.replace(_column(name, alias, out))

    def find(self, column: exp.Column, scope: Scope) -> tuple[str, OutputPlan, str | None] | None:
        """(relation, output, edge of its window) for url, v.url, hour.start and v.hour.start."""
        name, table, before = column.name.lower(), column.table.lower(), column.db.lower()
        found: list[tuple[str, OutputPlan, str | None]] = []
        for alias, outputs in scope.items():
            if name in outputs and table in ("", alias) and not before:
                found.append((alias, outputs[name], None))
            window = outputs.get(table) if name in {"start", "end"} else None
            if window and window.type == WINDOW and before in ("", alias):
                found.append((alias, window, name))
        if len(found) > 1:
            owners = " and ".join(alias for alias, _, _ in found)
            raise BadQuery(
                f"'{column.name}' may mean the one of {owners}", hint="say which, as in a.b."
            )
        return found[0] if found else None

    def unknown(self, column: exp.Column, scope: Scope) -> UnknownColumn:
        names = [out.name for outputs in scope.values() for out in outputs.values()]
        close = difflib.get_close_matches(column.name, names, 1)
        return UnknownColumn(
            f"there is no column '{column.sql()}'",
            detail=f"there are: {', '.join(names)}.",
            hint=f"did you mean '{close[0]}'?" if close else None,
        )

    # Values

    def storage_form(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Cast):
            self.cast(node)
        elif isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)):
            unit = node.args["unit"].name.upper()
            if unit not in _TRUNC:
                raise Unsupported(f"date_trunc('{unit}', …) is not available over views")
            node.replace(_floored(node.this, _TRUNC[unit]))
        elif isinstance(node, exp.Interval):
            node.replace(
                exp.Literal.number(duration_us(f"{node.this.name} {node.args['unit'].name}"))
            )
        elif isinstance(node, (*_COMPARISONS, exp.Between, exp.In, exp.Nullif)):
            self.literals(node)
        elif isinstance(node, exp.Concat | exp.DPipe):
            for side in (node.this, node.args.get("expression"), *node.expressions):
                self.refuse_stored(side)
        else:
            self.refuse_corners(node)

    def cast(self, node: exp.Cast) -> None:
        target = node.to.this.name
        if target in _CASTS:
            self.refuse_stored(node.this)
            if _CASTS[target] != "TEXT" and self.type(node.this) in {"STRING", None}:
                raise Unsupported("a cast of text to a number is not available over views")
            return
        if not isinstance(node.this, exp.Literal):
            raise Unsupported("a cast of a value to a time is not available over views")
        node.replace(exp.Literal.number(_moment(node.this.name, target)))

    def refuse_stored(self, side: exp.Expr | None) -> None:
        """What is stored in another form than it is shown in cannot be made text."""
        if isinstance(side, exp.Expr) and self.type(side) in {"TIMESTAMP", "DATE", "BOOLEAN"}:
            raise Unsupported("a time or a truth value cannot be made text over views")

    def refuse_corners(self, node: exp.Expr) -> None:
        """Where the store's functions and Spark's part ways."""
        start, decimals = node.args.get("start"), node.args.get("decimals")
        if isinstance(node, exp.Substring) and not (
            start and start.name.isdigit() and int(start.name)
        ):
            raise Unsupported("substring over views begins at a number from 1")
        if isinstance(node, exp.Round) and not isinstance(decimals, exp.Literal | None):
            raise Unsupported("round over views takes a number of decimals from 0")

    def literals(self, node: exp.Expr) -> None:
        """A text that is compared with a value of another type is read as that type."""
        sides = [node.this, *[v for k in ("expression", "low", "high") if (v := node.args.get(k))]]
        sides += node.expressions
        types = {self.type(side) for side in sides if isinstance(side, exp.Expr)} - {None, "STRING"}
        for side in sides if types else []:
            if isinstance(side, exp.Literal) and side.is_string:
                side.replace(_read_as(side.name, str(min(map(str, types)))))

    def type(self, node: exp.Expr) -> str | None:
        if isinstance(node, exp.Column):
            return node.meta.get("type")
        if isinstance(node, exp.Case):
            return self.type(node.args["ifs"][0].args["true"])
        if isinstance(node, exp.If):
            return self.type(node.args["true"])
        if isinstance(node, exp.Cast):
            target = str(node.to.this.name)
            return {"TIMESTAMPTZ": "TIMESTAMP"}.get(target, target)
        if isinstance(node, _SAME_TYPE):
            return self.type(node.this)
        if isinstance(node, (exp.Predicate, exp.And, exp.Or, exp.Not, exp.Boolean)):
            return "BOOLEAN"
        if isinstance(node, (exp.Add, exp.Sub)):
            return self.type_of_sum(node)
        return None

    def type_of_sum(self, node: exp.Add | exp.Sub) -> str | None:
        sides = node.this, node.expression
        if not any(self.type(side) == "TIMESTAMP" for side in sides):
            return None
        return "TIMESTAMP" if any(isinstance(side, exp.Interval) for side in sides) else "BIGINT"

    def estimate(self, node: exp.Expr) -> Estimate | None:
        return roughest(column.meta.get("estimate") for column in node.find_all(exp.Column))


def _column(name: str, table: str, out: OutputPlan) -> exp.Column:
    column = exp.column(
        exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True)
    )
    type = "TIMESTAMP" if out.type == WINDOW else out.type
    column.meta.update(stored=True, type=type, estimate=out.estimate)
    return column


def _floored(time: exp.Expr, step: int) -> exp.Expr:
    """The time less what it is past a multiple of `step`, also before 1970."""
    past = f"((({time.sql()}) % {step}) + {step}) % {step}"
    return exp.maybe_parse(f"(({time.sql()}) - {past})")


def _read_as(text: str, type: str) -> exp.Expr:
    if type in {"TIMESTAMP", "DATE"}:
        return exp.Literal.number(_moment(text, type))
    if type == "BOOLEAN":
        words = {"true": 1, "false": 0}
        return exp.Literal.number(words[text.lower()]) if text.lower() in words else exp.null()
    try:
        return exp.Literal.number(int(text) if type in {"INT", "BIGINT"} else float(text))
    except ValueError:
        return exp.null()


def _moment(text: str, type: str) -> int:
    try:
        moment = from_iso(text)
    except ValueError as error:
        raise BadQuery(f"'{text}' is not a moment such as '2026-11-15T19:00:00Z'") from error
    return moment // DAY if type == "DATE" else moment
