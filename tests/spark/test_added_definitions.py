"""What a rule or watch may say depends on where it comes from: the files are trusted, and what was
added is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import HeadraceError
from headrace.define.project import Project
from headrace.define.settings import Settings
from headrace.define.statements import read_statements
from headrace.spark.added_definitions import check_added

CALL = "reflect('java.lang.System', 'getenv', 'HOME')"
STREAMS = (
    "CREATE STREAM ev (k STRING, v INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 SECOND);"
    "CREATE STREAM secrets (v INT);"
)


def matched(
    measure: str = "a.v", order: str = "ts", define: str = "a.v > 1", rest: str = ""
) -> str:
    return (
        f"CREATE RULE r AS SELECT * FROM ev MATCH_RECOGNIZE (PARTITION BY k ORDER BY {order} "
        f"MEASURES {measure} AS m PATTERN (a b*$) DEFINE a AS {define}) {rest}"
    )


GOOD = [
    "CREATE RULE r AS SELECT k, upper(k) AS u FROM ev WHERE v > 1 AND shout(k) = 'A'",
    "CREATE RULE r AS SELECT state FROM alerts WHERE state = 'open'",
    "CREATE RULE r AS SELECT v FROM ev WHERE k = 'reflect(1)'",
    "CREATE WATCH w AS SELECT v FROM ev WHERE v > 1 AFTER 2 MATCHES WHEN (v > 9)",
    "CREATE RULE r AS count(DISTINCT lower(k)) >= 3 WITHIN INTERVAL 1 MINUTE PER v FROM ev",
    matched(),
    matched(measure="final last(a.v) + sum(b.v) + match_number()", define="v > prev(v, 2)"),
]
HOSTILE = [
    f"CREATE RULE r AS SELECT {CALL} AS x FROM ev",
    f"CREATE RULE r AS SELECT v FROM ev WHERE k = {CALL}",
    "CREATE RULE r AS SELECT v FROM ev WHERE k = `reflect`('java.lang.System', 'nanoTime')",
    "CREATE RULE r AS SELECT v FROM ev WHERE k = java_method('java.lang.System', 'nanoTime')",
    "CREATE RULE r AS SELECT * FROM text.ev",
    "CREATE RULE r AS SELECT * FROM ev WHERE k = '${env:HOME}'",
    "CREATE RULE r AS SELECT repeat(k, v) AS x FROM ev",
    f"CREATE WATCH w AS SELECT v FROM ev WHERE {CALL} = 'x' AFTER 1 MATCH",
    f"CREATE WATCH w AS SELECT v FROM ev AFTER 1 MATCH WHEN ({CALL} = k)",
    f"CREATE RULE r AS count(DISTINCT {CALL}) >= 3 WITHIN INTERVAL 1 MINUTE PER v FROM ev",
    f"CREATE RULE r AS count(*) >= 3 WITHIN INTERVAL 1 MINUTE PER v FROM ev WHERE k = {CALL}",
    matched(measure=CALL),
    matched(order=CALL),
    matched(define=f"{CALL} = a.k"),
    matched(rest=f"WHERE m = {CALL}"),
]


def project_of(text: str, *, added: bool) -> Project:
    files = Project(Path(), Settings(name="p"), tuple(read_statements(STREAMS, "p.sql")))
    said = read_statements(text, "rule")
    if added:
        return files.with_added(said)
    return Project(files.folder, files.settings, (*files.definitions, *said))


@pytest.mark.parametrize("text", GOOD)
def test_a_definition_that_computes_may_be_added(spark: Any, text: str) -> None:
    check_added(spark, project_of(text, added=True), ["shout"])


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_definition_may_stand_in_the_files_alone(spark: Any, text: str) -> None:
    check_added(spark, project_of(text, added=False), [])
    with pytest.raises(HeadraceError) as refused:
        check_added(spark, project_of(text, added=True), [])
    assert refused.value.condition == "Refused"
    assert str(refused.value.origin).startswith("rule:")


def test_the_refusal_names_the_definition(spark: Any) -> None:
    with pytest.raises(HeadraceError) as refused:
        check_added(spark, project_of(HOSTILE[0], added=True), [])
    assert refused.value.message == "rule 'r' may not use the function 'reflect'"
