"""Compiles MATCH_RECOGNIZE: the columns that the matcher reads, the pattern, and the SELECT of the
matches.

Expressions over one event are computed by Spark before the match, and the operations of measures by
Spark after it. Only expressions that compare events of a match are evaluated by the matcher.
tests/plans/error_spark_match_*.sql have what is refused; tests/transcripts/match_*.yaml define the
semantics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from msgspec.structs import replace as replaced
from sqlglot import exp

from headrace.compile.carry import CarriedStream, EventOrder, relation_ddl
from headrace.compile.derive import ROW_COLUMNS, check_stateless
from headrace.compile.determinism import refuse_relative_times
from headrace.compile.fold_inputs import (
    carried_sql,
    carried_type,
    declared_keys,
    require_event_time,
)
from headrace.compile.lower import Analyse, select_of
from headrace.compile.match_conditions import ConditionCompiler
from headrace.compile.navigation import BIGINT, MatcherInputs, NavigationReader, TypedExpression
from headrace.compile.plan import CarryPlan, MatchPlan
from headrace.compile.resolve import ResolvedQuery
from headrace.core.errors import HeadraceError, Unsupported
from headrace.core.event import CUT, DATED, HIDDEN, TIME
from headrace.core.mistakes import Mistakes
from headrace.core.origin import Origin
from headrace.core.pattern import (
    Expression,
    MatchNumber,
    Pattern,
    RowNavigation,
    RowsPerMatch,
    Value,
    variables,
)
from headrace.core.schema import Type
from headrace.define.definitions import MATCHED, MatchDefinition, NamedExpression
from headrace.define.dialect import parse_query, parse_select, sql_of
from headrace.pattern.check import check
from headrace.pattern.matcher import Matcher
from headrace.pattern.reach import starts

NUMBER = TypedExpression(MatchNumber(), BIGINT)
_BACK = {"TIMESTAMP": "timestamp_micros({})", "DATE": "date_from_unix_date({})"}


def match_stream(
    resolved: ResolvedQuery,
    source: exp.Select,
    time: str | None,
    name: str,
    analyse: Analyse,
    *,
    closed: bool = False,
    steps_max: int | None = None,
) -> CarriedStream:
    """Compile a stream with a pattern, with the same three parts as any carried stream. `closed`:
    no more events will come. `steps_max`: the maximum number of steps of the search in a key.
    """
    match = resolved.definition.match
    assert match is not None
    return _MatchCompiler(resolved, match, source, time, name, analyse, closed, steps_max).compile()


@dataclass(slots=True)
class _MatchCompiler:
    resolved: ResolvedQuery
    match: MatchDefinition
    source: exp.Select
    time: str | None
    name: str
    analyse: Analyse
    closed: bool
    steps_max: int | None

    def compile(self) -> CarriedStream:
        inputs = MatcherInputs(self.resolved.stream_alias, self.type_of)
        passed: dict[str, tuple[str, Type]] = {}
        leaves: dict[str, tuple[str, TypedExpression]] = {}
        mistakes = Mistakes()
        with mistakes.noted():
            self.check_order()
        with mistakes.noted():
            passed = {name: self.input(inputs, name) for name in self.passed()}
        measures = self.measures(inputs, leaves, mistakes)
        conditions = self.conditions(inputs, mistakes)
        columns = tuple(column for column, _ in inputs.columns.values())
        with mistakes.noted():
            pattern = self.pattern(conditions, leaves, columns)
        mistakes.end()
        plan = CarryPlan(
            self.name,
            self.events(inputs),
            match=MatchPlan(
                pattern,
                tuple((column, _kept(type)) for column, type in passed.values()),
                tuple((name, _kept(leaf.type)) for name, leaf in leaves.values()),
                self.starts(pattern),
            ),
        )
        given = {name: _given(column, type) for name, (column, type) in passed.items()}
        select = self.select(self.ordered(given, measures))
        return CarriedStream(plan, select, relation_ddl(plan, self.analyse, self.origin))

    @property
    def origin(self) -> Origin:
        return self.resolved.definition.query_origin

    # Inputs of the matcher

    def columns(self) -> list[str]:
        found = self.analyse(sql_of(self.source), self.origin)
        return [name for name, _ in found if not name.startswith("_")]

    def passed(self) -> list[str]:
        """The stream's columns in the result: the key's, and with ALL ROWS all of them."""
        columns = self.columns()
        keys = declared_keys(self.resolved, self.match.keys, columns)
        if self.match.rows is RowsPerMatch.ONE:
            return keys
        ordered = {_plain(phrase.sql) for phrase in self.match.order}
        order = [name for name in columns if name.lower() in ordered and name not in keys]
        return [*keys, *order, *(name for name in columns if name not in (*keys, *order))]

    def input(self, inputs: MatcherInputs, name: str) -> tuple[str, Type]:
        return inputs.column(exp.column(name), self.origin)

    def type_of(self, sql: str, origin: Origin) -> Type:
        [(_, spark_type)] = self.analyse(select_of(self.source, [f"{sql} AS e"]), origin)
        return carried_type(spark_type, sql, origin)

    def events(self, inputs: MatcherInputs) -> str:
        alias = self.resolved.stream_alias
        keys = tuple(f"{alias}.{key}" for key in self.match.keys)
        order = EventOrder(keys, f"unix_micros({alias}.{self.time})", alias)
        hidden = [f"{alias}.{column} AS {column}" for column in HIDDEN]
        columns = [f"{_sent(sql, type)} AS {name}" for sql, (name, type) in inputs.columns.items()]
        items = [*order.items(), *hidden, *columns]
        return select_of(self.source, items, [f"{TIME} IS NOT NULL"])

    def check_order(self) -> None:
        """A query may have any order; a stream is ordered by event time."""
        time = require_event_time(self.resolved, self.time)
        order = [phrase.sql for phrase in self.match.order]
        if not self.closed and [_plain(sql) for sql in order] != [time.lower()]:
            raise self.unsupported(
                f"ORDER BY {', '.join(order)} is not the event time",
                f"write ORDER BY {time}; events with equal times are in the order of the log.",
                self.match.order[0].origin,
            )

    # The pattern

    def pattern(
        self,
        conditions: tuple[tuple[str, Expression], ...],
        leaves: dict[str, tuple[str, TypedExpression]],
        columns: tuple[str, ...],
    ) -> Pattern:
        match = self.match
        measures = tuple((name, leaf.expression) for name, leaf in leaves.values())
        made = Pattern(
            match.node, columns, conditions, measures, match.subsets, match.rows, match.skip,
            match.selection, match.within_us,
        )  # fmt: skip
        try:
            check(made, closed=self.closed)
        except HeadraceError as error:
            for each in (error, *error.others):
                each.origin = self.origin
            raise
        # A pattern that needs no limit is not rebuilt when the setting changes.
        return made if Matcher(made).free else replaced(made, steps_max=self.steps_max)

    def conditions(
        self, inputs: MatcherInputs, mistakes: Mistakes
    ) -> tuple[tuple[str, Expression], ...]:
        made: dict[str, Expression] = {}
        for phrase in self.match.conditions:
            with mistakes.noted():
                if phrase.name in made:
                    raise self.unsupported(f"DEFINE has two conditions for {phrase.name}")
                made[phrase.name] = self.condition(phrase, inputs)
        return tuple(made.items())

    def condition(self, phrase: NamedExpression, inputs: MatcherInputs) -> Expression:
        known = variables(self.match.node)
        if phrase.name not in known:
            raise self.unsupported(
                f"DEFINE has a condition for {phrase.name}, which is not a pattern variable",
                f"pattern variables: {', '.join(sorted(known))}.",
                phrase.origin,
            )
        leaves = NavigationReader(inputs, self.names(), phrase.origin)
        if "final_nav_" in phrase.sql or "final_agg_" in phrase.sql:
            raise leaves.unsupported(
                "FINAL is not allowed in DEFINE: the match is not complete yet"
            )
        node = self.parsed(phrase)
        for part in node.walk():
            leaves.refuse_aggregate(part)
        lowering = ConditionCompiler(leaves, phrase.name)
        if lowering.of_row(node):
            # NULL is not true, so the matcher can treat it as false.
            node = exp.func("coalesce", node.copy(), exp.false())
        return lowering.lower(node)

    def names(self) -> set[str]:
        subsets = self.match.subsets
        known = variables(self.match.node)
        for name, parts in subsets:
            if name in known or not {*parts} <= known:
                raise self.unsupported(
                    f"SUBSET {name} must have a new name and contain only pattern variables"
                )
        return known | {name for name, _ in subsets}

    def starts(self, pattern: Pattern) -> str | None:
        """SQL over the matcher's columns that is true for events with which a match may begin; None
        if other events of a key matter too.
        """
        named = starts(pattern)
        tests = dict(pattern.conditions)
        if named is None:
            return None
        found = [tests.get(name) for name in sorted(named)]
        columns = [t.column for t in found if isinstance(t, Value) and t.place == RowNavigation()]
        return " OR ".join(columns) if len(columns) == len(named) else None

    # Outputs

    def measures(
        self,
        inputs: MatcherInputs,
        leaves: dict[str, tuple[str, TypedExpression]],
        mistakes: Mistakes,
    ) -> dict[str, str]:
        made: dict[str, str] = {}
        for phrase in self.match.measures:
            with mistakes.noted():
                made[phrase.name] = self.measure(phrase, inputs, leaves)
        if self.match.rows is not RowsPerMatch.UNMATCHED:
            return made
        # A row that is in no match has no match number, and its measures are NULL.
        column, _ = leaves.setdefault("nav_match_number()", (f"m{len(leaves)}", NUMBER))
        return {name: f"CASE WHEN {column} IS NOT NULL THEN {m} END" for name, m in made.items()}

    def ordered(self, given: dict[str, str], measures: dict[str, str]) -> dict[str, str]:
        """The columns of the result: key and time, measures, and the others."""
        names = [*given, *(phrase.name for phrase in self.match.measures)]
        folded = [name.lower() for name in names]
        if twice := [name for name in folded if folded.count(name) > 1]:
            raise self.unsupported(f"MATCH_RECOGNIZE returns two columns named '{twice[0]}'")
        ordered = {_plain(phrase.sql) for phrase in self.match.order} & {n.lower() for n in given}
        keys = {key.lower() for key in self.match.keys}
        first = len(keys | ordered) if self.match.rows is not RowsPerMatch.ONE else len(keys)
        columns = list(given.items())
        return {**dict(columns[:first]), **measures, **dict(columns[first:])}

    def measure(
        self,
        phrase: NamedExpression,
        inputs: MatcherInputs,
        leaves: dict[str, tuple[str, TypedExpression]],
    ) -> str:
        """The measure as SQL over the matcher's results."""
        reader = NavigationReader(inputs, self.names(), phrase.origin)

        def after(node: exp.Expr) -> exp.Expr:
            leaf = reader.leaf(node)
            if leaf is None:
                return node
            column, _ = leaves.setdefault(sql_of(node), (f"m{len(leaves)}", leaf))
            given = parse_query(f"SELECT {_given(column, leaf.type)}", phrase.origin)
            made: exp.Expr = given.expressions[0]
            return made

        return sql_of(self.parsed(phrase).transform(after))

    def select(self, rows: dict[str, str]) -> exp.Select:
        """The user's SELECT over the rows of the matches."""
        select = parse_select(self.match.select, self.origin)
        table = next(t for t in select.find_all(exp.Table) if t.name == MATCHED)
        alias = table.alias or MATCHED
        items = ", ".join([*(f"{sql} AS `{name}`" for name, sql in rows.items()), *ROW_COLUMNS])
        made = f"SELECT {items} FROM {self.name}"
        if self.closed:
            made = f"SELECT {', '.join(f'`{name}`' for name in rows)} FROM ({made})"
        inner = parse_query(made, self.origin)
        table.replace(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(alias))))
        if self.closed:
            return select  # an ad-hoc query may use the matches in any way
        if len(list(select.find_all(exp.Subquery))) > 1 or select.args.get("joins"):
            raise self.unsupported(
                "MATCH_RECOGNIZE must be the only relation in FROM",
                "join its result in a definition that reads this one.",
            )
        expressions: list[exp.Expr] = []
        for item in select.expressions:
            expressions += [exp.column(name) for name in rows] if item.is_star else [item]
        check_stateless(replace(self.resolved, select=select))
        expressions += [exp.column(name, table=alias) for name in (*HIDDEN, CUT, DATED)]
        select.set("expressions", expressions)
        return select

    def parsed(self, phrase: NamedExpression) -> exp.Expr:
        query = parse_query(f"SELECT {phrase.sql}", phrase.origin)
        refuse_relative_times(query, phrase.origin)
        made: exp.Expr = query.expressions[0]
        return made

    def unsupported(
        self, message: str, hint: str | None = None, origin: Origin | None = None
    ) -> Unsupported:
        return Unsupported(message, hint=hint, origin=origin or self.origin)


def _plain(order: str) -> str:
    """The lowercase column name of an ORDER BY item, if it is a column."""
    return order.replace(" ", "").lower().removesuffix("asc").split(".")[-1].strip("`")


def _sent(sql: str, type: Type) -> str:
    """SQL of a value as the matcher reads it: times are numbers, booleans are unchanged."""
    return sql if type.nested or type.name == "BOOLEAN" else carried_sql(type, sql)


def _kept(type: Type) -> str:
    """The Spark type of a result of the matcher."""
    return "BIGINT" if type.name in _BACK else type.spark


def _given(column: str, type: Type) -> str:
    """SQL that converts a result of the matcher back to its type."""
    return _BACK.get(type.name, "{}").format(column)
