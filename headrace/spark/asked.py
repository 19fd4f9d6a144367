"""An ad-hoc query with a pattern: the search over all rows that there are, behind the fence.

Every piece of SQL that is made of the user's text passes the fence before Spark's analyser sees it.
The end of each key is known here, so nothing waits. tests/spark/test_query_worker.py asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException

from headrace.compile.asked import asked_matches
from headrace.core.errors import HeadraceError
from headrace.core.origin import Origin
from headrace.define.dialect import sql_of
from headrace.define.queries import has_pattern
from headrace.spark.analyse import translated
from headrace.spark.carry import Carrying

MATCHES = "_matches"
Fence = Callable[[str], None]


def asks_for_matches(sql: str) -> bool:
    """Whether a query has a pattern."""
    try:
        return has_pattern(sql)
    except HeadraceError:  # the fence says what is wrong with it
        return False


def matches(spark: Any, sql: str, fence: Fence) -> Any:
    """The frame of the query's rows."""

    def analyse(text: str, origin: Origin, name: str | None = None) -> list[tuple[str, str]]:
        fence(text)
        try:
            fields = spark.sql(text).schema.fields
        except PySparkException as error:
            raise translated(error, origin) from error
        return [(field.name, field.dataType.simpleString()) for field in fields]

    carried = asked_matches(sql, MATCHES, analyse)
    select = sql_of(carried.select)
    fence(select)
    Carrying(spark, carried.plan, {}, 0, marks=[(0, None)], ended=True).fold([])
    return spark.sql(select)
