"""What CREATE WATCH says, and the sentence for each mistake."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.core.rule import Severity
from headrace.core.time import from_iso
from headrace.define.definitions import WatchDefinition
from headrace.define.statements import read_statements
from headrace.destination.call import CallDestination
from headrace.destination.file import FileDestination

SELECT = "SELECT * FROM prices WHERE megapixel >= 10 AND price < 100"


def read(text: str) -> WatchDefinition:
    (found,) = read_statements(text, "a.sql")
    assert isinstance(found, WatchDefinition)
    return found


def test_a_watch_is_read_with_all_its_clauses() -> None:
    text = (
        f"CREATE WATCH cheap AS {SELECT}\nUNTIL '2027-01-15' AFTER 3 MATCHES WHEN (price < (50))\n"
        "SEVERITY 'high' NOTIFY FILE 'a.ndjson', CALL ring"
    )
    watch = read(text)
    assert (watch.name, watch.text, watch.query) == ("cheap", text, SELECT)
    assert watch.until_us == from_iso("2027-01-15T00:00:00Z")
    assert watch.matches_max == 3
    assert watch.when is not None
    assert watch.when.sql == "price < (50)"
    assert watch.severity is Severity.HIGH
    assert watch.destinations == (FileDestination("a.ndjson"), CallDestination("ring"))


@pytest.mark.parametrize(
    ("end", "query"),
    [
        ("UNTIL '2027-01-15T08:30:00Z'", SELECT),
        ("AFTER 1 MATCH", f"{SELECT} AND CASE WHEN price > 3 THEN TRUE END"),
        ("WHEN (price < 5)", "SELECT item, until, after FROM prices WHERE until > 3"),
    ],
)
def test_the_select_ends_where_a_clause_begins(end: str, query: str) -> None:
    assert read(f"CREATE WATCH w AS {query} {end}").query == query


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        ("", "watch 'w' has no end: add UNTIL 'a date', AFTER n MATCHES or WHEN (condition)"),
        ("UNTIL 'soon'", "'soon' is not a date or timestamp such as '2027-01-15'"),
        ("AFTER 0 MATCHES", "AFTER requires a number of matches from 1 to 1000000000, got 0"),
        ("AFTER 3 TIMES", "expected MATCHES, got 'TIMES'"),
        ("WHEN ()", "WHEN requires a condition in parentheses"),
        ("AFTER 1 MATCH AFTER 2 MATCHES", "AFTER is given twice"),
        ("AFTER 1 MATCH COUPLING EPOCH", "expected the end of the statement, got 'COUPLING'"),
    ],
)
def test_each_mistake_has_its_sentence(rest: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        read(f"CREATE WATCH w AS {SELECT} {rest}")
    assert refused.value.message == sentence
