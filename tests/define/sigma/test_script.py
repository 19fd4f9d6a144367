"""Sigma files beside the SQL that is made of them, and beside the sentences of what is not.

`streams.sql` has the stream that all of them need.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.compile.passes import compile_project
from headrace.core.errors import BadDefinition, Unsupported
from headrace.define.definitions import QueryDefinition, RuleDefinition
from headrace.define.project import Project, duplicate_definitions
from headrace.define.settings import Settings
from headrace.define.sigma.script import SigmaScript, translate
from headrace.define.statements import read_statements
from headrace.spark.analyse import SparkAnalyser

HERE = Path(__file__).parent
FILES = sorted(path.name for path in HERE.glob("*.yml"))


def script(*names: str, **options: Any) -> SigmaScript:
    return translate([(name, (HERE / name).read_text("utf-8")) for name in names], **options)


def one(text: str, **options: Any) -> SigmaScript:
    return translate([("a.yml", text)], **options)


@pytest.mark.parametrize("name", FILES)
def test_a_file_becomes_the_sql_beside_it(name: str) -> None:
    made = script(name, keywords_in="message" if name == "keywords.yml" else None)
    assert made.sql == (HERE / name).with_suffix(".sql").read_text("utf-8")
    sentences = HERE / f"{Path(name).stem}.txt"
    expected = sentences.read_text("utf-8") if sentences.exists() else ""
    assert "".join(f"{error}\n" for error in made.errors) == expected
    assert all(isinstance(error, Unsupported) for error in made.errors)


@pytest.mark.parametrize("name", FILES)
def test_what_is_made_can_be_read_and_is_named_as_told(name: str) -> None:
    made = script(name)
    read = read_statements(made.sql, "rules.sql")
    assert tuple(d.name for d in read if isinstance(d, RuleDefinition)) == made.rules
    assert all(isinstance(d, RuleDefinition | QueryDefinition) for d in read)


def test_all_that_is_made_compiles_on_spark(spark: Any, tmp_path: Path) -> None:
    text = (HERE / "streams.sql").read_text("utf-8") + script(*FILES, keywords_in="message").sql
    statements = read_statements(text, "all.sql")
    assert list(duplicate_definitions(statements)) == []
    project = Project(tmp_path, Settings(name="sigma"), tuple(statements))
    plan = compile_project(project, SparkAnalyser(spark))
    assert [rule.name for rule in plan.rules] == [*script(*FILES, keywords_in="message").rules]


def test_the_same_files_make_the_same_sql_and_names_are_given_once() -> None:
    twice = "title: Same\ndetection: {s: {a: 1}, condition: s}\n"
    made = one(f"{twice}---\n{twice}", stream="same")
    assert made.rules == ("same_2", "same_3")
    assert made == one(f"{twice}---\n{twice}", stream="same")


def test_stream_and_time_have_the_names_that_are_given() -> None:
    made = script("orders.yml", stream="audit_log", time="timestamp")
    assert (
        "SELECT * FROM audit_log MATCH_RECOGNIZE (\n  PARTITION BY user ORDER BY `timestamp`"
        in (made.sql)
    )


def test_rules_of_one_file_serve_correlations_of_another() -> None:
    base = "name: b\ntitle: B\ndetection: {s: {a: 1}, condition: s}"
    both = "title: C\ncorrelation: {type: event_count, rules: b, timespan: 1m, condition: {gt: 1}}"
    assert translate([("c.yml", both), ("b.yml", base)]).rules == ("c",)
    loud = both.replace("rules: b", "rules: b, generate: true")
    assert translate([("c.yml", loud), ("b.yml", base)]).rules == ("c", "b")


def test_nothing_that_a_rule_says_becomes_sql_of_its_own() -> None:
    made = one(
        'title: "a\\n; DROP TABLE x; --"\nlogsource: {product: "p\\nq"}\n'
        'detection: {s: {"a; b\'c": "x\'; y\\\\"}, condition: s}'
    )
    [rule] = read_statements(made.sql, "rules.sql")
    assert rule.name == "a_drop_table_x"
    assert isinstance(rule, RuleDefinition)
    assert rule.query == "SELECT * FROM events\nWHERE lower(a__b_c) = 'x''; y\\\\'"


def test_a_column_that_a_refused_rule_alone_needs_is_not_asked_for() -> None:
    assert set(script("refused.yml").columns) == {"b"}


def test_a_file_that_is_no_yaml_is_told_and_the_others_are_made() -> None:
    good = "title: B\ndetection: {s: {a: 1}, condition: s}"
    made = translate([("bad.yml", "title: [a"), ("good.yml", good)])
    assert made.rules == ("b",)
    [error] = made.errors
    assert isinstance(error, BadDefinition)
    assert error.message.startswith("bad.yml is not valid YAML: ")
