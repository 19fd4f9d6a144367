"""A rule or watch that was added at run time may use only the SQL that an ad-hoc query may use.

Its text was received over the network, so all of its SQL is checked against the allow-lists: as it
was written, because Spark's analyser reads that, and as sqlglot writes it, because that is run. It
may read only the relations that were found in its structure, for which its author was authorized.
The project's own files are trusted and are not restricted.
tests/run/shared/test_fenced_routes.py sends hostile definitions,
tests/spark/test_added_definitions.py checks pieces of each kind.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from headrace.core.errors import BadDefinition, BadQuery, HeadraceError
from headrace.core.rule import ALERTS
from headrace.define.definitions import MATCHED, RuleDefinition, WatchDefinition
from headrace.define.dialect import sql_of
from headrace.define.embedded import EmbeddedQuery, embedded_queries
from headrace.define.match_recognize import OWN_CALLS
from headrace.define.project import Project
from headrace.spark.allowed_sql import check_sql
from headrace.spark.sql_limits import SqlLimits


def check_added(spark: Any, project: Project, functions: Collection[str]) -> None:
    """Refuse definitions that were added at run time and use SQL that is not on the allow-lists."""
    names = {definition.name.lower() for definition in project.definitions} | {ALERTS}
    limits = SqlLimits(text_max=project.settings.query.text_max)
    for added in project.definitions:
        if isinstance(added, RuleDefinition | WatchDefinition) and added.name in project.added:
            for query in embedded_queries(added):
                _check(spark, added, query, names, [*functions, *OWN_CALLS], limits)


def _check(
    spark: Any,
    added: RuleDefinition | WatchDefinition,
    query: EmbeddedQuery,
    names: Collection[str],
    functions: Collection[str],
    limits: SqlLimits,
) -> None:
    read = [name for name in query.relations if name.lower() in names]
    try:
        for text in (query.text, sql_of(query.tree)):
            check_sql(
                spark, text, relations=[*read, MATCHED], functions=functions, limits=limits,
                what=added.said,
            )  # fmt: skip
    except BadQuery as error:
        raise BadDefinition(error.message, detail=error.detail, origin=query.origin) from error
    except HeadraceError as error:
        error.origin = query.origin
        raise
