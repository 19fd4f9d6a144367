"""Reads `SUBSCRIBE TO stream [FROM BEGINNING] [WHERE condition]`.

The triggers of views are not valid here: each row of a stream is sent once, as it arrives.
tests/define/test_stream_subscription.py checks what is read and what is refused.
"""

from __future__ import annotations

from headrace.core.errors import BadDefinition
from headrace.core.subscription import StreamSubscription
from headrace.define.view_subscription import (
    EMISSION,
    as_query_errors,
    begin_subscription,
    read_condition,
)


def read_stream_subscription(text: str) -> StreamSubscription:
    """Parse a subscription to a stream.

    >>> read_stream_subscription("SUBSCRIBE TO clicks FROM BEGINNING WHERE ms > 900")
    StreamSubscription(stream='clicks', condition='ms > 900', beginning=True)
    """
    with as_query_errors():
        tokens, stream = begin_subscription(text)
        beginning = tokens.accept("FROM")
        if beginning:
            tokens.expect("BEGINNING")
        condition = read_condition(tokens) if tokens.accept("WHERE") else ""
        if word := next(filter(tokens.starts_with, EMISSION), None):
            raise BadDefinition(
                f"{word} requires a view; '{stream}' is a stream",
                hint="leave it out: each row of a stream is sent once, as it arrives.",
                origin=tokens.origin,
            )
        tokens.end()
    return StreamSubscription(stream, condition, beginning)


def subscribed_name(text: str) -> str:
    """The view or stream that a subscription names.

    >>> subscribed_name("SUBSCRIBE TO visitors EMIT ON TIME")
    'visitors'
    """
    with as_query_errors():
        return begin_subscription(text)[1]
