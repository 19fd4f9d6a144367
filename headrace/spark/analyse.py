"""Spark's analyser, which decides names, types and determinism; its errors are reported at the
user's file and line.

Relations are empty: no data is read while a project is compiled.
tests/plans checks the messages; tests/spark/test_analyse.py the types.
"""

from __future__ import annotations

import difflib
import logging
import re
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
)
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headrace.compile.determinism import not_deterministic
from headrace.core.errors import BadDefinition, HeadraceError, UnknownColumn, UnknownName
from headrace.core.origin import Origin
from headrace.spark.determinism import require_deterministic
from headrace.spark.scala import elements

# PySpark logs each analysis error with its Java stack trace, which is not needed.
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


class SparkAnalyser:
    """Analyses queries in a session of its own, without running them."""

    def __init__(self, spark: SparkSession) -> None:
        # A separate session, so that running queries do not see the relations made here.
        self.spark = spark.newSession()

    def relation(self, name: str, ddl: str) -> None:
        schema = StructType.fromDDL(ddl)
        empty = to_arrow_schema(schema, timezone="UTC").empty_table()
        self.spark.createDataFrame(empty, schema).createOrReplaceTempView(f"`{name}`")

    def analyse(self, sql: str, origin: Origin, name: str | None = None) -> list[tuple[str, str]]:
        try:
            frame = self.spark.sql(sql)
            if name:
                frame.createOrReplaceTempView(f"`{name}`")
        except (AnalysisException, ParseException, IllegalArgumentException) as error:
            raise translated(error, origin) from error
        require_deterministic(frame, sql, origin)
        return [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]

    def equal(self, sql: str) -> bool:
        """Compares Spark's canonical forms, in which `a + b` is `b + a` and names are
        case-insensitive. Columns that Spark cannot resolve, such as the variable of a lambda, are
        equal to nothing.
        """
        try:
            plan = self.spark.sql(sql)._jdf.queryExecution().analyzed()
            one, other = (column.child() for column in elements(plan.projectList()))
        except (PySparkException, Py4JError, ValueError):
            return False
        return bool(one.semanticEquals(other))


def translated(error: PySparkException, origin: Origin) -> HeadraceError:
    """Spark's error as one of our conditions, with its origin in the user's file."""
    condition = error.getCondition() or ""
    parameters: dict[str, Any] = error.getMessageParameters() or {}
    where = _place(error, origin)
    name = str(parameters.get("objectName", "")).replace("`", "")
    if condition.startswith("UNRESOLVED_COLUMN"):
        proposal = str(parameters.get("proposal", "")).replace("`", "")
        near = [word.strip() for word in proposal.split(",") if not word.strip().startswith("_")]
        close = difflib.get_close_matches(name, [word.split(".")[-1] for word in near], 1)
        return UnknownColumn(
            f"there is no column '{name}'",
            detail=f"similar columns: {', '.join(near)}." if near else None,
            hint=f"did you mean '{close[0]}'?" if close else None,
            origin=where,
        )
    if condition in {"UNRESOLVED_ROUTINE", "UNRESOLVABLE_TABLE_VALUED_FUNCTION"}:
        routine = str(parameters.get("routineName", name)).replace("`", "")
        return UnknownName(
            f"there is no function '{routine}'",
            hint="Spark's functions are available, and those defined in functions.py.",
            origin=where,
        )
    if "DETERMINISTIC" in condition:
        sql = str(parameters.get("sqlExpr") or parameters.get("filterExpr") or "").strip('"')
        return not_deterministic(sql or "a part of the query", where)
    return BadDefinition(sentence(error), detail=condition or None, origin=where)


def sentence(error: PySparkException) -> str:
    """Spark's message without its condition, its SQLSTATE and the quoted query text."""
    text = str(error.getMessage() if hasattr(error, "getMessage") else error)
    text = re.sub(r"^\[[A-Z_.0-9]+\]\s*", "", text.split("\n==")[0].split(";\n")[0])
    text = re.sub(r"\s*SQLSTATE: \w+", "", text)
    text = " ".join(text.split())
    if not text:
        return "the query is not valid"
    word = text.split()[0]
    # A word in capitals, such as GROUP, is not changed.
    first = text[:1] if word.isupper() and len(word) > 1 else text[:1].lower()
    return first + text[1:].rstrip(".")


def _place(error: PySparkException, origin: Origin) -> Origin:
    line = getattr(error, "line", None) or 0
    for context in error.getQueryContext() or []:
        fragment, start = context.fragment(), context.startIndex()
        summary = context.summary()
        match = re.search(r"\(line (\d+), position (\d+)\)", summary)
        if match:
            return origin.below(int(match[1]), int(match[2]))
        if fragment and start >= 0:
            return origin
    match = re.search(r"\(line (\d+), pos (\d+)\)", str(error))
    return origin.below(int(match[1]), int(match[2])) if match else origin.below(line or 1)
