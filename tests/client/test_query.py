"""What a question asks, and how often."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

from headrace.api.resources.rows import ViewRequest
from headrace.client.client import Client
from tests.api.conftest import ANSWER, Shop


def test_a_question_is_asked_once_with_all_that_was_said(client: Client, shop: Shop) -> None:
    asked = client.view("visitors").where(url="/x y", ok=True).where(gone=None)
    asked = asked.between(datetime(2026, 11, 15, 19), date(2026, 11, 16)).limit(3)
    assert shop.calls == []
    assert asked.answer == ANSWER
    assert (len(asked), asked.as_of, asked.columns) == (1, ANSWER.as_of, ANSWER.columns)
    assert repr(asked)
    assert asked._repr_html_()
    keys, bounds = {"url": "/x y", "ok": "true"}, ("2026-11-15T19:00:00+00:00", "2026-11-16")
    assert shop.calls == [(ViewRequest("visitors", keys, "gone", *bounds, limit=3),)]
    asked.where(gone=1, ok=None).rows()
    keys = {"url": "/x y", "gone": "1"}
    assert shop.calls[1:] == [(ViewRequest("visitors", keys, "ok", *bounds, limit=3),)]


def test_a_question_does_not_change_and_can_be_asked_again(client: Client, shop: Shop) -> None:
    asked = client.view("visitors")
    asked.limit(3)
    assert [row["visitors"] for row in asked] == [2]
    assert asked.again().rows() == asked.rows()
    assert shop.calls == [(ViewRequest("visitors"),)] * 2


def test_a_moment_of_another_zone_keeps_it(client: Client, shop: Shop) -> None:
    zone = timezone(timedelta(hours=2))
    client.view("v").between(datetime(2026, 11, 15, tzinfo=zone), datetime(2026, 1, 1, tzinfo=UTC))
    client.view("v").between(datetime(2026, 11, 15, tzinfo=zone)).rows()
    assert shop.calls == [(ViewRequest("v", since="2026-11-15T00:00:00+02:00"),)]


def test_sql_is_asked_once_too(client: Client, shop: Shop) -> None:
    asked = client.sql("SELECT 1", limit=5)
    assert asked.to_pandas()["visitors"].tolist() == [2]
    assert asked.to_arrow().num_rows == 1
    assert asked.again().answer == ANSWER
    assert shop.calls == [("sql", "SELECT 1", 5)] * 2
