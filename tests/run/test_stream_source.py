"""A declared stream is heard from its log and master, across restarts, and no JVM is started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from serving.bench import CLICKS, Click, definitions, plan_of

from headrace.api.client import RemoteService
from headrace.compile.stream_subscription import SubscribedStream, subscribed_stream
from headrace.core.errors import BadQuery, LimitReached, NotFound
from headrace.core.position import Position, PositionRange
from headrace.core.subscription import StreamSubscription
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.run.instance import Instance
from headrace.run.lock import running_token
from headrace.run.stream_source import SparkSource, StreamSourceFactory
from headrace.serving.subscriber import SubscriptionEvent
from headrace.spark.query_client import QueryRequest, QueryResult, ResultColumn
from tests.access.users import bearer

from .stopped import make_stopped

WHOLE = PositionRange(Position((0, 0)), Position((5, 5)))
# By partition: the master has the first six, the log all, and a dead letter and a duplicate.
USERS = [
    *(click.user for click in CLICKS if click.partition == 0),
    *(click.user for click in CLICKS if click.partition == 1),
]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_stopped(tmp_path / "project")


def no_spark(request: QueryRequest, user: str) -> QueryResult:
    raise AssertionError("Spark was asked")


def known(text: str = "", more: str = "") -> SubscribedStream:
    asked = StreamSubscription("rows" if more else "clicks", text)
    return subscribed_stream(plan_of(definitions() + more), asked)


# Without Spark


def test_all_events_of_a_declared_stream_are_its_rows(project: Project) -> None:
    source = StreamSourceFactory(project, no_spark)(known())
    assert source.end() == WHOLE.upper
    taken, rows = source.read(WHOLE)
    assert taken == WHOLE
    assert [placed.row["user"] for placed in rows] == USERS
    assert rows[0].row == {"page": "/a", "user": "ann", "ms": 12, "ts": "2026-01-01T00:00:05Z"}
    assert [(placed.partition, placed.offset) for placed in rows[-2:]] == [(1, 1), (1, 2)]


def test_a_range_has_the_rows_of_its_events_alone(project: Project) -> None:
    source = StreamSourceFactory(project, no_spark)(known())
    for lower in range(5):
        cut = Position((lower, lower))
        before, after = PositionRange(WHOLE.lower, cut), PositionRange(cut, WHOLE.upper)
        found = [placed.row["user"] for part in (before, after) for placed in source.read(part)[1]]
        assert sorted(found) == sorted(USERS)


# A running project, of which Spark is never started


class Running:
    """An instance that serves, and can be started again in the same folder."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.start()

    def start(self) -> None:
        self.instance = Instance(self.project, lambda kind, fields: None)
        self.instance.open()
        self.url = self.instance.serve(0)
        self.token = running_token(self.instance.layout) or ""

    def restart(self) -> None:
        self.instance.close()
        self.start()

    def send(self, *clicks: Click) -> None:
        body = b"\n".join(click.record for click in clicks)
        url, who = f"{self.url}/v1/streams/clicks/events", bearer(self.token)
        assert httpx.post(url, content=body, headers=who).status_code == 200

    def hear(self, text: str, after: str | None = None, many: int = 2) -> list[SubscriptionEvent]:
        with RemoteService(self.url, self.token) as remote:
            hearing = remote.subscribe(f"SUBSCRIBE TO {text}", after)
            found = [hearing.poll()[0] for _ in range(many)]
            hearing.close()
        return found


@pytest.fixture
def running(project: Project) -> Iterator[Running]:
    made = Running(project)
    yield made
    made.instance.close()


def users(heard: list[SubscriptionEvent]) -> list[Any]:
    return [row["user"] for one in heard if one.event == "rows" for row in one.data["rows"]]


def test_the_whole_history_is_heard_and_gone_on_from_after_a_restart(running: Running) -> None:
    first = running.hear("clicks FROM BEGINNING")
    assert users(first) == USERS
    assert [one.id for one in first] == ["0,0", "5,5"]
    running.restart()
    running.send(Click("/z", "zoe", 200))
    again = running.hear("clicks FROM BEGINNING", first[-1].id)
    assert (again[0].event, again[0].id) == ("position", "5,5")
    assert users(again) == ["zoe"]
    assert running.instance.spark is None


def test_a_position_from_far_back_is_heard_from_the_master(running: Running) -> None:
    assert users(running.hear("clicks", "1,0")) == USERS[1:]


def test_without_a_position_it_begins_now(running: Running) -> None:
    with RemoteService(running.url, running.token) as remote:
        hearing = remote.subscribe("SUBSCRIBE TO clicks")
        assert hearing.poll() == [SubscriptionEvent("position", {}, "5,5")]
        running.send(Click("/z", "zoe", 200))
        assert users(hearing.poll()) == ["zoe"]
        hearing.close()


def test_what_is_wrong_is_told_before_anything_is_heard(running: Running) -> None:
    with pytest.raises(BadQuery, match="is beyond the end of stream 'clicks' at 5,5"):
        running.hear("clicks", "6,5")
    with pytest.raises(NotFound, match="there is no view or stream 'clacks'"):
        running.hear("clacks")
    with pytest.raises(BadQuery, match="EMIT requires a view; 'clicks' is a stream"):
        running.hear("clicks EMIT CHANGES")


# What Spark is asked, answered by hand


class Told:
    """Answers with the rows that it is given, or not at all."""

    def __init__(self, *answers: list[list[Any]] | None) -> None:
        self.answers, self.asked = list(answers), []  # type: ignore[var-annotated]
        self.user = ""

    def __call__(self, request: QueryRequest, user: str) -> QueryResult:
        self.asked.append(request)
        self.user = user
        rows = self.answers.pop(0) if self.answers else []
        columns = [ResultColumn(n, "x") for n in ("user", "_partition", "_offset", "_late")]
        return QueryResult(columns, rows or [], truncated=rows is None)


def opened(project: Project, told: Told, condition: str = "ms > 1", more: str = "") -> SparkSource:
    wanted = msgspec.structs.replace(known(condition, more), user="ada")
    source = StreamSourceFactory(project, told)(wanted)
    assert isinstance(source, SparkSource)
    return source


def test_a_condition_is_asked_of_no_events_first(project: Project) -> None:
    told = Told()
    opened(project, told)
    (request,) = told.asked
    assert told.user == "ada"
    assert request.sql == "SELECT * FROM `clicks` WHERE ms > 1"
    stored, stream = request.relations
    assert (stored.kind, stored.hidden) == ("arrow_file", True)
    assert (stream.name, stream.hidden) == ("clicks", False)
    assert not Path(stored.paths[0]).exists(), "scratch was left behind"
    assert list(Layout.of(project).work("query").iterdir()) == []


def test_below_a_derived_stream_nothing_is_shown(project: Project) -> None:
    told = Told()
    opened(project, told, "", "CREATE STREAM rows AS SELECT user FROM clicks WHERE ms > 1;")
    shown = {relation.name: not relation.hidden for relation in told.asked[0].relations}
    assert shown == {"_clicks_events": False, "clicks": False, "rows": True}
    assert told.asked[0].sql == "SELECT * FROM `rows`"


def test_rows_are_put_in_the_order_of_the_log_without_hidden_columns(project: Project) -> None:
    told = Told([], [["bob", 1, 0, False], ["ann", 0, 3, True], ["ann", 0, 1, True]])
    taken, rows = opened(project, told).read(WHOLE)
    assert taken == WHOLE
    assert [(p.partition, p.offset, p.row) for p in rows] == [
        (0, 1, {"user": "ann"}),
        (0, 3, {"user": "ann"}),
        (1, 0, {"user": "bob"}),
    ]


def test_what_one_answer_cannot_hold_is_asked_in_halves(project: Project) -> None:
    source = opened(project, Told([], None, None, [["ann", 0, 0, False]], None, [], []))
    assert len(source.read(WHOLE)[0]) == 2
    assert len(source.read(WHOLE)[0]) == 2, "it begins with what went well, doubled"
    assert len(source.read(WHOLE)[0]) == 4


def test_an_event_that_no_answer_can_hold_is_a_limit(project: Project) -> None:
    source = opened(project, Told([], *[None] * 9))
    with pytest.raises(LimitReached) as refused:
        source.read(WHOLE)
    assert refused.value.message == "an event of stream 'clicks' produced more than 0 rows"
