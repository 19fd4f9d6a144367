"""What Spark makes of a stream for its subscribers: conditions, derived streams, tables, functions
and rules; the same values as without Spark; and each row once, wherever it is resumed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from master.bench import InProcess

from headrace.compile.plan import Plan
from headrace.compile.stream_subscription import subscribed_stream
from headrace.core.errors import BadQuery, HeadraceError, Refused
from headrace.core.event import EventStatus
from headrace.core.position import Position
from headrace.define.layout import Layout
from headrace.define.project import Project, load_project
from headrace.define.stream_subscription import read_stream_subscription
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.master.archive import Archive
from headrace.run.compiling import compile_with
from headrace.run.query_service import QueryService
from headrace.run.stream_source import LogSource, StreamSourceFactory
from headrace.serving import stream_feed as body
from headrace.serving.database_store import DatabaseStore
from headrace.serving.opening import open_store
from headrace.serving.stream_feed import StreamSource
from headrace.serving.subscriber import SubscriptionEvent
from tests.serving.streams_bench import feed_of, joined

SETTINGS = """
name = "following"
[spark]
master = "local[1]"
[query]
seconds_max = 60.0
memory = "512m"
rows_max = 20
"""
DEFINITIONS = """
CREATE STREAM clicks (user STRING, ms BIGINT, small INT, price DOUBLE, ok BOOLEAN, day DATE,
  ts TIMESTAMP, tags ARRAY<STRING>, times ARRAY<TIMESTAMP>, prices ARRAY<DOUBLE>,
  money DECIMAL(8,3), tiny TINYINT, single FLOAT, body BINARY, local TIMESTAMP_NTZ,
  payload VARIANT, cart STRUCT<at: TIMESTAMP, prices: ARRAY<DECIMAL(4,1)>>,
  labels MAP<STRING, DATE>,
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS) WITH (partitions = '2');
CREATE TABLE teams (user STRING, team STRING) USING csv LOCATION 'teams.csv';
CREATE STREAM slow AS SELECT user, ms FROM clicks WHERE ms >= 50;
CREATE STREAM tagged AS SELECT c.user, tag, t.team
  FROM clicks c LEFT JOIN teams t ON c.user = t.user LATERAL VIEW explode(tags) x AS tag;
CREATE STREAM ready AS SELECT shout(tag) AS tag FROM tagged WHERE team = 'red';
CREATE STREAM starred AS SELECT *, ms * 2 AS twice FROM clicks WHERE NOT _late;
CREATE STREAM sales (price INT, qty INT, total BIGINT GENERATED ALWAYS AS (price * qty),
  note STRING GENERATED ALWAYS AS (_raw:note::string));
CREATE STREAM noted AS SELECT total, _raw:more.deep::int AS deep FROM sales WHERE note = 'x';
CREATE STREAM whole AS SELECT * FROM sales;
CREATE RULES judged ON clicks FIRST MATCH
  RULE fast WHEN ms < 50 THEN SET verdict = 'fast'
  ELSE SET verdict = 'slow';
"""
FUNCTIONS = """
import pyarrow.compute as pc
from headrace.define.functions import function

@function(takes=["STRING"], returns="STRING")
def shout(text):
    return pc.utf8_upper(text)
"""
START = Position((0, 0))


def event(number: int) -> dict[str, Any]:
    """Every third is late, and some values are missing."""
    second = 100 + number if number % 3 else number
    moment = f"2026-01-01T00:{second // 60:02}:{second % 60:02}.5+01:00"
    return {
        "user": ("ann", "bob", "it's", None)[number % 4],
        "ms": number * 10 % 130 if number % 5 else None,
        "small": -number,
        "price": number / 7,
        "ok": number % 2 == 0,
        "day": f"20{number:02}-02-03",
        "ts": moment,
        "tags": [f"t{n}" for n in range(number % 4)] if number % 6 else None,
        "times": [moment, None],
        "prices": [0.1 * number, None],
        "money": f"{number}.125",
        "tiny": number,
        "single": number + 0.5,
        "body": "aGk=",
        "local": "2026-01-01T00:00:00.500000",
        "payload": {"n": [number, "x"]} if number % 2 else None,
        "cart": {"at": moment, "prices": ["1.5", None]} if number % 3 else None,
        "labels": {"a": "2026-01-01", "b": None},
    }


EVENTS = [event(number) for number in range(16)]


def fill(project: Project, plan: Plan) -> None:
    """Six events in the master, ten and what is no event in the log beyond it."""
    layout = Layout.of(project)
    topic = EmbeddedWriter.open(layout.log("clicks").folder, 2, segment_bytes_max=1 << 20)
    archive = Archive(
        InProcess(), plan.stream("clicks"), layout.log("clicks"), layout.master("clicks")
    )
    for number, said in enumerate(EVENTS):
        if number == 6:
            archive.step(100)
            topic.append(0, [b"not json"], bytes(1)).result()
        topic.append(number % 2, [json.dumps(said).encode()], bytes(1)).result()
    topic.append(1, [json.dumps(EVENTS[1]).encode()], bytes([EventStatus.DUPLICATE])).result()
    topic.close()
    fill_sales(project, plan)


def fill_sales(project: Project, plan: Plan) -> None:
    """One event in the master, and another in the log."""
    log, sales = Layout.of(project).log("sales"), plan.stream("sales")
    topic = EmbeddedWriter.open(log.folder, sales.partitions, segment_bytes_max=1 << 20)
    archive = Archive(InProcess(), sales, log, Layout.of(project).master("sales"))
    topic.append(0, [b'{"price": 2, "qty": 3, "note": "x", "more": {"deep": 7}}'], b"\0").result()
    archive.step(100)
    topic.append(0, [b'{"price": 5, "qty": 1, "note": 1, "more": {"deep": "no"}}'], b"\0").result()
    topic.close()


class Place:
    """A filled project, and the process that is asked about it."""

    def __init__(self, project: Project, plan: Plan) -> None:
        self.plan, self.store = plan, open_store(Layout.of(project).store)
        self.query_service = QueryService(project, self.store)
        self.following = StreamSourceFactory(project, self.query_service.pool.run)

    def source(self, text: str) -> StreamSource:
        return self.following(
            subscribed_stream(self.plan, read_stream_subscription(f"SUBSCRIBE TO {text}"))
        )

    def heard(self, text: str) -> list[SubscriptionEvent]:
        return heard(self.source(text))

    def rows(self, text: str) -> list[dict[str, Any]]:
        return rows(self.heard(text))

    def close(self) -> None:
        self.query_service.close()
        self.store.close()


@pytest.fixture(scope="module")
def place(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder: Path = tmp_path_factory.mktemp("following")
    (folder / "headrace.toml").write_text(SETTINGS)
    (folder / "shop.sql").write_text(DEFINITIONS)
    (folder / "functions.py").write_text(FUNCTIONS)
    (folder / "teams.csv").write_text("user,team\nann,red\nbob,blue\n")
    project = load_project(folder)
    plan = compile_with(spark, project)
    fill(project, plan)
    made = Place(project, plan)
    yield made
    made.close()


def heard(
    source: StreamSource, after: Position = START, events_max: int = 100
) -> list[SubscriptionEvent]:
    """All that one hears who begins there."""
    feed = feed_of(source, events_max)
    subscriber = joined(feed, after)
    while feed.refresh() is not None:
        pass
    return subscriber.poll()


def rows(heard: list[SubscriptionEvent]) -> list[dict[str, Any]]:
    return [row for one in heard if one.event == "rows" for row in one.data["rows"]]


def counted(found: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row) for row in found)


def test_spark_and_the_log_give_the_same_rows_for_every_type(place: Place) -> None:
    plain, asked = place.rows("clicks"), place.rows("clicks WHERE true")
    assert len(plain) == len(EVENTS)
    assert json.dumps(asked) == json.dumps(plain)
    assert isinstance(place.source("clicks"), LogSource)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("clicks WHERE ms > 90", [e for e in EVENTS if (e["ms"] or 0) > 90]),
        ("clicks WHERE user = 'it''s'", [e for e in EVENTS if e["user"] == "it's"]),
        ("clicks WHERE user LIKE 'a%' AND ok", [e for e in EVENTS if e["user"] == "ann"]),
        ("clicks WHERE shout(user) = 'BOB'", [e for e in EVENTS if e["user"] == "bob"]),
        ("clicks WHERE small = -3 OR array_contains(tags, 't2')",
         [e for e in EVENTS if e["small"] == -3 or "t2" in (e["tags"] or [])]),
        ("clicks WHERE payload:n[0]::int = 3", [EVENTS[3]]),
        ("clicks WHERE money = 2.125 AND cart.prices[0] = 1.5", [EVENTS[2]]),
        ("slow", [e for e in EVENTS if (e["ms"] or 0) >= 50]),
        ("slow WHERE ms < 90", [e for e in EVENTS if 50 <= (e["ms"] or 0) < 90]),
    ],
)  # fmt: skip
def test_a_condition_means_what_it_means_in_spark(
    place: Place, text: str, expected: list[dict[str, Any]]
) -> None:
    found = place.rows(text)
    assert Counter((row["user"], row["ms"]) for row in found) == Counter(
        (event["user"], event["ms"]) for event in expected
    )
    assert found


def test_a_derived_stream_has_its_own_columns_tables_and_functions(place: Place) -> None:
    teams = {"ann": "red", "bob": "blue"}
    expected = [
        {"user": user, "tag": tag, "team": teams.get(user or "")}
        for event in EVENTS
        for user, tags in [(event["user"], event["tags"])]
        for tag in tags or []
    ]
    assert counted(place.rows("tagged")) == counted(expected)
    red = [{"tag": row["tag"].upper()} for row in expected if row["team"] == "red"]
    assert counted(place.rows("ready")) == counted(red)


def test_rules_and_lateness_are_known_in_a_derived_stream(place: Place) -> None:
    judged = place.rows("judged WHERE verdict = 'fast'")
    assert {(row["rule"], row["ms"] < 50) for row in judged} == {("fast", True)}
    assert len(judged) == sum(event["ms"] is not None and event["ms"] < 50 for event in EVENTS)
    late = place.rows("clicks WHERE _late")
    assert late
    assert len(late) + len(place.rows("starred")) == len(EVENTS)
    assert place.rows("starred WHERE twice = 160")[0]["ms"] == 80


@pytest.mark.parametrize("text", ["clicks WHERE ms > 40", "tagged"])
def test_who_resumes_at_any_id_hears_each_row_once(
    place: Place, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "ROWS_MAX", 2)
    source = place.source(text)
    whole = heard(source, events_max=9)
    expected = counted(rows(whole))
    assert expected
    for number, message in enumerate(whole, start=1):
        assert message.id is not None
        after = heard(source, Position.parse(message.id))
        assert counted(rows(whole[:number])) + counted(rows(after)) == expected, message.id


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("clicks WHERE colour = 'red'", BadQuery),
        ("clicks WHERE ms + 1", BadQuery),
        ("clicks WHERE java_method('java.lang.System', 'exit', 1) IS NULL", Refused),
        ("slow WHERE price > 1", BadQuery),
        ("tagged WHERE user IN (SELECT user FROM teams)", HeadraceError),
    ],
)
def test_what_is_wrong_with_a_condition_is_told_when_it_is_opened(
    place: Place, text: str, kind: type[HeadraceError]
) -> None:
    with pytest.raises(kind):
        place.source(text)


def test_more_rows_than_an_answer_may_have_come_in_pieces(place: Place) -> None:
    """`tagged` has more than query.rows_max rows."""
    found = place.heard("tagged")
    assert len(rows(found)) > 20
    assert len(found) > 2, "the first is where it begins"


SALES = [
    {"price": 2, "qty": 3, "total": 6, "note": "x"},
    {"price": 5, "qty": 1, "total": 5, "note": "1"},
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sales", SALES),
        ("whole", SALES),
        ("sales WHERE total > 5", SALES[:1]),
        ("sales WHERE _raw:more.deep::int = 7", SALES[:1]),
        ("noted", [{"total": 6, "deep": 7}]),
    ],
)
def test_computed_columns_and_raw_are_told_of_events_in_master_and_log(
    place: Place, text: str, expected: list[dict[str, Any]]
) -> None:
    assert place.rows(text) == expected


def test_a_query_reads_computed_columns_and_raw_of_a_stream(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DatabaseStore, "deployed", lambda _: place.plan)

    def asked(text: str) -> list[dict[str, Any]]:
        return place.query_service.answer(text).rows

    star = asked("SELECT * FROM sales ORDER BY _offset")
    assert [{name: row[name] for name in SALES[0]} for row in star] == SALES
    assert "_raw" not in star[0], "a star does not have it"
    deep = asked("SELECT _raw:more.deep::int AS deep FROM sales ORDER BY _offset")
    assert deep == [{"deep": 7}, {"deep": None}]
    assert asked("SELECT total, deep FROM noted") == [{"total": 6, "deep": 7}]
