"""Expands decision rules to a SELECT with one expression per field: a derived stream like any
other.

Each SQL fragment of a rule is parsed and analysed separately, so an error has the origin of its
rule, and a rule does not see what another has set. decision_cases.py writes the expressions.
tests/plans/error_*rules_*.sql have what is refused, tests/transcripts/rules_*.yaml the semantics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from headrace.compile.calls import has_aggregate
from headrace.compile.cell_sql import cell_sql
from headrace.compile.decision_cases import Branch, field_items
from headrace.compile.determinism import refuse_relative_times
from headrace.compile.lower import Analyse
from headrace.compile.resolve import ResolvedQuery
from headrace.core.errors import BadDefinition, HeadraceError, Unsupported
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query, parse_select, sql_of
from headrace.define.rules import CellTest, DecisionRule, DecisionRules, SqlFragment

_SOURCE = {"expressions", "from_", "joins", "laterals"}


def expand_rules(resolved: ResolvedQuery, time: str | None, analyse: Analyse) -> ResolvedQuery:
    """The stream with its rules expanded to a SELECT; `time` is the column of its event time."""
    rules = resolved.definition.rules
    assert rules is not None
    _check_source(resolved)
    _check_time(resolved, rules, time)
    fragments = {sql: _parsed(sql) for sql in _fragments(rules)}
    analyser = _RuleAnalyser(resolved, analyse, fragments)
    names = analyser.columns()
    branches = [analyser.branch(rule) for rule in rules.rules]
    otherwise = analyser.branch(rules.otherwise) if rules.otherwise else None
    analyser.check_types(rules)
    items = field_items(rules, names, resolved.stream_alias, branches, otherwise)
    analyser.check_fields(rules, items)
    written = [items.get(name.lower()) or f"{resolved.stream_alias}.`{name}`" for name in names]
    known = {name.lower() for name in names}
    written += [item for name, item in items.items() if name not in known]
    text = f"SELECT {', '.join(written)} {analyser.source}"
    select = parse_select(text, resolved.definition.query_origin)
    return replace(resolved, definition=replace(resolved.definition, query=text), select=select)


def _fragments(rules: DecisionRules) -> Iterator[SqlFragment]:
    """All SQL fragments of the rules."""
    for rule in rules.every:
        yield from (test.subject if isinstance(test, CellTest) else test for test in rule.tests)
        yield from (sql for _, sql in rule.sets)


# Checks that need no types


def _check_source(resolved: ResolvedQuery) -> None:
    other = [part for part, said in resolved.select.args.items() if said and part not in _SOURCE]
    if other:
        raise BadDefinition(
            f"rules '{resolved.definition.name}' can only read a stream and join it, "
            f"got {other[0].strip('_').upper()}",
            hint="use it in a CREATE STREAM … AS that the rules read.",
            origin=resolved.definition.query_origin,
        )


def _check_time(resolved: ResolvedQuery, rules: DecisionRules, time: str | None) -> None:
    for rule in rules.every:
        if time and (said := rule.value(time)):
            raise Unsupported(
                f"{said.where}: rules cannot set '{time}', the event time of '{resolved.stream}'",
                hint="set another field, or shift time in a CREATE STREAM … AS.",
                origin=said.origin,
            )


def _parsed(sql: SqlFragment) -> str:
    """The fragment on one line; refused if it reads more than its own row."""
    try:
        select = parse_query(f"SELECT {sql.text}", sql.origin)
    except HeadraceError as error:
        raise _with_rule(error, sql) from error
    if len(select.expressions) != 1 or set(_said(select)) != {"expressions"}:
        raise _not_one_expression(sql)
    item = select.expressions[0]
    if isinstance(item, exp.Alias) or item.is_star:
        raise _not_one_expression(sql)
    if item.find(exp.Select):
        raise _not_in_rule(sql, "a subquery", "join the table after ON.")
    if item.find(exp.Window):
        raise _not_in_rule(sql, "OVER", "use OVER in a CREATE STREAM … AS that the rules read.")
    if has_aggregate(item):
        raise _not_in_rule(sql, "an aggregate", "aggregate in a CREATE VIEW that reads the rules.")
    try:
        refuse_relative_times(item, sql.origin)
    except Unsupported as error:
        raise _with_rule(error, sql) from error
    return sql_of(item)


def _said(select: exp.Query) -> list[str]:
    return [part for part, said in select.args.items() if said]


def _not_one_expression(sql: SqlFragment) -> BadDefinition:
    said = f"{sql.where}: expected one expression, got '{sql.text}'"
    return BadDefinition(said, origin=sql.origin)


def _not_in_rule(sql: SqlFragment, what: str, hint: str) -> Unsupported:
    return Unsupported(f"{sql.where}: a rule cannot use {what}", hint=hint, origin=sql.origin)


def _with_rule(error: HeadraceError, sql: SqlFragment | CellTest) -> HeadraceError:
    """The error with the rule and the origin of its fragment."""
    message = f"{sql.where}: {error.message}"
    origin = error.origin if isinstance(sql, SqlFragment) and error.origin else sql.origin
    return type(error)(message, detail=error.detail, hint=error.hint, origin=origin)


# Checks that need types


class _RuleAnalyser:
    """Analyses SQL fragments over the source of the rules."""

    def __init__(
        self, resolved: ResolvedQuery, analyse: Analyse, fragments: dict[SqlFragment, str]
    ) -> None:
        self.resolved, self.analyse, self.fragments = resolved, analyse, fragments
        self.source = sql_of(resolved.select).removeprefix("SELECT * ")
        self.types = self._types(list(fragments))

    def columns(self) -> list[str]:
        """The names of the stream's columns, as Spark resolves them."""
        alias = self.resolved.stream_alias
        found = self._analyse([f"{alias}.*"], self.resolved.definition.query_origin)
        return [name for name, _ in found if not name.startswith("_")]

    def branch(self, rule: DecisionRule) -> Branch:
        tests = [self._test(test) for test in rule.tests]
        condition = tests[0] if len(tests) == 1 else " AND ".join(f"({test})" for test in tests)
        values = {field.lower(): self.fragments[sql] for field, sql in rule.sets}
        return Branch(rule.name, condition or "TRUE", values)

    def check_types(self, rules: DecisionRules) -> None:
        """Each condition is BOOLEAN."""
        for test in (test for rule in rules.rules for test in rule.tests):
            found = self.types[test] if isinstance(test, SqlFragment) else "boolean"
            if found not in {"boolean", "void"}:
                assert isinstance(test, SqlFragment)
                raise BadDefinition(
                    f"{test.where}: expected a BOOLEAN condition, got '{test.text}', which is "
                    f"{found.upper()}",
                    hint="write a comparison; in a decision table, a literal alone means equality."
                    if "column" in test.where
                    else "write a comparison.",
                    origin=test.origin,
                )

    def check_fields(self, rules: DecisionRules, items: dict[str, str]) -> None:
        """The values of a field have a common type."""
        origin = self.resolved.definition.query_origin
        try:
            found = dict(self._analyse(list(items.values()), origin))
        except HeadraceError:
            found = {}
        for field in rules.fields:
            if found.get(field, "void") == "void":
                self._check_field(rules, field, items[field.lower()])

    def _check_field(self, rules: DecisionRules, field: str, item: str) -> None:
        said = [(rule, sql) for rule in rules.every if (sql := rule.value(field))]
        first = said[0][1]
        try:
            ((_, found),) = self._analyse([item], first.origin)
        except HeadraceError as error:
            kinds = {sql: self.types[sql].upper() for _, sql in said}
            other = next((sql for sql in kinds if kinds[sql] != kinds[first]), first)
            before = "" if other is first else f", but {first.where} sets {kinds[first]}"
            raise BadDefinition(
                f"{other.where}: '{field}' is {kinds[other]} here{before}",
                detail=error.message,
                hint="a field has one type; convert the values with CAST(… AS …).",
                origin=other.origin,
            ) from error
        if found == "void":
            raise BadDefinition(
                f"{first.where}: '{field}' is always NULL, so it has no type",
                hint="write CAST(NULL AS STRING), or cast to another type.",
                origin=first.origin,
            )

    def _test(self, test: SqlFragment | CellTest) -> str:
        if isinstance(test, SqlFragment):
            return self.fragments[test]
        try:
            return cell_sql(test, self.fragments[test.subject], self.types[test.subject])
        except ValueError as error:
            raise BadDefinition(f"{test.where}: {error}", origin=test.origin) from error

    def _types(self, fragments: Sequence[SqlFragment]) -> dict[SqlFragment, str]:
        """The type of each fragment, by one query; or by one query each, to find an error."""
        texts = [self.fragments[sql] for sql in fragments]
        try:
            found = self._analyse(_numbered(texts), self.resolved.definition.query_origin)
        except HeadraceError:
            found = [self._one(sql) for sql in fragments]
        return {sql: type for sql, (_, type) in zip(fragments, found, strict=True)}

    def _one(self, sql: SqlFragment) -> tuple[str, str]:
        try:
            (found,) = self._analyse(_numbered([self.fragments[sql]]), sql.origin)
        except HeadraceError as error:
            raise self._with_hint(_with_rule(error, sql)) from error
        return found

    def _with_hint(self, error: HeadraceError) -> HeadraceError:
        rules = self.resolved.definition.rules
        fields = rules.fields if rules else []
        if any(error.message.endswith(f"there is no column '{field}'") for field in fields):
            error.hint = (
                "a rule does not see what another rule has set; add a second CREATE RULES that "
                "reads this one."
            )
        return error

    def _analyse(self, items: Sequence[str], origin: Origin) -> list[tuple[str, str]]:
        return self.analyse(f"SELECT {', '.join(items)} {self.source}", origin)


def _numbered(items: Sequence[str]) -> list[str]:
    """The items under names that no expression can refer to."""
    return [f"{item} AS `_{number}`" for number, item in enumerate(items)]
