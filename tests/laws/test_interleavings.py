"""Whatever order their store calls come in, actors that work at the same time count nothing twice
and lose nothing.

The actors are those of a running project: a producer, speed, batch (archive, builds, a rebuild), a
redeploy that changes a view, the lookout for alerts, a subscriber, and the retention of log and
alerts. tests/interleaved.py runs them one store call at a time. After each call that writes, each
view is read: its answer must be the reference's for the position that it names, or call itself
provisional, and no position moves back. At the end of every order speed and batch catch up, and
then everything is exact, also what the subscriber was sent. Spark and the reading engine compute a
result once (tests/remembered.py), so an order takes a tenth of a second.

Compaction is not among them: it calls no store, and readers keep the version that they have opened
(tests/master/test_compact.py).

Orders are drawn; in `make prove` each actor is also interrupted at each of its calls by all others.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from chance import SEED, drawn, examples
from engines import (
    ARRIVAL_US,
    TICK_US,
    Compiled,
    HeldClock,
    Parts,
    TickingClock,
    compile_sql,
    decoded,
)
from interleaved import Choose, Stepped, SteppedDatabase, at_random, in_parts, run, step
from remembered import AtOnce, Frame, Memory, RememberedCarryJob, Session, remember_queries

from headrace.batch import build as batch
from headrace.batch.build import Builder
from headrace.compile.plan import SinkPlan, StreamPlan
from headrace.compile.view_subscription import shape_of
from headrace.core.address import LogAddress, StoreAddress
from headrace.core.errors import NotFound
from headrace.core.event import OFFSET, STATUS, EventStatus
from headrace.core.position import Position, PositionRange
from headrace.core.subscription import Guarantee
from headrace.core.time import from_iso
from headrace.define.settings import NotifySettings, SpeedSettings
from headrace.define.view_subscription import read_subscription
from headrace.destination.file import FileDestination
from headrace.destination.protocol import DestinationWriter, Message
from headrace.run.queue_delivery import DeliveryRoute, QueueDelivery
from headrace.run.sinks import Sink
from headrace.serving import staging
from headrace.serving.alert_raiser import AlertRaiser
from headrace.serving.opening import open_store
from headrace.serving.read import Reader
from headrace.serving.retention import AlertRetention
from headrace.serving.sqlite import SqliteDatabase
from headrace.speed import carry as speed_carry
from headrace.speed import epoch as speed_epoch
from headrace.speed.runner import EpochRunner
from headrace.testing import ReferenceEngine, Transcript, differences
from headrace.testing.declarations import read_declarations

STREAMS = """
CREATE STREAM clicks (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
CREATE STREAM numbered AS SELECT page, row_number() OVER (PARTITION BY page ORDER BY ts) AS place
  FROM clicks;
CREATE STREAM pairs AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY page ORDER BY ts
  MEASURES one.n AS n PATTERN (one other));
"""
RULE = "CREATE RULE large AS SELECT n, page FROM clicks WHERE n > 20 SEVERITY 'low';"
VIEWS = """
CREATE VIEW pages AS SELECT page, count(*) AS hits, sum(n) AS total FROM clicks GROUP BY page;
CREATE VIEW minutes AS SELECT window(ts, '1 minute') AS w, count(DISTINCT n) AS ns FROM clicks
  GROUP BY window(ts, '1 minute');
CREATE VIEW visits AS SELECT page, session_window(ts, '8 seconds') AS visit, count(*) AS hits
  FROM clicks GROUP BY page, session_window(ts, '8 seconds');
CREATE VIEW threes AS SELECT page, count_window(3) AS first, count(*) AS n FROM clicks
  GROUP BY page, count_window(3);
CREATE VIEW places AS SELECT page, count(*) AS n, max(place) AS last FROM numbered GROUP BY page;
CREATE VIEW matches AS SELECT page, count(*) AS found, sum(n) AS total FROM pairs GROUP BY page;
"""
DEFINITIONS = STREAMS + VIEWS
CHANGED = STREAMS + VIEWS.replace("sum(n) AS total FROM clicks", "max(n) AS most FROM clicks")
NAMES = ("pages", "minutes", "visits", "threes", "places", "matches")
# Seconds of event time. The second batch is out of order, the third has one that is late.
BATCHES = ((10, 20, 30), (25,), (50, 12), (70,))
ACTORS = ["producer", "speed", "batch", "redeploy", "lookout", "subscriber", "retention"]
SUBSCRIPTION = "SUBSCRIBE TO threes EMIT CHANGES RETRACTING"
# How long alerts are kept: for ever, or for so short a time that some events are too old for an
# alert before they are looked at. Then fewer are raised, but none twice.
LONG_US, SHORT_US = 1_000_000 * TICK_US, 10 * TICK_US
WRITES = {"deploy", "commit_epoch", "close_old_group", "merge", "promote"}
ORDERS, PARTS = examples(25, 4_000), examples(1, 16)


SECONDS = [second for seconds in BATCHES for second in seconds]


def time_of(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


def records(seconds: tuple[int, ...]) -> list[bytes]:
    said = [{"n": second, "page": "a", "ts": time_of(second)} for second in seconds]
    return [json.dumps(event).encode() for event in said]


@cache
def expected(sql: str, batches: int) -> dict[str, list[dict[str, Any]]]:
    """What each view answers after so many batches, by the reference."""
    reference = ReferenceEngine()
    reference.start(Transcript("interleavings", sql, read_declarations(sql), ()))
    for seconds in BATCHES[:batches]:
        reference.send("clicks", records(seconds))
    return {view: reference.answer(view) for view in NAMES}


ENDS = [sum(map(len, BATCHES[:count])) for count in range(len(BATCHES) + 1)]


@dataclass(frozen=True)
class Scene:
    """What all orders share: plans, a log with all events, an empty store, and what is known."""

    before: Compiled
    after: Compiled
    state: Path
    log: LogAddress
    memory: Memory = field(default_factory=dict)


@pytest.fixture(scope="module")
def scene(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    # In memory, because a store syncs at each commit.
    with TemporaryDirectory(dir="/dev/shm") as name:
        state = Path(name) / "state"
        before, after = (
            compile_sql(spark, tmp_path_factory.mktemp("plan"), sql + RULE)
            for sql in (DEFINITIONS, CHANGED)
        )
        parts = Parts(before, state)
        parts.store.deploy_rules(before.plan, (), "story")
        parts.catch_up()
        for seconds in BATCHES:
            parts.intake("clicks").accept(records(seconds))
        parts.close()
        yield Scene(before, after, state, parts.log("clicks"))


@pytest.fixture(autouse=True)
def _remembered(monkeypatch: pytest.MonkeyPatch, scene: Scene) -> None:
    remember_queries(monkeypatch, scene.memory)
    count = speed_epoch._count

    def counted(frame: Frame, stream: StreamPlan, highs: Any) -> Any:
        key = ("count", frame.key, highs)
        return frame.sparkSession.once(key, lambda: count(frame.make(), stream, highs))

    prepare = staging.prepare

    def prepared(*arguments: Any) -> staging.PreparedBuild:
        step("merge")  # outside of transactions
        return prepare(*arguments)

    monkeypatch.setattr(staging, "prepare", prepared)
    monkeypatch.setattr(speed_epoch, "_count", counted)
    monkeypatch.setattr(speed_epoch, "ThreadPoolExecutor", AtOnce)
    monkeypatch.setattr(speed_carry, "CarryJob", RememberedCarryJob)
    monkeypatch.setattr(batch, "CarryJob", RememberedCarryJob)


class Events:
    """The log and the master of the stream: how far each has come, and their events in Spark."""

    def __init__(self, scene: Scene, stream: StreamPlan) -> None:
        self.scene, self.stream, self.table = scene, stream, self
        self.arrived = self.archived = self.removed = 0

    def newest(self) -> Events:
        return self

    @property
    def position(self) -> Position:
        return Position((self.archived,))

    @property
    def highs(self) -> tuple[int | None, ...]:
        times = [from_iso(time_of(second)) for second in SECONDS[: self.archived]]
        return (max(times, default=None),)

    def events(self, session: Session, range: PositionRange) -> Frame:
        whole = PositionRange(Position.start(1), range.upper)
        since = f"{OFFSET} >= {range.lower.offsets[0]} AND {STATUS} = {int(EventStatus.EVENT)}"
        return self.logged(session, whole, (None,)).where(since)

    def logged_events(self, session: Session, range: PositionRange, highs: Any) -> Frame:
        if range.lower.offsets[0] < self.removed:
            raise NotFound("the log begins later")
        return self.logged(session, range, highs).where(f"{STATUS} = {int(EventStatus.EVENT)}")

    def end(self) -> Position:
        return Position((self.arrived,))

    def records(
        self, session: Session, range: PositionRange, highs: Any, shedding: None = None
    ) -> Frame:
        return self.logged(session, range, highs)

    def logged(self, session: Session, range: PositionRange, highs: Any) -> Frame:
        def make() -> Any:
            return session.spark.createDataFrame(decoded(self.stream, self.scene.log, range, highs))

        return session.frame(("log", range, highs), make)


class Sent(DestinationWriter):
    """A writer that keeps what its panes add up to."""

    batch_max = 1_000

    def __init__(self) -> None:
        self.rows, self.numbers = Counter[str](), list[int]()

    def deliver(self, messages: Sequence[Message]) -> None:
        for message in messages:
            pane = message.document
            self.numbers.append(pane["sequence"])
            self.rows[json.dumps(pane["row"])] += 1 if pane["op"] == "insert" else -1


class Order:
    """One run of all actors on a store of its own."""

    def __init__(self, scene: Scene, folder: Path, keep_us: int) -> None:
        self.scene, self.keep_us = scene, keep_us
        shutil.copy(scene.state / "serving.db", folder)
        self.clock = TickingClock(HeldClock(ARRIVAL_US))
        path = folder / "serving.db"
        self.store = open_store(StoreAddress.of_file(path), group_us=30, clock=self.clock)
        self.store.take_over()
        # Actors stop inside of transactions, so each has connections of its own.
        self.databases = {
            name: SqliteDatabase(path) for name in ("lookout", "subscriber", "retention")
        }
        for database in self.databases.values():
            database.token = self.store.db.token
        self.reader = Reader(self.store.db, clock=self.clock)
        stepped: Any = Stepped(self.store)
        flow = self.store.stream("clicks").plan
        self.events = Events(scene, flow.streams[0])
        feeds: Any = (self.events,)
        sessions = [
            Session(layer, scene.memory) for layer in (scene.before.batch, scene.before.speed)
        ]
        self.builder = Builder(
            sessions[0], flow, feeds, stepped, clock=self.clock, vectorised=False
        )
        self.speed = EpochRunner(
            sessions[1], flow, feeds, stepped, SpeedSettings(trigger_us=0), self.clock,
            vectorised=False,  # what Spark computes is remembered from order to order
        )  # fmt: skip
        self.stepped, self.newest = stepped, 0
        self.sent, self.numbers = Sent(), dict[str, int]()
        asked = read_subscription(SUBSCRIPTION)
        shape = shape_of(scene.before.plan, asked)
        plan = SinkPlan("sink", asked, shape, FileDestination(""), Guarantee.AT_LEAST_ONCE)
        stepped_reader: Any = Reader(self.stepping("subscriber"), clock=self.clock)
        self.sink = Sink(plan, "", stepped_reader)
        self.delivery = QueueDelivery(
            DeliveryRoute.of_sink(plan), self.sent, stepped_reader.db, NotifySettings(), self.clock
        )

    def stepping(self, actor: str) -> Any:
        return SteppedDatabase(self.databases[actor])

    def actors(self) -> dict[str, Callable[[], None]]:
        return {
            "producer": self.produce,
            "speed": self.follow,
            "batch": self.build,
            "redeploy": lambda: self.stepped.deploy(self.scene.after.plan),
            "lookout": self.look,
            "subscriber": self.subscribe,
            "retention": self.retain,
        }

    def produce(self) -> None:
        for end in ENDS[1:]:
            step("arrive")
            self.events.arrived = end

    def follow(self) -> None:
        for _ in BATCHES:
            self.turn()

    def turn(self) -> None:
        """One epoch; one that finds the log removed before it could read it fails, and the next
        begins with what the store holds then.
        """
        while self._failed():
            step("start again")

    def _failed(self) -> bool:
        try:
            self.speed.step()
        except NotFound:
            return True
        return False

    def build(self) -> None:
        for full in ((), ("threes", "pages"), ()):
            step("archive")
            self.events.archived = self.events.arrived
            self.builder.build(speed_runs=True, full=frozenset(full))

    def look(self) -> None:
        raiser: Any = AlertRaiser(self.stepping("lookout"), self.clock)
        for _ in BATCHES:
            for rule in self.scene.before.plan.rules:
                raiser.evaluate(rule)

    def subscribe(self) -> None:
        for _ in BATCHES:
            self.emit()

    def emit(self) -> None:
        self.sink.poll()
        while self.delivery.step():
            pass
        assert self.delivery.problem is None

    def retain(self) -> None:
        """Remove from the log what batch has taken, as `Pipeline.tidy` does, and old alerts."""
        retention = AlertRetention(self.stepping("retention"), self.keep_us, self.clock)
        for _ in BATCHES:
            [boundary] = self.stepped.stream("clicks").boundary.offsets
            step("remove segments")
            self.events.removed = min(boundary, self.events.archived)
            retention.remove_old()

    def catch_up(self) -> None:
        """All that has arrived goes through speed, then through batch."""
        for _ in range(2):
            self.turn()
            self.clock.ticks_us += 1_000_000
            self.events.archived = self.events.arrived
            self.builder.build(speed_runs=True)
        self.look()
        self.emit()

    def problems(self, *, provisional: bool = True) -> list[str]:
        """What answers say that is wrong."""
        return [f"{view}: {said}" for view in NAMES for said in self._wrong(view, provisional)]

    def _wrong(self, view: str, provisional: bool) -> list[str]:
        answer = self.reader.view(view)
        [as_of] = answer.as_of.values()
        [position] = as_of.position
        if position < self.newest:
            return [f"position {position} after {self.newest}"]
        self.newest = position
        if as_of.provisional:
            return [] if provisional else ["still provisional"]
        sql = CHANGED if view == "pages" and "most" in answer.columns else DEFINITIONS
        rows = expected(sql, ENDS.index(position))[view]
        rough = {name: 0.1 for name, column in answer.columns.items() if not column.exact}
        return differences(rows, answer.rows, rough)

    def raised_twice(self) -> list[str]:
        """Alerts that were raised under another number before."""
        with self.store.read() as db:
            found = dict(db.execute("SELECT id, number FROM _alerts").fetchall())
        wrong = [id for id, number in found.items() if self.numbers.get(id, number) != number]
        self.numbers |= found
        return wrong

    def sent_wrongly(self) -> list[str]:
        """Where the subscriber's panes do not add up to the answer."""
        answer = Counter(json.dumps(row) for row in self.reader.view("threes").rows)
        rows = self.sent.rows
        wrong = [f"{rows[row]} times {row}" for row in rows | answer if rows[row] != answer[row]]
        numbers = self.sent.numbers
        return wrong + ([] if numbers == sorted(set(numbers)) else [f"panes {numbers}"])

    def close(self) -> None:
        for database in self.databases.values():
            database.close()
        self.store.close()


def check(scene: Scene, choose: Choose, keep_us: int = LONG_US) -> list[str]:
    """Run one order; the actors in the order of their steps."""
    with TemporaryDirectory(dir="/dev/shm") as folder:
        order, taken = Order(scene, Path(folder), keep_us), list[str]()
        try:
            for name, call in run(order.actors(), choose):
                taken.append(f"{name}: {call}")
                if call in WRITES:
                    assert order.problems() == [], taken
                assert order.raised_twice() == [], taken
            order.catch_up()
            assert order.problems(provisional=False) == [], taken
            assert order.newest == ENDS[-1]
            assert order.raised_twice() == [], taken
            large = sum(second > 20 for second in SECONDS)
            assert len(order.numbers) == large or keep_us == SHORT_US, taken
            assert order.sent_wrongly() == [], taken
        finally:
            order.close()
        return [said.partition(":")[0] for said in taken]


@pytest.mark.prove
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("victim", ["speed", "batch", "lookout", "subscriber", "retention"])
def test_an_actor_may_be_interrupted_at_each_call(scene: Scene, victim: str) -> None:
    for place in count():
        rng = drawn(victim, place)
        begun = [("producer", rng.randint(1, 4)), ("speed", rng.randrange(60)), (victim, place)]
        steps = check(scene, in_parts(begun, rng.sample(ACTORS, len(ACTORS))))
        if steps.count(victim) <= place:
            return  # it ended before it could be interrupted


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("part", range(PARTS))
def test_orders_that_are_drawn(
    scene: Scene, part: int, record_property: Callable[[str, object], None]
) -> None:
    numbers = range(part, ORDERS, PARTS)
    record_property("orders", len(numbers))
    for number in numbers:
        try:
            rng = drawn("order", number)
            check(scene, at_random(rng), rng.choice((LONG_US, SHORT_US)))
        except AssertionError as error:
            raise AssertionError(f"order {number} of HEADRACE_SEED={SEED}: {error}") from error
