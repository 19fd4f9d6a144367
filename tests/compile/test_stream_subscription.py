"""Which streams can be subscribed to, and why others cannot. Compiled without Spark."""

from __future__ import annotations

import pytest

from headrace.compile.stream_subscription import (
    SubscribedStream,
    is_stream,
    placed,
    subscribed_stream,
)
from headrace.core.errors import HeadraceError, NotFound, Unsupported
from headrace.define.stream_subscription import read_stream_subscription
from tests.serving.bench import STREAM, VIEWS, definitions, plan_of

PLAN = plan_of(
    definitions({"hits": VIEWS["hits"]})
    + STREAM.replace("clicks", "orders")
    + """
CREATE TABLE sections (page STRING, section STRING) USING csv LOCATION 'sections.csv';
CREATE STREAM slow AS SELECT c.page, s.section FROM clicks c LEFT JOIN sections s
  ON c.page = s.page WHERE ms > 900;
CREATE STREAM slower AS SELECT page FROM slow;
CREATE STREAM numbered AS SELECT page, row_number() OVER (PARTITION BY page ORDER BY ts) AS n
  FROM clicks;
CREATE STREAM tenth AS SELECT page FROM numbered WHERE n = 10;
CREATE STREAM bought AS SELECT c.page FROM clicks c JOIN orders o
  ON c.user = o.user AND o.ts BETWEEN c.ts AND c.ts + INTERVAL 1 HOUR;
"""
)
REFUSED: dict[str, tuple[type[HeadraceError], str]] = {
    "numbered": (
        Unsupported,
        "stream 'numbered' is stateful, so it has no position to subscribe from",
    ),
    "tenth": (
        Unsupported,
        "stream 'tenth' is stateful, so it has no position to subscribe from",
    ),
    "bought": (
        Unsupported, "stream 'bought' joins two streams, so it has no position to subscribe from",
    ),
    "clicks WHERE ts > TIMESTAMP 'now'": (
        Unsupported, "'now' is not deterministic",
    ),
}  # fmt: skip


def known(text: str) -> SubscribedStream:
    return subscribed_stream(PLAN, read_stream_subscription(f"SUBSCRIBE TO {text}"))


def test_a_declared_stream_is_its_events() -> None:
    found = known("CLICKS")
    assert (found.name, found.stream.name, found.sql, found.plain) == ("clicks", "clicks", "", True)
    assert not known("clicks WHERE ms > 1").plain


def test_a_stateless_stream_is_a_select_over_one_stream_and_tables() -> None:
    found = known("slower")
    assert (found.stream.name, [table.name for table in found.tables]) == ("clicks", ["sections"])
    assert not found.plain
    assert "slow._partition, slow._offset" in found.sql


def test_where_it_begins_does_not_part_those_who_hear_the_same() -> None:
    assert known("clicks FROM BEGINNING WHERE ms > 1") == known("Clicks where ms>1")


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_told_gets_its_sentence(text: str) -> None:
    kind, sentence = REFUSED[text]
    with pytest.raises(kind) as refused:
        known(text)
    assert refused.value.message == sentence


def test_a_carried_stream_comes_with_what_to_do() -> None:
    with pytest.raises(Unsupported) as refused:
        known("numbered")
    assert refused.value.hint == (
        "add CREATE RULE name AS SELECT * FROM numbered, and "
        "SUBSCRIBE TO alerts WHERE rule = 'name'."
    )


def test_views_and_streams_are_told_apart_and_other_names_are_not_found() -> None:
    assert is_stream(PLAN, "Clicks")
    assert is_stream(PLAN, "numbered"), "it is refused for what it is"
    assert not is_stream(PLAN, "hits")
    with pytest.raises(NotFound) as refused:
        is_stream(PLAN, "click")
    assert refused.value.message == "there is no view or stream 'click'"
    assert refused.value.hint == "did you mean 'clicks'?"
    with pytest.raises(NotFound) as refused:
        is_stream(PLAN, "sections")
    assert str(refused.value.hint).startswith("available: hits, clicks, orders, slow,")


@pytest.mark.parametrize(
    ("sql", "more"),
    [
        ("SELECT * FROM clicks", ""),
        ("SELECT c.*, s.section FROM clicks AS c JOIN s ON TRUE", ""),
        ("SELECT s.* FROM clicks AS c JOIN s ON TRUE", "c._partition, c._offset"),
        ("SELECT page, _offset FROM clicks", "clicks._partition, clicks._arrived_at"),
    ],
)
def test_each_row_has_the_place_of_its_event(sql: str, more: str) -> None:
    assert (more in placed(sql)) if more else placed(sql) == sql
