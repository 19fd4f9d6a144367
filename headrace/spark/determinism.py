"""Whether a query gives the same rows each time that it is computed over the same events.

Spark's analyser knows which expressions are not deterministic, which depend on the clock, the user
or the session, and which literals are relative timestamps, such as 'now'. Batch and speed compute
at different times, so a definition may use none of these.
tests/spark/test_determinism.py checks each of Spark's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

from headrace.compile.determinism import not_deterministic
from headrace.core.origin import Origin
from headrace.spark.scala import elements

# Rules of Spark's optimizer; the first expands short forms for the second.
_RULES = ("ReplaceExpressions", "SpecialDatetimeValues")
_ENCRYPTS = "aes_encrypt"


def require_deterministic(frame: DataFrame, sql: str, origin: Origin | None = None) -> None:
    if what := nondeterministic_part(frame, sql):
        raise not_deterministic(what, origin)


def nondeterministic_part(frame: DataFrame, sql: str) -> str | None:
    """The first part of a query that is not deterministic, as it is written in SQL; None if there
    is none. `sql` is the text of the query.
    """
    plan: JavaObject = frame._jdf.queryExecution().analyzed()
    present, plain, settled = _known(frame.sparkSession._jvm)
    if plan.containsPattern(present):
        return _innermost(plan, lambda part: bool(part.containsPattern(present)))
    if not plan.deterministic():
        return _innermost(plan, lambda part: not part.deterministic())
    if _ENCRYPTS in sql.lower() and any(map(_salted, _calls(plan, _ENCRYPTS))):
        return f"{_ENCRYPTS}() without an initialization vector"
    written_out = plain.apply(plan)
    return None if settled.apply(written_out).fastEquals(written_out) else "a string such as 'now'"


def _innermost(plan: JavaObject, is_so: Callable[[JavaObject], bool]) -> str:
    """The innermost call with this property."""
    found = next(e for node in _nodes(plan) for e in elements(node.expressions()) if is_so(e))
    while inner := next(filter(is_so, _inside(found)), None):
        found = inner
    return f"{found.prettyName().lower()}()"


def _inside(expression: JavaObject) -> Iterator[JavaObject]:
    yield from elements(expression.children())
    if "subquery" in expression.prettyName():
        for node in _nodes(expression.plan()):
            yield from elements(node.expressions())


def _calls(plan: JavaObject, name: str) -> Iterator[JavaObject]:
    """All calls of a function. Walking every expression is slow, so it is rarely done."""
    waiting = [e for node in _nodes(plan) for e in elements(node.expressions())]
    while waiting:
        expression = waiting.pop()
        if expression.prettyName() == name:
            yield expression
        waiting += _inside(expression)


def _salted(encryption: JavaObject) -> bool:
    """Whether Spark draws a random initialization vector; it calls that deterministic."""
    _, _, mode, _, vector, _ = elements(encryption.children())
    given = vector.foldable() and len(vector.eval(None) or b"") > 0
    return not given and not (mode.foldable() and str(mode.eval(None)).upper() == "ECB")


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    for child in elements(plan.children()):
        yield from _nodes(child)


@cache  # each name in Java costs a request to the JVM, and every query of a project is checked
def _known(jvm: Any) -> tuple[JavaObject, ...]:
    """The pattern of expressions that depend on the present, and the rules."""
    present = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
    return present, *(_rule(jvm, name) for name in _RULES)


def _rule(jvm: Any, name: str) -> JavaObject:
    """A rule of the optimizer, which is a Scala singleton object."""
    found = jvm.java.lang.Class.forName(f"org.apache.spark.sql.catalyst.optimizer.{name}$")
    return found.getField("MODULE$").get(None)
