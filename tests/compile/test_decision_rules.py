"""Rules as the SELECT that they are, and the places of errors in decision tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.compile.passes import compile_project
from headrace.compile.plan import Plan
from headrace.core.errors import HeadraceError
from headrace.define.project import Project
from headrace.define.settings import Settings
from headrace.define.statements import read_statements
from headrace.spark.analyse import SparkAnalyser

SOURCES = """
CREATE STREAM calls (route STRING, type INT, seconds BIGINT, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE TABLE routes (route STRING, kind STRING) USING csv LOCATION 'routes.csv';
"""
VIEW = "CREATE VIEW v AS SELECT rule, count(*) AS n FROM d GROUP BY rule;"


@pytest.fixture(scope="module")
def analyser(spark: Any) -> SparkAnalyser:
    return SparkAnalyser(spark)


def compiled(analyser: SparkAnalyser, folder: Path, text: str, table: str = "") -> Plan:
    (folder / "d.csv").write_text(table)
    definitions = tuple(read_statements(SOURCES + text, "calls.sql", folder))
    return compile_project(Project(folder, Settings("calls"), definitions), analyser)


def sql(analyser: SparkAnalyser, folder: Path, text: str, table: str = "") -> str:
    return compiled(analyser, folder, text, table).derived[-1].sql


def test_the_first_match_is_a_case_in_order(analyser: SparkAnalyser, tmp_path: Path) -> None:
    text = """CREATE RULES d ON calls
      RULE a WHEN type = 1 /* so */ THEN SET f = 'x'
      RULE b WHEN type = 2 THEN SET seconds = 0
      RULE c WHEN type = 3 THEN SET f = 'z'
      RULE e WHEN type = 4 THEN SET seconds = 9;"""
    assert sql(analyser, tmp_path, text) == (
        "SELECT calls.`route`, calls.`type`, CASE WHEN type = 1 THEN calls.`seconds` "
        "WHEN type = 2 THEN 0 WHEN type = 3 THEN calls.`seconds` WHEN type = 4 THEN 9 "
        "ELSE calls.`seconds` END AS `seconds`, calls.`ts`, "
        "CASE WHEN type = 1 THEN 'x' WHEN type = 2 THEN NULL WHEN type = 3 THEN 'z' END AS `f`, "
        "CASE WHEN type = 1 THEN 'a' WHEN type = 2 THEN 'b' WHEN type = 3 THEN 'c' "
        "WHEN type = 4 THEN 'e' END AS `rule` FROM calls"
    )


def test_all_matches_are_a_case_from_the_last(analyser: SparkAnalyser, tmp_path: Path) -> None:
    text = """CREATE RULES d ON calls ALL MATCHES
      RULE a WHEN type = 1 THEN SET f = 'x'
      RULE b WHEN type = 2 OR seconds = 0 THEN SET g = 1
      RULE c WHEN type = 3 THEN SET f = 'z'
      ELSE SET f = '?';"""
    found = sql(analyser, tmp_path, text)
    assert (
        "CASE WHEN type = 3 THEN 'z' WHEN type = 1 THEN 'x' WHEN (type = 2 OR seconds = 0) "
        "THEN NULL ELSE '?' END AS `f`, CASE WHEN type = 2 OR seconds = 0 THEN 1 END AS `g`"
    ) in found
    assert (
        "CASE WHEN (type = 1) OR (type = 2 OR seconds = 0) OR (type = 3) THEN array_compact(array("
        "CASE WHEN type = 1 THEN 'a' END, CASE WHEN type = 2 OR seconds = 0 THEN 'b' END, "
        "CASE WHEN type = 3 THEN 'c' END)) ELSE array('else') END AS `rules`"
    ) in found


def test_formatting_a_table_changes_no_fingerprint_and_its_content_does(
    analyser: SparkAnalyser, tmp_path: Path
) -> None:
    text = f"CREATE RULES d ON calls FROM 'd.csv'; {VIEW}"
    tables = (
        "rule,type,SET f\na,1,x\nelse,,y\n",
        "# Again.\nrule;type;SET f\n\na; 1 ;x\nelse;*;y\n",
        "rule,type,SET f\na,1|2,x\nelse,,y\n",
    )
    one, same, other = (compiled(analyser, tmp_path, text, table).views[0] for table in tables)
    assert one.fingerprint == same.fingerprint
    assert one.recompute != other.recompute


def test_a_table_means_the_same_as_its_sql(analyser: SparkAnalyser, tmp_path: Path) -> None:
    table = "rule,type,r.kind,SET f\na,1|2,incoming,x\nelse,,,y\n"
    source = "ON calls c LEFT JOIN routes r ON c.route = r.route"
    written = "RULE a WHEN ((type) IN (1, 2)) AND ((r.kind) = 'incoming') THEN SET f = 'x'"
    by_table = sql(analyser, tmp_path, f"CREATE RULES d {source} FROM 'd.csv';", table)
    by_hand = sql(analyser, tmp_path, f"CREATE RULES d {source} {written} ELSE SET f = 'y';")
    assert by_table == by_hand


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            "rule,typ,SET f\na,1,x\n",
            "UnknownColumn: column 'typ': there is no column 'typ'\n"
            "  detail: similar columns: c.ts, c.type, c._late, r.kind, c.route.\n"
            "  hint: did you mean 'type'?\n"
            "  at d.csv:1",
        ),
        (
            "rule,route,SET f\na,,x\nb,1,y\n",
            "BadDefinition: column 'route': reference `route` is ambiguous, could be: [`c`.`route`,"
            " `r`.`route`]\n  detail: AMBIGUOUS_REFERENCE\n  at d.csv:1",
        ),
        (
            "rule,type,SET f\na,1,x\nb,O,y\n",
            "BadDefinition: rule 'b', row 3, column 'type': 'O' is not a number, and type is INT\n"
            "  at d.csv:3",
        ),
        (
            "rule,type,SET f\na,=5,x\n",
            "BadDefinition: rule 'a', row 2, column 'type': expected a BOOLEAN condition, "
            "got '5', which is INT\n"
            "  hint: write a comparison; in a decision table, a literal alone means equality.\n"
            "  at d.csv:2",
        ),
        (
            "rule,type,SET f\na,1,x\nb,2,=secs\n",
            "UnknownColumn: rule 'b', row 3, column 'SET f': there is no column 'secs'\n"
            "  detail: similar columns: c.ts, c.seconds, r.kind, c.type, c._late.\n"
            "  hint: did you mean 'seconds'?\n"
            "  at d.csv:3",
        ),
        (
            "rule,type,SET f\na,1,=upper('x'\n",
            "BadDefinition: rule 'a', row 2, column 'SET f': expecting ) near ''x''\n  at d.csv:2",
        ),
        (
            "rule,type,SET f\na,1,x\na,2,y\n",
            "BadDefinition: rules 'd' have two rules named 'a'\n  at d.csv:3",
        ),
        (
            "rule,type,SET _late\na,1,true\n",
            "BadDefinition: rule 'a', row 2, column 'SET _late': field names that begin with "
            "'_' are reserved: '_late'\n  at d.csv:2",
        ),
        (
            "rule,type,SET ts\na,1,x\n",
            "Unsupported: rule 'a', row 2, column 'SET ts': rules cannot set 'ts', the event time "
            "of 'calls'\n"
            "  hint: set another field, or shift time in a CREATE STREAM … AS.\n  at d.csv:2",
        ),
    ],
)
def test_a_mistake_in_a_table_is_told_with_row_and_column(
    analyser: SparkAnalyser, tmp_path: Path, table: str, sentence: str
) -> None:
    text = "CREATE RULES d ON calls c LEFT JOIN routes r ON c.route = r.route FROM 'd.csv';"
    with pytest.raises(HeadraceError) as caught:
        compiled(analyser, tmp_path, text, table)
    assert str(caught.value) == sentence


def test_a_joined_stream_may_be_one_of_rules(analyser: SparkAnalyser, tmp_path: Path) -> None:
    text = """CREATE RULES d ON calls RULE a WHEN type = 1 THEN SET f = 'x';
    CREATE STREAM ends (call STRING, at TIMESTAMP, WATERMARK at DELAY OF INTERVAL 1 MINUTE);
    CREATE VIEW v AS SELECT d.rule, count(*) AS n FROM d JOIN ends e
      ON f = e.call AND e.at BETWEEN d.ts AND d.ts + INTERVAL 1 MINUTE GROUP BY d.rule;"""
    (view,) = compiled(analyser, tmp_path, text).views
    assert view.stream == "calls+ends"
