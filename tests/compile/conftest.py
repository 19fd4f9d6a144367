"""A project's text, compiled with Spark's analyser: one for each module that asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.compile.passes import compile_project
from headrace.compile.plan import Plan
from headrace.define.project import Project
from headrace.define.settings import Settings
from headrace.define.statements import read_statements

Compile = Callable[..., Plan]

SOURCES = """
CREATE STREAM clicks (user STRING, url STRING, ms INT, bytes BIGINT, price DOUBLE, ok BOOLEAN,
  tags ARRAY<STRING>, day DATE, ts TIMESTAMP);
CREATE TABLE pages (url STRING, section STRING) USING csv LOCATION 'pages.csv';
"""


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compile CREATE statements, in the folder of a project that may have functions.py."""
    from headrace.spark.analyse import SparkAnalyser

    analyser = SparkAnalyser(spark)
    empty = tmp_path_factory.mktemp("project")

    def compile_(sql: str, sources: str = SOURCES, folder: Path = empty) -> Plan:
        definitions = tuple(read_statements(sources + sql, "shop.sql"))
        return compile_project(Project(folder, Settings("shop"), definitions), analyser)

    return compile_
