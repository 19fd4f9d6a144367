"""The SQL of the pages means what they say: definitions compile, refusals read as written, and
queries are answerable. The blocks of a page are one project.
"""

from __future__ import annotations

import re
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace.certified.relation import ReadRelation
from headrace.certified.select import compile_query
from headrace.compile.finish import answer_columns
from headrace.compile.passes import compile_project
from headrace.compile.plan import Plan
from headrace.compile.stream_subscription import subscribed_stream
from headrace.compile.view_subscription import shape_of
from headrace.core.errors import HeadraceError
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query
from headrace.define.functions import FunctionDefinition, load_functions
from headrace.define.project import Project, duplicate_definitions
from headrace.define.settings import Settings, read_settings
from headrace.define.statements import read_statements
from headrace.define.stream_subscription import read_stream_subscription
from headrace.define.view_subscription import read_subscription
from headrace.ingest.connector import check_options
from headrace.run.compiling import processors_of
from headrace.run.query_service import _as_of_query, _names, _translate
from headrace.spark.allowed_sql import check_sql
from headrace.spark.analyse import SparkAnalyser
from headrace.spark.functions import register_functions
from headrace.spark.pattern_query import MATCHES, is_pattern_query, pattern_frame

from .pages import Block, blocks, write_files

SQL_PAGES = sorted({block.page for block in blocks("sql", mark="definitions")})
REFUSED, QUERIES = blocks("sql", mark="refused"), blocks("sql", mark="query")


def definitions(page: str) -> str:
    """All definitions of a page; each at its own line, so that an error names it."""
    return "\n".join(b.text for b in blocks("sql", mark="definitions") if b.page == page)


def settings(page: str) -> Settings:
    """Those that a page shows for its rules; else the defaults."""
    shown = [block for block in blocks("toml") if block.page == page and "[notify]" in block.text]
    table = tomllib.loads(shown[0].text) if shown else {"name": "docs"}
    return read_settings(table, Origin(page, 1))


def functions(page: str, folder: Path) -> tuple[FunctionDefinition, ...]:
    found = [block for block in blocks("python", mark="functions") if block.page == page]
    if not found:
        return ()
    (folder / "functions.py").write_text("\n".join(block.text for block in found), "utf-8")
    return load_functions(folder / "functions.py")


def compiled(spark: Any, page: str, folder: Path, more: str = "") -> Plan:
    """The definitions of a page; if there is one more, that one and those which it needs."""
    write_files(page, folder)
    statements = list(read_statements(definitions(page) + more, page, folder))
    statements = needed(statements, more) if more else statements
    for mistake in duplicate_definitions(statements):
        raise mistake
    project = Project(folder, settings(page), tuple(statements))
    for stream in project.streams.values():
        check_options(stream)
    analyser = SparkAnalyser(spark)
    register_functions(analyser.spark, functions(page, folder))
    return compile_project(project, analyser, processors_of(project))


def needed(statements: list[Any], text: str) -> list[Any]:
    """Those whose names are said in the text, or by one of them."""
    found: list[Any] = []
    while len(found) != len(
        found := [s for s in statements if re.search(rf"\b{s.name}\b", text, re.IGNORECASE)]
    ):
        text += repr(found)
    return found


@pytest.mark.parametrize("page", SQL_PAGES)
def test_the_definitions_of_a_page_compile(page: str, spark: Any, tmp_path: Path) -> None:
    assert compiled(spark, page, tmp_path).views


@pytest.mark.parametrize("block", REFUSED, ids=str)
def test_what_is_refused_gets_its_sentence(block: Block, spark: Any, tmp_path: Path) -> None:
    sentence, _, statement = block.text.partition("\n")
    with pytest.raises(HeadraceError) as raised:
        compiled(spark, block.page, tmp_path, statement)
    assert f"-- {raised.value.condition}: {raised.value.message}" == sentence


@pytest.fixture(scope="module")
def plan(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return compiled(spark, "docs/sql.md", tmp_path_factory.mktemp("sql"))


@pytest.mark.parametrize("block", blocks("sql", mark="subscription"), ids=str)
def test_subscriptions_can_be_heard(block: Block, plan: Plan) -> None:
    asked = read_subscription(block.text)
    assert shape_of(plan, asked).streams == ("clicks",)


@pytest.mark.parametrize("block", blocks("sql", mark="following"), ids=str)
def test_streams_can_be_heard(block: Block, plan: Plan, spark: Any) -> None:
    known = subscribed_stream(plan, read_stream_subscription(block.text))
    assert known.stream.name == "clicks"
    condition = known.condition or "true"
    check_sql(spark, f"SELECT * FROM clicks WHERE {condition}", relations=["clicks"])


@pytest.mark.parametrize("block", QUERIES, ids=str)
def test_queries_can_be_answered(block: Block, plan: Plan, spark: Any) -> None:
    if is_pattern_query(block.text):
        assert pattern_frame(
            spark, block.text, partial(check_sql, spark, relations=[MATCHES])
        ).count()
        return
    views = {view.name.lower(): view for view in plan.views}
    names = _names(block.text, len(block.text))
    if names <= views.keys():
        query = parse_query(block.text, Origin(block.page, block.line))
        relations = {name: ReadRelation(name, answer_columns(view)) for name, view in views.items()}
        assert compile_query(query, relations.get).columns
        return
    text, moments = _translate(block.text)
    assert all(_as_of_query(*moment, 2) for moment in moments.values())
    relations = [each.name for each in (*plan.streams, *plan.tables, *plan.derived)]
    check_sql(spark, text.strip(), relations=[*relations, *moments])
