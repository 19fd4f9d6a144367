"""The small reader of CREATE statements."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.core.schema import Type
from headrace.core.time import DAY
from headrace.testing.declarations import read_declarations

SQL = """
-- a comment; with a semicolon
CREATE STREAM clicks (
  user STRING NOT NULL, ts TIMESTAMP NOT NULL, tags ARRAY<STRING>, code VARCHAR(3),
  WATERMARK ts DELAY OF INTERVAL 10 MINUTES
) WITH (source = 'http', id = 'event_id');
create table Sections (url STRING) USING json LOCATION 'sections.json';
CREATE STREAM odd AS SELECT * FROM clicks WHERE user = 'a;b' AND code <> ')';
CREATE VIEW n AS SELECT count(*) AS n FROM odd
"""


def test_everything_that_is_created_is_read() -> None:
    found = read_declarations(SQL)
    clicks = found.stream("CLICKS")
    assert [column.name for column in clicks.columns] == ["user", "ts", "tags", "code"]
    assert [column.nullable for column in clicks.columns] == [False, False, True, True]
    assert clicks.columns[2].type == Type.array_of(Type("STRING"))
    assert (clicks.time_column, clicks.delay_us, clicks.id_field) == ("ts", 600_000_000, "event_id")
    assert [table.location for table in found.tables] == ["sections.json"]
    assert [(query.name, query.kind) for query in found.queries] == [
        ("odd", "stream"),
        ("n", "view"),
    ]
    assert found.queries[0].text.endswith("user = 'a;b' AND code <> ')'")


def test_a_watch_is_read_with_its_ends() -> None:
    (watch,) = read_declarations(
        "CREATE WATCH w AS SELECT * FROM clicks WHERE (ms > 1) AND user = 'a'\n"
        "WHEN (ms > 2 AND (ok)) NOTIFY FILE 'x' UNTIL '1970-01-02' AFTER 3 MATCHES"
    ).watches
    assert watch.text == "SELECT * FROM clicks WHERE (ms > 1) AND user = 'a'"
    assert (watch.when, watch.until_us, watch.matches_max) == ("ms > 2 AND (ok)", DAY, 3)


def test_what_is_not_a_definition_is_refused() -> None:
    with pytest.raises(BadDefinition, match="does not support this statement: DROP TABLE x"):
        read_declarations("DROP TABLE x")
    with pytest.raises(BadDefinition, match="a parenthesis is not closed"):
        read_declarations("CREATE STREAM s (a STRING")
