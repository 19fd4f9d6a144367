"""Completions for an editor: keywords, and functions that SQL may call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.api.resources.catalog import FunctionInfo
from headrace.compile.window_functions import WINDOW_FUNCTIONS
from headrace.core.aggregate import AGGREGATES, SYNONYMS
from headrace.define.functions import FunctionDefinition
from headrace.spark.allow_lists import FUNCTIONS

_KEYWORDS = """
    ACCUMULATING AFTER ALL AND ANY AS ASC BETWEEN BY CASE CAST CREATE DEFINE DELAY DESC DISCARDING
    DISTINCT ELSE EMIT END EVERY EXISTS FALSE FILTER FROM FULL GROUP HAVING ILIKE IN INNER INTERVAL
    INTO IS JOIN LATERAL LEFT LIKE LIMIT LOCATION MATCHES MATCH_RECOGNIZE MEASURES NOT NOTIFY NULL
    OF ON OR ORDER OUTER OVER PARTITION PATTERN PER RETRACTING RIGHT RLIKE RULE RULES SELECT SEMI
    SET SEVERITY SINK STREAM SUBSCRIBE SUPPRESS TABLE THEN TIME TIMESTAMP TO TRUE UNION UNTIL USING
    VERSION VIEW WATCH WATERMARK WHEN WHERE WITH WITHIN
"""


def keywords() -> list[str]:
    return _KEYWORDS.split()


def functions(own: Iterable[FunctionDefinition]) -> list[FunctionInfo]:
    """All functions, sorted by name within each kind, the project's own first."""
    return [*_own(own), *_known()]


def _own(own: Iterable[FunctionDefinition]) -> Iterator[FunctionInfo]:
    for one in sorted(own, key=lambda one: one.name):
        takes = [type.spark for type in one.takes]
        yield FunctionInfo(one.name, "project", takes, one.returns.spark)


def _known() -> Iterator[FunctionInfo]:
    aggregates = {*AGGREGATES, *SYNONYMS}
    scalars = {name for name in FUNCTIONS if name.isidentifier()} - aggregates - {*WINDOW_FUNCTIONS}
    yield from (FunctionInfo(name, "aggregate") for name in sorted(aggregates))
    yield from (FunctionInfo(name, "window") for name in WINDOW_FUNCTIONS)
    yield from (FunctionInfo(name, "scalar") for name in sorted(scalars))
