"""From MATCH_RECOGNIZE to its plan: what the matcher reads of every event, the pattern, and the
stream's rows of what it finds.

The columns that speak of one event are Spark's, before the match; so are the measures' operations,
after it. Only what compares events of a match with each other is the matcher's own.
tests/plans/error_spark_match_*.sql hold what is refused; tests/transcripts/match_*.yaml say what it
means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from msgspec.structs import replace as replaced
from sqlglot import exp

from headrace.compile.carried_value import carried_form, carried_type
from headrace.compile.carry import Carried, EventOrder, relation_ddl
from headrace.compile.derive import MADE, check_stateless
from headrace.compile.keyed import known_keys, needed_time
from headrace.compile.lower import Analyse, select_of
from headrace.compile.match_conditions import Conditions
from headrace.compile.moments import refuse_moving_moments
from headrace.compile.navigation import BIGINT, Leaf, Leaves, MatcherInputs
from headrace.compile.plan import CarryPlan, MatchPlan
from headrace.compile.resolve import Resolved
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

NUMBER = Leaf(MatchNumber(), BIGINT)
_BACK = {"TIMESTAMP": "timestamp_micros({})", "DATE": "date_from_unix_date({})"}


def matched_stream(
    resolved: Resolved,
    source: exp.Select,
    time: str | None,
    name: str,
    analyse: Analyse,
    *,
    closed: bool = False,
    steps_max: int | None = None,
) -> Carried:
    """A stream that a pattern makes, cut in the same three as a carried one. `closed` says that all
    its events are there, `steps_max` how many steps the search of a key may take.
    """
    match = resolved.definition.match
    assert match is not None
    return _Matching(resolved, match, source, time, name, analyse, closed, steps_max).cut()


@dataclass(slots=True)
class _Matching:
    resolved: Resolved
    match: MatchDefinition
    source: exp.Select
    time: str | None
    name: str
    analyse: Analyse
    closed: bool
    steps_max: int | None

    def cut(self) -> Carried:
        inputs = MatcherInputs(self.resolved.stream_alias, self.type_of)
        passed: dict[str, tuple[str, Type]] = {}
        leaves: dict[str, tuple[str, Leaf]] = {}
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
        return Carried(plan, select, relation_ddl(plan, self.analyse, self.origin))

    @property
    def origin(self) -> Origin:
        return self.resolved.definition.query_origin

    # What the matcher reads

    def columns(self) -> list[str]:
        found = self.analyse(sql_of(self.source), self.origin)
        return [name for name, _ in found if not name.startswith("_")]

    def passed(self) -> list[str]:
        """The stream's columns that come out: the key's, and with ALL ROWS all of them."""
        columns = self.columns()
        keys = known_keys(self.resolved, self.match.keys, columns)
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
        """The rows of a query may be in any order, those of a stream are in that of events."""
        moment = needed_time(self.resolved, self.time)
        said = [phrase.sql for phrase in self.match.order]
        if not self.closed and [_plain(sql) for sql in said] != [moment.lower()]:
            raise self.refused(
                f"ORDER BY {', '.join(said)} is not the order of events",
                f"write ORDER BY {moment}; events of one moment follow their place in the log.",
                self.match.order[0].origin,
            )

    # The pattern

    def pattern(
        self,
        conditions: tuple[tuple[str, Expression], ...],
        leaves: dict[str, tuple[str, Leaf]],
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
        # A pattern that needs no bound is not computed again because the setting has changed.
        return made if Matcher(made).free else replaced(made, steps_max=self.steps_max)

    def conditions(
        self, inputs: MatcherInputs, mistakes: Mistakes
    ) -> tuple[tuple[str, Expression], ...]:
        made: dict[str, Expression] = {}
        for phrase in self.match.conditions:
            with mistakes.noted():
                if phrase.name in made:
                    raise self.refused("DEFINE has two conditions of one variable")
                made[phrase.name] = self.condition(phrase, inputs)
        return tuple(made.items())

    def condition(self, phrase: NamedExpression, inputs: MatcherInputs) -> Expression:
        known = variables(self.match.node)
        if phrase.name not in known:
            raise self.refused(
                f"DEFINE speaks of {phrase.name}, which is not in the pattern",
                f"the pattern has {', '.join(sorted(known))}.",
                phrase.origin,
            )
        leaves = Leaves(inputs, self.names(), phrase.origin)
        if "final_nav_" in phrase.sql or "final_agg_" in phrase.sql:
            raise leaves.refused("FINAL has no place in DEFINE: the match is not complete there")
        node = self.parsed(phrase)
        for part in node.walk():
            leaves.refuse_aggregate(part)
        lowering = Conditions(leaves, phrase.name)
        if lowering.of_row(node):
            # Spark's NULL is not true, and the matcher need not tell it from false.
            node = exp.func("coalesce", node.copy(), exp.false())
        return lowering.lower(node)

    def names(self) -> set[str]:
        subsets = self.match.subsets
        known = variables(self.match.node)
        for name, parts in subsets:
            if name in known or not {*parts} <= known:
                raise self.refused(
                    f"SUBSET {name} must have a name of its own and variables of the pattern"
                )
        return known | {name for name, _ in subsets}

    def starts(self, pattern: Pattern) -> str | None:
        """SQL over the matcher's columns that is true where a match may begin; None if a key's
        events matter though no match begins."""
        named = starts(pattern)
        tests = dict(pattern.conditions)
        if named is None:
            return None
        found = [tests.get(name) for name in sorted(named)]
        columns = [t.column for t in found if isinstance(t, Value) and t.place == RowNavigation()]
        return " OR ".join(columns) if len(columns) == len(named) else None

    # What comes out

    def measures(
        self, inputs: MatcherInputs, leaves: dict[str, tuple[str, Leaf]], mistakes: Mistakes
    ) -> dict[str, str]:
        made: dict[str, str] = {}
        for phrase in self.match.measures:
            with mistakes.noted():
                made[phrase.name] = self.measure(phrase, inputs, leaves)
        if self.match.rows is not RowsPerMatch.UNMATCHED:
            return made
        # A row that is in no match has no number, and then none of the measures.
        column, _ = leaves.setdefault("nav_match_number()", (f"m{len(leaves)}", NUMBER))
        return {name: f"CASE WHEN {column} IS NOT NULL THEN {m} END" for name, m in made.items()}

    def ordered(self, given: dict[str, str], measures: dict[str, str]) -> dict[str, str]:
        """The columns that come out: key and time, measures, and the others."""
        names = [*given, *(phrase.name for phrase in self.match.measures)]
        folded = [name.lower() for name in names]
        if twice := [name for name in folded if folded.count(name) > 1]:
            raise self.refused(f"two columns of the matches are named '{twice[0]}'")
        ordered = {_plain(phrase.sql) for phrase in self.match.order} & {n.lower() for n in given}
        keys = {key.lower() for key in self.match.keys}
        first = len(keys | ordered) if self.match.rows is not RowsPerMatch.ONE else len(keys)
        columns = list(given.items())
        return {**dict(columns[:first]), **measures, **dict(columns[first:])}

    def measure(
        self, phrase: NamedExpression, inputs: MatcherInputs, leaves: dict[str, tuple[str, Leaf]]
    ) -> str:
        """The measure as SQL over what the matcher gives."""
        reader = Leaves(inputs, self.names(), phrase.origin)

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
        items = ", ".join([*(f"{sql} AS `{name}`" for name, sql in rows.items()), *MADE])
        made = f"SELECT {items} FROM {self.name}"
        if self.closed:
            made = f"SELECT {', '.join(f'`{name}`' for name in rows)} FROM ({made})"
        inner = parse_query(made, self.origin)
        table.replace(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(alias))))
        if self.closed:
            return select  # a query may do with the matches what it likes
        if len(list(select.find_all(exp.Subquery))) > 1 or select.args.get("joins"):
            raise self.refused("MATCH_RECOGNIZE stands alone in FROM", "join what it makes.")
        expressions: list[exp.Expr] = []
        for item in select.expressions:
            expressions += [exp.column(name) for name in rows] if item.is_star else [item]
        check_stateless(replace(self.resolved, select=select))
        expressions += [exp.column(name, table=alias) for name in (*HIDDEN, CUT, DATED)]
        select.set("expressions", expressions)
        return select

    def parsed(self, phrase: NamedExpression) -> exp.Expr:
        query = parse_query(f"SELECT {phrase.sql}", phrase.origin)
        refuse_moving_moments(query, phrase.origin)
        made: exp.Expr = query.expressions[0]
        return made

    def refused(
        self, message: str, hint: str | None = None, origin: Origin | None = None
    ) -> Unsupported:
        return Unsupported(message, hint=hint, origin=origin or self.origin)


def _plain(order: str) -> str:
    """The column of an ORDER BY item, as far as it is one."""
    return order.replace(" ", "").lower().removesuffix("asc").split(".")[-1].strip("`")


def _sent(sql: str, type: Type) -> str:
    """The value as the matcher takes it: times are numbers, conditions stay conditions."""
    return sql if type.nested or type.name == "BOOLEAN" else carried_form(type, sql)


def _kept(type: Type) -> str:
    """The Spark type of a value that the matcher gives."""
    return "BIGINT" if type.name in _BACK else type.spark


def _given(column: str, type: Type) -> str:
    """SQL that makes of a given value what it was."""
    return _BACK.get(type.name, "{}").format(column)
