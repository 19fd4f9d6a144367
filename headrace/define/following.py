"""Reads `SUBSCRIBE TO stream [FROM BEGINNING] [WHERE condition]`.

The words that say when a view is told have no meaning here: each row of a stream is told once, as
it comes. tests/define/test_following.py checks what is read and what is refused.
"""

from __future__ import annotations

from headrace.core.errors import BadDefinition
from headrace.core.subscription import StreamSubscription
from headrace.define.subscribing import EMISSION, begun, read_condition, told_as_a_query


def read_stream_subscription(text: str) -> StreamSubscription:
    """The subscription to a stream that a text asks for.

    >>> read_stream_subscription("SUBSCRIBE TO clicks FROM BEGINNING WHERE ms > 900")
    StreamSubscription(stream='clicks', condition='ms > 900', beginning=True)
    """
    with told_as_a_query():
        tokens, stream = begun(text)
        beginning = tokens.took("FROM")
        if beginning:
            tokens.expect("BEGINNING")
        condition = read_condition(tokens) if tokens.took("WHERE") else ""
        if word := next(filter(tokens.seen, EMISSION), None):
            raise BadDefinition(
                f"{word} is for views, and '{stream}' is a stream",
                hint="leave it out: each row of a stream is told once, as it comes.",
                origin=tokens.origin,
            )
        tokens.end()
    return StreamSubscription(stream, condition, beginning)


def subscribed_name(text: str) -> str:
    """The view or stream that a subscription is about.

    >>> subscribed_name("SUBSCRIBE TO visitors EMIT ON TIME")
    'visitors'
    """
    with told_as_a_query():
        return begun(text)[1]
