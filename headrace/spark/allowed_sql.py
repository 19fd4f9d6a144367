"""SQL received over the network is analysed by Spark only if every part of it is on an allow-list.

The size of the text is limited before it is parsed (sql_limits.py). Then Spark's own parser reads
it, because a second parser could read it differently, and every node, value and function of the
plan must be in allow_lists.py. The walk follows every field of every node, so that a field unknown
to this module cannot hide anything; an unknown node is refused.
tests/spark/test_allowed_sql.py runs good_queries.sql and refuses hostile_queries.sql.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headrace.core.errors import BadQuery, LimitReached, Refused
from headrace.spark import allow_lists as tables
from headrace.spark.scala import elements
from headrace.spark.sql_limits import HINT, QUERY, SqlLimits, check_text


@dataclass(frozen=True, slots=True)
class _Rules:
    functions: frozenset[str]
    limits: SqlLimits
    what: str  # subject of the error message: `an ad-hoc query`, `rule 'r'`

    def refused(self, words: str, hint: str = HINT) -> Refused:
        return Refused(f"{self.what} may not {words}", hint=hint)


def check_sql(
    spark: SparkSession,
    text: str,
    *,
    relations: Collection[str],
    functions: Collection[str] = (),
    limits: SqlLimits | None = None,
    what: str = QUERY,
) -> None:
    """Check that `text` may be run; raises Refused, BadQuery or LimitReached."""
    limits = limits or SqlLimits()
    check_text(text, limits, what)
    plan = _parse(spark, text)
    rules = _Rules(tables.FUNCTIONS | {name.lower() for name in functions}, limits, what)
    _walk(plan, frozenset(name.lower() for name in relations), rules)


def bad_query(error: PySparkException) -> BadQuery:
    """Spark's error as one sentence, with the condition and the place in the detail."""
    text = str(error)
    first = next((line for line in text.splitlines() if line.strip()), "the query cannot be parsed")
    sentence = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", first.strip())
    sentence = re.split(r"\s*SQLSTATE:|;\s*line \d+|\s*\(line \d+", sentence)[0].strip().rstrip(".")
    place = re.search(r"line (\d+),? pos (\d+)", text)
    where = f"line {place[1]}, column {int(place[2]) + 1}" if place else None
    detail = ", ".join(part for part in (error.getCondition(), where) if part)
    return BadQuery(sentence[:1].lower() + sentence[1:], detail=detail or None)


def _parse(spark: SparkSession, text: str) -> JavaObject:
    try:
        return spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except PySparkException as error:
        if error.getCondition() == "FAILED_TO_PARSE_TOO_COMPLEX":
            raise _too_complex() from error
        raise bad_query(error) from error
    except Py4JJavaError as error:  # a stack overflow inside the parser
        raise _too_complex() from error


def _too_complex() -> LimitReached:
    return LimitReached(
        "the query is too complex to parse",
        detail="its expressions are too long or nested too deeply for Spark's parser.",
        hint="write a long chain of OR as IN, or divide the query.",
    )


def _walk(plan: JavaObject, names: frozenset[str], rules: _Rules) -> None:
    """Check `plan` and everything in it; `names` are the relations in scope."""
    waiting: list[tuple[Any, frozenset[str]]] = [(plan, names)]
    seen = 0
    while waiting:
        item, names = waiting.pop()
        if not isinstance(item, JavaObject):  # a string, number or boolean, which py4j has copied
            continue
        seen += 1
        if seen > rules.limits.nodes_max:
            raise LimitReached(f"the query has more than {rules.limits.nodes_max:,} syntax nodes")
        waiting.extend(_inside(item, names, rules))


def _inside(
    item: JavaObject, names: frozenset[str], rules: _Rules
) -> list[tuple[Any, frozenset[str]]]:
    package, _, name = item.getClass().getName().rpartition(".")
    if package.startswith("scala.collection"):
        return [(part, names) for part in elements(item)]
    if package == "scala" and name in ("Some", "Tuple2", "Tuple3"):
        return [(part, names) for part in _fields(item)]
    if name in tables.VALUES or package == "org.apache.spark.sql.types":
        return []
    spark_node = package.startswith("org.apache.spark.sql.catalyst.")
    if not spark_node or name not in tables.PLANS | tables.EXPRESSIONS:
        raise rules.refused(f"use {_words(name)}")
    if name == "UnresolvedWith":
        return _inside_with(item, names, rules)
    if name == "UnresolvedRelation":
        _check_relation(item, names, rules)
        return []
    if name in _CHECKS:
        _CHECKS[name](item, rules)
    return [(part, names) for part in _fields(item)]


def _inside_with(
    item: JavaObject, names: frozenset[str], rules: _Rules
) -> list[tuple[Any, frozenset[str]]]:
    if item.allowRecursion():
        raise rules.refused("use WITH RECURSIVE")
    inside: list[tuple[Any, frozenset[str]]] = []
    for relation in elements(item.cteRelations()):
        alias, plan, *rest = _fields(relation)
        inside += [(part, names) for part in (plan, *rest)]
        names = names | {alias.lower()}
    return [*inside, (item.child(), names)]


def _fields(item: JavaObject) -> list[Any]:
    return [item.productElement(i) for i in range(item.productArity())]


def _check_relation(item: JavaObject, names: frozenset[str], rules: _Rules) -> None:
    parts = list(elements(item.multipartIdentifier()))
    shown = ".".join(parts)
    if len(parts) > 1 or parts[0].lower() not in names:
        known = ", ".join(sorted(names)) or "none"
        raise rules.refused(f"read '{shown}'", hint=f"available: {known}.")
    if not item.options().isEmpty() or item.isStreaming():
        raise rules.refused(f"set options of '{shown}'")


def _check_function(item: JavaObject, rules: _Rules) -> None:
    name = _check_name(list(elements(item.nameParts())), rules.functions, rules)
    sized = tables.SIZED.get(name, ())
    arguments = list(elements(item.arguments())) if sized else []
    for index in sized:
        if index < len(arguments) and not _small(arguments[index], rules.limits.size_max):
            hint = f"write an integer literal of at most {rules.limits.size_max:,}."
            raise rules.refused(f"use '{name}' with a size that is computed or too large", hint)


def _check_name(parts: list[str], allowed: Collection[str], rules: _Rules) -> str:
    name = ".".join(parts).lower()
    if len(parts) > 1 or name not in allowed:
        hint = "use a function of Spark that computes a value, or one of the project's own."
        raise rules.refused(f"use the function '{name}'", hint)
    return name


def _small(argument: Any, size_max: int) -> bool:
    if argument.getClass().getSimpleName() not in ("Literal", "UnaryMinus"):
        return False
    text = argument.toString()
    return re.fullmatch(r"-?\d{1,9}", text) is not None and abs(int(text)) <= size_max


def _check_generator(item: JavaObject, rules: _Rules) -> None:
    _check_name([item.name().unquotedString()], tables.GENERATORS, rules)


def _check_table_function(item: JavaObject, rules: _Rules) -> None:
    _check_name(list(elements(item.name())), tables.GENERATORS, rules)


def _check_attribute(item: JavaObject, rules: _Rules) -> None:
    if any(part.lower() == "_metadata" for part in elements(item.nameParts())):
        raise rules.refused("read _metadata", hint="_metadata would expose the paths of files.")


def _check_star(item: JavaObject, rules: _Rules) -> None:
    if "_metadata" in item.toString().lower():
        raise rules.refused("read _metadata", hint="_metadata would expose the paths of files.")


def _check_in(item: JavaObject, rules: _Rules) -> None:
    if item.list().length() > rules.limits.list_max:
        raise LimitReached(f"a list in the query has more than {rules.limits.list_max:,} values")


def _check_hint(item: JavaObject, rules: _Rules) -> None:
    if item.name().upper() not in tables.HINTS:
        raise rules.refused(f"use the hint {item.name()}")


_CHECKS = {
    "UnresolvedFunction": _check_function,
    "UnresolvedGenerator": _check_generator,
    "UnresolvedTableValuedFunction": _check_table_function,
    "UnresolvedAttribute": _check_attribute,
    "UnresolvedStar": _check_star,
    "UnresolvedStarExceptOrReplace": _check_star,
    "In": _check_in,
    "UnresolvedHint": _check_hint,
}


def _words(name: str) -> str:
    """A node class as SQL keywords: `SetCommand` is SET."""
    plain = re.sub(r"\$$|^Unresolved|Command$|Statement$", "", name)
    return tables.WORDS.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain).upper()
