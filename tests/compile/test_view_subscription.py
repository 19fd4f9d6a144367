"""What a view is to a subscriber, and in which ways it cannot be told."""

from __future__ import annotations

import pytest

from headrace.compile.view_subscription import shape_of
from headrace.core.errors import (
    BadRequest,
    HeadraceError,
    NotFound,
    UnknownColumn,
    Unsupported,
)
from headrace.core.subscription import ViewShape
from headrace.define.view_subscription import read_subscription
from tests.serving.bench import STREAM, VIEWS, definitions, plan_of

MORE = VIEWS | {
    "sums": "SELECT page, sum(ms) AS total, count(*) AS n, count(user) AS known "
    "FROM clicks GROUP BY page",
    "hidden": "SELECT count(*) AS n FROM clicks GROUP BY page",
    "quoted": "SELECT page, 'order by' AS words FROM hits",
    "visits": "SELECT page, session_window(ts, '5 seconds') AS visit, count(*) AS n "
    "FROM clicks GROUP BY page, session_window(ts, '5 seconds')",
    "nameless": "SELECT session_window(ts, '5 seconds') AS visit, count(*) AS n "
    "FROM clicks GROUP BY page, session_window(ts, '5 seconds')",
    "long": "SELECT page, visit, n FROM visits WHERE n > 9",
    "sets": "SELECT page, collect_set(user) AS users FROM clicks GROUP BY page",
    "listed": "SELECT page, users FROM sets",
    "some": "SELECT page, count(*) FILTER (WHERE ms > 1) AS n FROM clicks GROUP BY page",
}
PLAN = plan_of(definitions(MORE))
REFUSED: dict[str, tuple[type[HeadraceError], str]] = {
    "hots": (NotFound, "there is no view 'hots'"),
    "hits WHERE m = 1": (
        BadRequest, "'m' is not a column of view 'hits' that can be compared with a value",
    ),
    "hits WHERE minute = 1": (
        BadRequest, "'minute' is not a column of view 'hits' that can be compared with a value",
    ),
    "hits WHERE m > 1": (UnknownColumn, "there is no column 'm'"),
    "hits WHERE minute > 1": (
        Unsupported, "a comparison of a window with INT is not available over views",
    ),
    "listed WHERE users = 'ada'": (
        Unsupported, "'=' of ARRAY<STRING> and STRING is not available over views",
    ),
    "hits WHERE load_extension(page) > 1": (
        Unsupported, "'load_extension' is not available over views",
    ),
    "total EMIT ON TIME": (
        Unsupported, "view 'total' has no window, so none of its rows is on time or late",
    ),
    "users EMIT EARLY EVERY 3 EVENTS": (
        Unsupported,
        "EVERY n EVENTS requires the number of events of each row, but view 'users' does not "
        "select it",
    ),
    "some EMIT EARLY EVERY 3 EVENTS": (
        Unsupported,
        "EVERY n EVENTS requires the number of events of each row, but view 'some' does not "
        "select it",
    ),
    "hits DISCARDING": (
        Unsupported, "column 'slowest' of view 'hits' cannot be sent DISCARDING",
    ),
    "users DISCARDING": (Unsupported, "column 'users' of view 'users' cannot be sent DISCARDING"),
    "pages DISCARDING": (
        Unsupported, "DISCARDING requires all keys, but view 'pages' does not select all of them",
    ),
    "hidden EMIT EARLY EVERY 3 EVENTS": (
        Unsupported,
        "EVERY n EVENTS requires all keys, but view 'hidden' does not select all of them",
    ),
    "nameless EMIT ON TIME": (
        Unsupported,
        "view 'nameless' has session windows but does not select all of its keys, so a session "
        "cannot be retracted when it is merged with another",
    ),
    "long EMIT ALLOWED LATENESS INTERVAL 1 SECOND": (
        Unsupported,
        "view 'long' has session windows but does not select all of its keys, so a session "
        "cannot be retracted when it is merged with another",
    ),
    "hidden DISCARDING": (
        Unsupported, "DISCARDING requires all keys, but view 'hidden' does not select all of them",
    ),
}  # fmt: skip


def shape(text: str) -> ViewShape:
    return shape_of(PLAN, read_subscription(f"SUBSCRIBE TO {text}"))


def test_row_is_known_by_its_keys() -> None:
    assert shape("hits") == ViewShape(
        "hits", ("page", "minute", "n", "slowest"), ("page", "minute"), "minute", "n", ("clicks",)
    )
    assert shape("total").keys == ()


def test_row_without_all_its_keys_is_known_by_its_values() -> None:
    assert shape("pages").keys is None
    assert shape("hidden").keys is None
    assert shape("pages").streams == ("clicks",)


def test_sessions_are_known_as_such() -> None:
    assert shape("visits EMIT ON TIME").sessions
    assert not shape("hits EMIT ON TIME").sessions
    assert not shape("nameless").sessions, "a row is known by its values"
    assert shape("long").keys is None


def test_counts_and_sums_can_be_told_as_differences() -> None:
    assert shape("sums DISCARDING").count == "n"
    assert shape("some DISCARDING").count is None


def test_order_is_a_part_of_some_answers() -> None:
    assert shape("top EMIT RELATION").ordered
    assert not shape("hits EMIT RELATION").ordered
    assert not shape("quoted EMIT RELATION").ordered


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_told_gets_its_sentence(text: str) -> None:
    kind, sentence = REFUSED[text]
    with pytest.raises(kind) as refused:
        shape(text)
    assert refused.value.message == sentence


def test_stream_without_a_watermark_has_windows_that_never_end() -> None:
    bare = STREAM.replace(",\n  WATERMARK ts DELAY OF INTERVAL 10 SECONDS", "")
    plan = plan_of(definitions({"hits": VIEWS["hits"]}, bare))
    with pytest.raises(Unsupported) as refused:
        shape_of(plan, read_subscription("SUBSCRIBE TO hits EMIT ON TIME"))
    assert refused.value.message == (
        "view 'hits' reads stream 'clicks', which has no watermark, so its windows never close"
    )
