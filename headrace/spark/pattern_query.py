"""An ad-hoc query with MATCH_RECOGNIZE: the pattern is searched in all present rows.

Every piece of SQL from the user's text is checked against the allow-lists before Spark analyses it.
No more rows will come, so open matches are decided at once. tests/spark/test_query_worker.py runs
such queries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException

from headrace.compile.pattern_query import plan_pattern_query
from headrace.core.errors import HeadraceError
from headrace.core.origin import Origin
from headrace.define.dialect import sql_of
from headrace.define.queries import has_pattern
from headrace.spark.analyse import translated
from headrace.spark.carry import CarryJob

MATCHES = "_matches"
CheckSql = Callable[[str], None]


def is_pattern_query(sql: str) -> bool:
    """Whether a query has a pattern."""
    try:
        return has_pattern(sql)
    except HeadraceError:  # `check_sql` reports what is wrong with it
        return False


def pattern_frame(spark: Any, sql: str, check: CheckSql) -> Any:
    """The frame of the query's rows."""

    def analyse(text: str, origin: Origin, name: str | None = None) -> list[tuple[str, str]]:
        check(text)
        try:
            fields = spark.sql(text).schema.fields
        except PySparkException as error:
            raise translated(error, origin) from error
        return [(field.name, field.dataType.simpleString()) for field in fields]

    carried = plan_pattern_query(sql, MATCHES, analyse)
    select = sql_of(carried.select)
    check(select)
    CarryJob(spark, carried.plan, {}, 0, marks=[(0, None)], ended=True).fold([])
    return spark.sql(select)
