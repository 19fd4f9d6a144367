"""A rule or watch that was added while a project ran says nothing that an ad-hoc query may not.

Its text came over the network, so all SQL of it passes the fence: as it was written, because
Spark's analyser reads that, and as it is written again, because that is what runs. Only relations
that were found in its structure are known to the fence, so it reads nothing that its author was
not asked about. The project's own files are trusted and may say more.
tests/run/shared/test_fenced_routes.py sends hostile definitions,
tests/spark/test_fence_definitions.py checks pieces of each kind.
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
from headrace.spark.fence import check
from headrace.spark.fence_text import FenceLimits


def check_added(spark: Any, project: Project, functions: Collection[str]) -> None:
    """Refuse what was added to the project and is not for texts of the network."""
    names = {definition.name.lower() for definition in project.definitions} | {ALERTS}
    limits = FenceLimits(text_max=project.settings.query.text_max)
    for said in project.definitions:
        if not isinstance(said, RuleDefinition | WatchDefinition) or said.name not in project.added:
            continue
        for query in embedded_queries(said):
            _check(spark, said, query, names, [*functions, *OWN_CALLS], limits)


def _check(
    spark: Any,
    said: RuleDefinition | WatchDefinition,
    query: EmbeddedQuery,
    names: Collection[str],
    functions: Collection[str],
    limits: FenceLimits,
) -> None:
    read = [name for name in query.relations if name.lower() in names]
    try:
        for text in (query.text, sql_of(query.tree)):
            check(
                spark, text, relations=[*read, MATCHED], functions=functions, limits=limits,
                what=said.said,
            )  # fmt: skip
    except BadQuery as error:
        raise BadDefinition(error.message, detail=error.detail, origin=query.origin) from error
    except HeadraceError as error:
        error.origin = query.origin
        raise
