"""Sinks in a plan, and those that cannot be."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition, HeadraceError, UnknownName, Unsupported
from headrace.core.subscription import Guarantee, Mode
from headrace.destination.file import FileDestination
from headrace.destination.stream import StreamDestination
from tests.serving.bench import DEFINITIONS, plan_of

STREAMS = (
    "CREATE STREAM told (page STRING, n BIGINT, ts TIMESTAMP) WITH (id = 'event_id');"
    "CREATE STREAM bare (page STRING, n BIGINT);"
    "CREATE VIEW again AS SELECT page, count(*) AS n FROM told GROUP BY page;"
)
REFUSED: dict[str, tuple[type[HeadraceError], str]] = {
    "CREATE SINK s FROM hots INTO FILE 'x'": (UnknownName, "sink 's': there is no view 'hots'"),
    "CREATE SINK s FROM users INTO FILE 'x' DISCARDING": (
        Unsupported, "sink 's': column 'users' of view 'users' cannot be sent DISCARDING",
    ),
    "CREATE SINK s FROM hits INTO STREAM hits": (
        UnknownName, "sink 's' writes to 'hits', which is not a declared stream",
    ),
    "CREATE SINK s FROM hits INTO STREAM bare": (
        Unsupported, "sink 's' writes to stream 'bare', which has no id",
    ),
    "CREATE SINK s FROM hits INTO STREAM clicks WITH (guarantee = 'at_least_once')": (
        BadDefinition,
        "sink 's' is circular: its view reads events that come from stream 'clicks'",
    ),
    "CREATE SINK s FROM hits INTO STREAM told; "
    "CREATE SINK t FROM again INTO STREAM clicks WITH (guarantee = 'at_most_once')": (
        BadDefinition,
        "sink 's' is circular: its view reads events that come from stream 'told'",
    ),
    "CREATE SINK s FROM hits INTO FILE 'x'; CREATE SINK t FROM total INTO FILE './x'": (
        BadDefinition, "sink 't' and sink 's' write to the same file './x'",
    ),
    "CREATE SINK s FROM hits INTO FILE 'out/../../x'": (
        BadDefinition,
        "sink 's' writes to 'out/../../x', which is not in the project's output folder",
    ),
    "CREATE SINK s FROM hits INTO FILE '/tmp/x'": (
        BadDefinition,
        "sink 's' writes to '/tmp/x', which is not in the project's output folder",
    ),
    "CREATE SINK s FROM hits INTO KAFKA 'x'": (
        BadDefinition, "a sink must write INTO FILE or INTO STREAM, not kafka",
    ),
    "CREATE SINK s FROM hits INTO FILE 'x' WITH (guarantee = 'twice')": (
        BadDefinition,
        "guarantee must be one of 'exactly_once', 'at_least_once', 'at_most_once', not 'twice'",
    ),
    "CREATE SINK s FROM hits INTO FILE 'x' WITH (format = 'csv')": (
        BadDefinition, "unknown option 'format'; a sink only has the option guarantee",
    ),
    "CREATE SINK s FROM hits INTO FILE 'x'; CREATE VIEW v AS SELECT n FROM s": (
        UnknownName, "view 'v' reads 's', which is not defined",
    ),
}  # fmt: skip


def test_sink_is_in_the_plan() -> None:
    text = (
        "CREATE SINK s FROM hits WHERE page = '/a' INTO FILE 'out/x.jsonl' EMIT ON TIME RETRACTING"
    )
    (sink,) = plan_of(DEFINITIONS + text).sinks
    assert sink.destination == FileDestination("out/x.jsonl")
    assert sink.guarantee is Guarantee.EXACTLY_ONCE
    assert (sink.subscription.where, sink.subscription.mode) == (
        (("page", "/a"),), Mode.RETRACTING,
    )  # fmt: skip
    assert sink.shape.window == "minute"


@pytest.mark.parametrize(
    ("guarantee", "id"), [("exactly_once", "event_id"), ("at_most_once", None)]
)
def test_only_exactly_once_needs_the_id_of_the_stream(guarantee: str, id: str | None) -> None:
    text = f"CREATE SINK s FROM hits INTO STREAM told WITH (guarantee = '{guarantee}')"
    destination = plan_of(DEFINITIONS + STREAMS + text).sinks[0].destination
    assert destination == StreamDestination("told", id)


@pytest.mark.parametrize("text", REFUSED)
def test_sink_that_cannot_be_gets_its_sentence(text: str) -> None:
    kind, sentence = REFUSED[text]
    with pytest.raises(kind) as refused:
        plan_of(DEFINITIONS + STREAMS + text)
    assert refused.value.message == sentence
