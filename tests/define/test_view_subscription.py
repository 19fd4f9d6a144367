"""What SUBSCRIBE says, and what it cannot say."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadQuery
from headrace.core.subscription import CHANGE, Every, Form, Mode, Subscription, emission
from headrace.core.time import HOUR, MINUTE, SECOND
from headrace.define.view_subscription import read_subscription

SENTENCES = {
    "": "expected a single SUBSCRIBE statement",
    "SUBSCRIBE TO a; SUBSCRIBE TO b": "expected a single SUBSCRIBE statement",
    "SELECT 1": "expected SUBSCRIBE, got 'SELECT'",
    "SUBSCRIBE TO": "expected a name for the view or stream: letters, digits and '_'",
    "SUBSCRIBE TO v FROM BEGINNING": "FROM BEGINNING requires a stream; 'v' is a view",
    "SUBSCRIBE TO v EMIT": "expected a trigger after EMIT",
    "SUBSCRIBE TO v EMIT SOMETIMES": "expected a trigger after EMIT",
    "SUBSCRIBE TO v EMIT ON TIME,": "expected a trigger after EMIT",
    "SUBSCRIBE TO v EMIT ON TIME, ON TIME": "ON is given twice",
    "SUBSCRIBE TO v EMIT EARLY EVERY 0 EVENTS":
        "EVERY requires a number of EVENTS or an INTERVAL, not '0'",
    "SUBSCRIBE TO v EMIT EARLY EVERY x":
        "EVERY requires a number of EVENTS or an INTERVAL, not 'x'",
    "SUBSCRIBE TO v EMIT EARLY EVERY 3 CLICKS": "expected EVENTS, got 'CLICKS'",
    "SUBSCRIBE TO v EMIT EARLY EVERY INTERVAL 0 SECONDS":
        "the interval must be greater than zero",
    "SUBSCRIBE TO v EMIT EARLY EVERY INTERVAL 3 APPLES":
        "the interval is not valid: 'APPLES' is not a unit of time; use microseconds, "
        "milliseconds, seconds, minutes, hours, days or weeks",
    "SUBSCRIBE TO v WHERE a = NULL": "a key cannot be compared with NULL",
    "SUBSCRIBE TO v WHERE a = 1 AND a = 2": "the key 'a' is given twice",
    "SUBSCRIBE TO v WHERE EMIT INSERTS": "expected a condition after WHERE",
    "SUBSCRIBE TO v WHERE a > 1 LIMIT 3": "only a condition may follow WHERE",
    "SUBSCRIBE TO v WHERE a IN (SELECT b FROM w)":
        "subqueries are not allowed in the condition after WHERE",
    "SUBSCRIBE TO v RETRACTING DISCARDING":
        "expected the end of the statement, got 'DISCARDING'",
    "SUBSCRIBE TO v EMIT INSERTS RETRACTING":
        "expected the end of the statement, got 'RETRACTING'",
}  # fmt: skip


def test_without_emit_every_change_is_asked_for() -> None:
    assert read_subscription("subscribe to v;") == Subscription("v")
    assert read_subscription("SUBSCRIBE TO v EMIT CHANGES") == Subscription("v")


def test_all_triggers_together() -> None:
    asked = read_subscription(
        "SUBSCRIBE TO v WHERE page = '/a' AND n = -3 EMIT EARLY EVERY INTERVAL 1 SECOND, ON TIME, "
        "LATE EVERY 5 EVENTS, ALLOWED LATENESS INTERVAL 1 HOUR 30 MINUTES RETRACTING"
    )
    assert asked == Subscription(
        "v", (("page", "/a"), ("n", "-3")), mode=Mode.RETRACTING, on_time=True,
        early=Every(interval_us=SECOND), late=Every(events=5), lateness_us=HOUR + 30 * MINUTE,
    )  # fmt: skip


def test_commas_and_the_order_of_triggers_do_not_matter() -> None:
    one = read_subscription("SUBSCRIBE TO v EMIT ON TIME EARLY EVERY 1 EVENT")
    assert one == read_subscription("SUBSCRIBE TO v EMIT EARLY EVERY 1 EVENTS, ON TIME")


def test_interval_may_be_quoted() -> None:
    asked = read_subscription("SUBSCRIBE TO v EMIT LATE EVERY INTERVAL '2 seconds', ON TIME")
    assert asked.late == Every(interval_us=2 * SECOND)


@pytest.mark.parametrize(
    ("emit", "early", "late", "lateness"),
    [
        ("EARLY EVERY 2 EVENTS", Every(2), Every(2), None),
        ("ON TIME", None, None, 0),
        ("EARLY EVERY 2 EVENTS, ON TIME", Every(2), None, 0),
        ("ON TIME, LATE EVERY 2 EVENTS", None, Every(2), None),
        ("CHANGES", CHANGE, CHANGE, None),
    ],
)
def test_what_is_not_said_has_a_meaning(
    emit: str, early: Every | None, late: Every | None, lateness: int | None
) -> None:
    asked = read_subscription(f"SUBSCRIBE TO v EMIT {emit}")
    assert (asked.early, asked.late, asked.lateness_us) == (early, late, lateness)


@pytest.mark.parametrize("form", [Form.INSERTS, Form.DELETES, Form.RELATION])
def test_streams_of_rows(form: Form) -> None:
    assert read_subscription(f"SUBSCRIBE TO v EMIT {form.value.upper()}").form is form


@pytest.mark.parametrize("text", SENTENCES)
def test_what_cannot_be_read_gets_its_sentence(text: str) -> None:
    with pytest.raises(BadQuery) as refused:
        read_subscription(text)
    assert refused.value.message == SENTENCES[text]


@pytest.mark.parametrize(
    "emit",
    [
        "CHANGES RETRACTING",
        "INSERTS",
        "EARLY EVERY 3 EVENTS DISCARDING",
        "EARLY EVERY INTERVAL '5s', ON TIME ACCUMULATING",
        "ON TIME, LATE EVERY 1 EVENTS, ALLOWED LATENESS INTERVAL '2h' RETRACTING",
    ],
)
def test_what_was_read_can_be_said_again(emit: str) -> None:
    assert emission(read_subscription(f"SUBSCRIBE TO v EMIT {emit}")) == emit


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a > 1", "a > 1"),
        ("hits > 100 and url LIKE '/shop/%' EMIT INSERTS", "hits > 100 AND url LIKE '/shop/%'"),
        ("(a = 1 OR b IS NULL) RETRACTING", "(a = 1 OR b IS NULL)"),
        ("a = b", ""),
        ("a = 'it''s'", ""),
    ],
)
def test_a_condition_that_is_not_of_keys_alone_is_kept_as_sql(text: str, condition: str) -> None:
    asked = read_subscription(f"SUBSCRIBE TO v WHERE {text}")
    assert asked.condition == condition
    assert bool(asked.where) == (not condition)
