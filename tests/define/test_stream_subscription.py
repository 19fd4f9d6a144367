"""What SUBSCRIBE says of a stream, and what it cannot say."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadQuery
from headrace.core.subscription import StreamSubscription
from headrace.define.stream_subscription import read_stream_subscription, subscribed_name

SENTENCES = {
    "SELECT 1": "expected SUBSCRIBE, got 'SELECT'",
    "SUBSCRIBE TO s FROM": "expected BEGINNING, got the end of the statement",
    "SUBSCRIBE TO s FROM 3,4": "expected BEGINNING, got '3'",
    "SUBSCRIBE TO s WHERE": "expected a condition after WHERE",
    "SUBSCRIBE TO s WHERE a > 1 LIMIT 3": "only a condition may follow WHERE",
    "SUBSCRIBE TO s WHERE a IN (SELECT b FROM t)":
        "subqueries are not allowed in the condition after WHERE",
    "SUBSCRIBE TO s WHERE a = 1 FROM BEGINNING": "unexpected 'FROM'",
    "SUBSCRIBE TO s EMIT INSERTS": "EMIT requires a view; 's' is a stream",
    "SUBSCRIBE TO s WHERE a = 1 EMIT CHANGES": "EMIT requires a view; 's' is a stream",
    "SUBSCRIBE TO s accumulating": "ACCUMULATING requires a view; 's' is a stream",
    "SUBSCRIBE TO s RETRACTING": "RETRACTING requires a view; 's' is a stream",
    "SUBSCRIBE TO s TWICE": "expected the end of the statement, got 'TWICE'",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("subscribe to s;", StreamSubscription("s")),
        ("SUBSCRIBE TO s FROM BEGINNING", StreamSubscription("s", beginning=True)),
        ("SUBSCRIBE TO s WHERE a = b", StreamSubscription("s", "a = b")),
        ("SUBSCRIBE TO s WHERE a=1 and b='x''y'", StreamSubscription("s", "a = 1 AND b = 'x''y'")),
        (
            "SUBSCRIBE TO s from beginning where (ms>900 OR ms IS NULL)",
            StreamSubscription("s", "(ms > 900 OR ms IS NULL)", True),
        ),
    ],
)
def test_a_condition_is_any_of_sql(text: str, asked: StreamSubscription) -> None:
    assert read_stream_subscription(text) == asked


@pytest.mark.parametrize("text", SENTENCES)
def test_what_cannot_be_read_gets_its_sentence(text: str) -> None:
    with pytest.raises(BadQuery) as refused:
        read_stream_subscription(text)
    assert refused.value.message == SENTENCES[text]


def test_words_of_views_come_with_what_to_do() -> None:
    with pytest.raises(BadQuery) as refused:
        read_stream_subscription("SUBSCRIBE TO s\nEMIT ON TIME")
    assert refused.value.hint == ("leave it out: each row of a stream is sent once, as it arrives.")
    assert str(refused.value.origin) == "subscription:2"


def test_name_is_known_whatever_stands_after_it() -> None:
    assert subscribed_name("SUBSCRIBE TO visitors EMIT what is this") == "visitors"
