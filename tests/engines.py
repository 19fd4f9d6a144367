"""Engines for tests: the real log, master, store and Spark, in a folder of the test's own.

`Compiled` is a project that was compiled once, with a session for each layer. `Parts` is one life
of a process: everything opened from one state folder. An engine plays a story on `Parts`:
  BatchEngine   archives and builds whenever it is asked, so each question has its own generation;
  SpeedEngine   commits one epoch for each send, on top of an empty generation;
  BehindEngine  is SpeedEngine with batch behind it, as in a run;
  OpenEngine    is SpeedEngine that can still be asked after the story;
  SplitEngine   builds a generation after `cut` sends, and leaves the rest to speed;
  DrawnEngine   is SplitEngine with a drawn cut, killed at a drawn place; it stays open too;
  CrashEngine   is SpeedEngine whose process is killed after each step;
  RunnerEngine  is SpeedEngine whose epochs are run as in a project.
An epoch is made of a plain DataFrame with the columns that a range of the log has, then takes the
same way as in `EpochRunner`: `compute_epoch`, `commit_epoch`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema

from headrace.batch.build import Builder, BuildResult
from headrace.compile.flow import FlowPlan, flows_of, whole
from headrace.compile.passes import compile_project
from headrace.compile.plan import Plan, SinkPlan, StreamPlan
from headrace.compile.view_subscription import shape_of
from headrace.core.address import LogAddress, StoreAddress
from headrace.core.event import LATE, OFFSET, PARTITION, EventStatus
from headrace.core.position import Position, PositionRange
from headrace.core.subscription import Guarantee
from headrace.core.time import MILLISECOND, from_iso
from headrace.define.functions import FunctionDefinition
from headrace.define.layout import Layout
from headrace.define.processors import ProcessorDefinition, load_processors
from headrace.define.project import Project
from headrace.define.settings import (
    LogSettings,
    NotifySettings,
    PatternSettings,
    Settings,
    SpeedSettings,
)
from headrace.define.statements import read_statements
from headrace.define.view_subscription import read_subscription
from headrace.destination.file import FileDestination
from headrace.destination.protocol import DestinationWriter, Message
from headrace.ingest.intake import Intake
from headrace.kernel.partials import (
    KernelJob,
    PartitionPartials,
    compute_partials,
    without_zone,
)
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.log.interval import log_intervals
from headrace.log.opening import open_reader
from headrace.master.archive import Archive
from headrace.master.decoding import decoder_of
from headrace.run.queue_delivery import DeliveryRoute, QueueDelivery
from headrace.run.sinks import Sink
from headrace.run.watch_constants import begin_watches, write_constants
from headrace.serving.alerts import AlertFilter, read_alerts
from headrace.serving.database_store import DatabaseStore
from headrace.serving.match_raiser import MatchRaiser
from headrace.serving.opening import open_store
from headrace.serving.read import Reader
from headrace.serving.store import Epoch
from headrace.serving.watches import deploy_files, statuses
from headrace.spark.analyse import SparkAnalyser
from headrace.spark.feed import Feed, typed
from headrace.spark.functions import register_functions
from headrace.spark.relations import register, small_table
from headrace.speed.carry import EpochContext
from headrace.speed.epoch import compute_epoch
from headrace.speed.join_history import JoinHistory
from headrace.speed.records import pack_streams
from headrace.speed.runner import EpochRunner
from headrace.testing import Transcript

# After every story, so that no event of one is dated ahead of its arrival.
ARRIVAL_US = from_iso("2026-01-02T00:00:00Z")
STEP_EVENTS_MAX = 1_000_000
# Every second epoch begins a new group, so stories are read over groups and within one.
TICK_US, GROUP_US = 6 * MILLISECOND, 10 * MILLISECOND


@dataclass
class HeldClock:
    """Stands still."""

    now_us: int = ARRIVAL_US

    def __call__(self) -> int:
        return self.now_us


@dataclass
class TickingClock:
    """A held clock that is a tick further each time that it is asked."""

    held: HeldClock
    ticks_us: int = 0

    def __call__(self) -> int:
        self.ticks_us += TICK_US
        return self.held() + self.ticks_us


class Compiled:
    """A project, its plan, and a session for each layer with tables and functions registered."""

    def __init__(
        self,
        project: Project,
        plan: Plan,
        spark: Any,
        batch: Any,
        speed: Any,
        processors: Mapping[str, ProcessorDefinition],
    ) -> None:
        self.project, self.plan, self.processors = project, plan, processors
        self.spark, self.batch, self.speed = spark, batch, speed
        # An epoch is a function of what is in its range, so engines that cut alike may share it.
        self.epochs: dict[Any, Epoch] = {}

    def empty_state(self) -> Path:
        """A state folder in which every view has an empty generation, made once and copied."""
        state = self.project.folder / "empty"
        if not state.exists():
            parts = Parts(self, state)
            parts.catch_up()
            parts.close()
        return state


def compile_sql(
    spark: Any,
    folder: Path,
    sql: str,
    files: Mapping[str, bytes] | None = None,
    functions: Iterable[FunctionDefinition] = (),
    partitions: int = 1,
    steps_max: int | None = None,
) -> Compiled:
    """Compile CREATE statements; `files` are written beside them first."""
    for name, content in (files or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    settings = Settings("tests", log=LogSettings(partitions=partitions, free_bytes_min=0))
    if steps_max is not None:
        settings = replace(settings, pattern=PatternSettings(steps_max))
    project = Project(folder, settings, tuple(read_statements(sql, "story.sql", folder)))
    analyser = SparkAnalyser(spark)
    functions = tuple(functions)
    register_functions(analyser.spark, functions)
    given = project.functions_file
    processors = load_processors(given) if given else {}
    plan = compile_project(project, analyser, processors)
    if plan.shapes:
        write_watches(folder, plan)
    batch, speed = spark.newSession(), spark.newSession()
    for session in (batch, speed):
        register(session, plan.tables, functions, folder)
    return Compiled(project, plan, spark, batch, speed, processors)


def deploy_watches(store: DatabaseStore, plan: Plan) -> None:
    """The watches of the files begin, if they have not begun."""
    with store.write() as db:
        deploy_files(db, plan.watches, "story", ARRIVAL_US)
    begin_watches(store, plan, {shape.name for shape in plan.shapes})


def write_watches(folder: Path, plan: Plan) -> None:
    """What Spark reads of watches. No story closes one, so it is the same in every state."""
    store = open_store(StoreAddress.of_file(folder / "watches.db"))
    store.take_over()
    store.deploy(plan)
    deploy_watches(store, plan)
    write_constants(folder, store, plan)
    store.close()


class LocalTasks:
    """A session that runs jobs of our own tasks in this process: for a few events, a job of Spark
    takes longer than all its tasks. What Spark SQL computes stays its own. tests/master and
    tests/spark run the same tasks in Spark.
    """

    def __init__(self, spark: Any) -> None:
        self._spark, self.sparkContext = spark, self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def parallelize(self, parts: Sequence[Any], _count: int) -> LocalJob:
        return LocalJob(parts)

    def broadcast(self, value: Any) -> SimpleNamespace:
        return SimpleNamespace(value=value, destroy=lambda: None)


@dataclass(frozen=True)
class LocalJob:
    results: Sequence[Any]

    def map(self, task: Callable[[Any], Any]) -> LocalJob:
        return LocalJob([task(part) for part in self.results])

    def collect(self) -> Sequence[Any]:
        return self.results


class Parts:
    """One life of a process on a state folder."""

    def __init__(self, compiled: Compiled, state: Path, *, clock: HeldClock | None = None) -> None:
        self.compiled, self.state, self.plan = compiled, state, compiled.plan
        self.layout = Layout(state)
        self.clock = clock or HeldClock()
        clock = TickingClock(self.clock)
        self.store = open_store(self.layout.store, group_us=GROUP_US, clock=clock)
        self.store.take_over()
        self.store.deploy(self.plan)
        for table in self.plan.tables:
            rows = small_table(compiled.spark, compiled.project.folder, table)
            self.store.record_table(table.name, "1", rows)
        if self.plan.shapes:
            deploy_watches(self.store, self.plan)
        self.reader = Reader(self.store.db, clock=self.clock)
        self.topics = {s.name: self._topic(s) for s in self.plan.streams}
        self.archives = {s.name: self._archive(s) for s in self.plan.streams}
        self.flows = {flow.name: flow for flow in flows_of(self.plan)}
        self.memories = {
            flow.name: JoinHistory(compiled.speed, flow, self.feeds(flow.name))
            for flow in self.flows.values()
            if flow.joined
        }

    def _topic(self, stream: StreamPlan) -> EmbeddedWriter:
        path = self.log(stream.name).folder
        return EmbeddedWriter.open(
            path, stream.partitions, segment_bytes_max=1 << 20, clock=self.clock
        )

    def _archive(self, stream: StreamPlan) -> Archive:
        master = self.state / "master" / stream.name
        return Archive(LocalTasks(self.compiled.spark), stream, self.log(stream.name), master)

    def log(self, stream: str) -> LogAddress:
        return self.layout.log(stream)

    def feeds(self, flow: str) -> tuple[Feed, ...]:
        archives = [self.archives[stream.name] for stream in self.flows[flow].streams]
        return tuple(Feed(archive.stream, archive.log, archive.table) for archive in archives)

    def flows_with(self, stream: str) -> list[FlowPlan]:
        return [f for f in self.flows.values() if stream in {s.name for s in f.streams}]

    def intake(self, stream: str) -> Intake:
        """A new one each time: it learns the ids it must know from the log."""
        project = self.compiled.project
        definition, topic = project.streams[stream], self.topics[stream]
        return Intake(definition, topic, settings=project.settings, clock=self.clock)

    def archive(self, stream: str) -> None:
        self.archives[stream].step_to_end(STEP_EVENTS_MAX)

    def build(self, flow: str, *, speed_runs: bool = False, **said: Any) -> BuildResult | None:
        plan, feeds, processors = self.flows[flow], self.feeds(flow), self.compiled.processors
        spark = LocalTasks(self.compiled.batch)
        builder = Builder(spark, plan, feeds, self.store, processors, self.clock)
        return builder.build(speed_runs=speed_runs, **said)

    def catch_up(self) -> list[BuildResult]:
        """All that is in the logs becomes a generation."""
        for stream in self.topics:
            self.archive(stream)
        return [made for flow in self.flows if (made := self.build(flow))]

    def epoch(self, name: str, *, shared: bool = False) -> Epoch | None:
        """The epoch of a flow from the store's position to the log's end; None if that is nothing
        and time has brought nothing either.
        """
        flow, state = self.flows[name], self.store.stream(name)
        end = whole(self.topics[stream.name].end() for stream in flow.streams)
        range = PositionRange(state.position, end)
        if not len(range) and not state.due(self.clock()):
            return None
        highs = state.reached.highs
        parts = zip(flow.streams, flow.ranges(range), flow.parts(highs), strict=True)
        tables = [decoded(s, self.log(s.name), part, highs) for s, part, highs in parts]
        came = repr([table.to_pylist() for table in tables])
        # An epoch belongs to the generation beside which it was computed.
        key = (name, range, state.reached, state.received_at, self.clock(), came)
        # An epoch of joined streams, or of carried views, depends also on what was before it.
        shared = shared and not flow.joined and not any(view.carry for view in self.plan.views)
        if shared and key in self.compiled.epochs:
            # Its rows do not depend on how many builds were before it, but a commit names them.
            return replace(self.compiled.epochs[key], generation=state.generation)
        records = DecodedRecords(self.compiled.speed, flow, tables)
        read, processors = partial(self.frame, flow.streams[0]), self.compiled.processors
        behind = EpochContext(self.store, state, read, STEP_EVENTS_MAX, processors)
        versions, memory = self.store.versions(name), self.memories.get(name)
        made = compute_epoch(records, flow, versions, range, behind, self.clock(), memory)
        self.compiled.epochs[key] = made
        return made

    def frame(
        self, plan: StreamPlan, spark: Any, range: PositionRange, highs: tuple[int | None, ...]
    ) -> Any:
        return frame_of(spark, plan, decoded(plan, self.log(plan.name), range, highs))

    def counts(self) -> dict[str, int]:
        """What batch has counted up to the boundary, and speed after it."""
        total: Counter[str] = Counter()
        for name in self.topics:
            boundary = self.store.stream(name).boundary
            total += _archived_counts(self.archives[name], boundary)
            total += self._epoch_counts(name, boundary)
        return {name: total[name] for name in ("late", "dead_letters", "duplicates")}

    def _epoch_counts(self, stream: str, boundary: Position) -> Counter[str]:
        names = ("late", "dead_letters", "duplicates")
        sql = f"SELECT lower, {', '.join(names)} FROM _epochs WHERE stream = ?"
        total: Counter[str] = Counter()
        with self.store.read() as db:
            for lower, *numbers in db.execute(sql, (stream,)):
                if boundary <= Position.parse(lower):
                    total.update(dict(zip(names, numbers, strict=True)))
        return total

    def close(self) -> None:
        for topic in self.topics.values():
            topic.close()
        self.store.close()


@dataclass(frozen=True)
class DecodedRecords:
    """The records of an epoch, decoded here: the kernel runs in this process and not in a task."""

    spark: Any
    flow: FlowPlan
    decoded: list[pa.Table]  # of each stream

    def frame(self) -> Any:
        pairs = zip(self.flow.streams, self.decoded, strict=True)
        return pack_streams([frame_of(self.spark, stream, table) for stream, table in pairs])

    def partials(self, job: KernelJob, tables: Iterable[str]) -> list[PartitionPartials]:
        rows = {name: without_zone(self.spark.table(f"`{name}`").toArrow()) for name in tables}
        job, [records] = replace(job, tables=rows), self.decoded
        partitions, [stream] = records[PARTITION], self.flow.streams
        watermark = decoder_of(stream).watermark
        return [
            compute_partials(job, watermark, number, records.filter(pc.equal(partitions, number)))
            for number in range(self.flow.partitions)
        ]


def frame_of(spark: Any, stream: StreamPlan, table: pa.Table) -> Any:
    """Decoded events as a range of the log has them, with the types that are declared."""
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    return typed(spark.createDataFrame(table, schema), stream)


def decoded(
    stream: StreamPlan, log: LogAddress, range: PositionRange, highs: tuple[int | None, ...]
) -> pa.Table:
    """The events of a range, with the columns that Spark's tasks deliver."""
    decoder = decoder_of(stream)
    parts = log_intervals(open_reader(log), decoder, range, highs)
    tables = [each.table for part in parts for each in part.decoded(raw=stream.raw)]
    return pa.concat_tables([decoder.arrow_schema(raw=stream.raw).empty_table(), *tables])


def _archived_counts(archive: Archive, boundary: Position) -> Counter[str]:
    words = {EventStatus.DUPLICATE.word: "duplicates", EventStatus.DEAD_LETTER.word: "dead_letters"}
    found: Counter[str] = Counter()
    for file in archive.table.newest().files:
        rows = pq.read_table(file.path, columns=[PARTITION, OFFSET, LATE], partitioning=None)
        for partition, offset, late in zip(*(rows[n].to_pylist() for n in range(3)), strict=True):
            if offset < boundary.offsets[partition]:
                found[words.get(file.status, "late" if late else "events")] += 1
    return found


def _us(ms: float | None) -> float | None:
    return None if ms is None else ms * 1000


class Collected(DestinationWriter):
    """A writer that keeps the panes of one step, as transcripts say them."""

    batch_max = 1_000

    def __init__(self) -> None:
        self.panes: list[dict[str, Any]] = []

    def deliver(self, messages: Sequence[Message]) -> None:
        for message in messages:
            pane = message.document
            said = {name: pane[name] for name in ("op", "timing", "pane", "last")}
            self.panes.append(said | pane["row"])


class _Engine:
    """What all engines share: `settle` is called when everything sent must be in the answer."""

    def __init__(self, compiled: Compiled, folder: Path) -> None:
        self.compiled, self.folder, self.clock = compiled, folder, HeldClock()
        self.sent, self.subscribed = 0, ""
        self.dead: list[Parts] = []

    def start(self, transcript: Transcript) -> None:
        self.subscribed = transcript.subscribe or ""
        # A view answers after its first generation, which is empty here.
        shutil.copytree(self.compiled.empty_state(), self.folder / "state")
        self.parts = Parts(self.compiled, self.folder / "state", clock=self.clock)

    def send(self, stream: str, records: list[bytes]) -> None:
        self.parts.intake(stream).accept(records)
        self.sent += 1

    def answer(self, view: str) -> list[dict[str, Any]]:
        self.settle()
        answer = self.parts.reader.view(view)
        if any(stream.provisional for stream in answer.as_of.values()):
            # Batch places what came out of order; the answer must not be provisional any more.
            self.parts.catch_up()
            answer = self.parts.reader.view(view)
            assert not any(stream.provisional for stream in answer.as_of.values())
        return answer.rows

    def late(self, view: str) -> list[dict[str, Any]]:
        self.settle()
        return [
            {
                "key": list(window.key.values()),
                "on_time": window.on_time,
                "late": window.late,
                "late_by_max": _us(window.late_by_max_ms),
                "late_by_mean": _us(window.late_by_mean_ms),
            }
            for window in self.parts.reader.late(view).windows
        ]

    def counts(self) -> dict[str, int]:
        self.settle()
        return self.parts.counts()

    def wait(self, us: int) -> None:
        """Whatever has taken the events, it is speed that notices the silence after them."""
        self.settle()
        self.clock.now_us += us
        self.notice([epoch for flow in self.parts.flows if (epoch := self.parts.epoch(flow))])

    def notice(self, silences: list[Epoch]) -> None:
        assert all(map(self.parts.store.commit_epoch, silences))

    def watches(self) -> dict[str, tuple[list[dict[str, Any]], str | None]]:
        """By a look that remembers by the store alone."""
        self.settle()
        raiser = MatchRaiser(self.parts.store.db, self.clock)
        for shape in self.compiled.plan.shapes:
            raiser.evaluate(shape)
        raiser.end_expired()
        with self.parts.store.read() as db:
            found = {watch.name: watch for watch in statuses(db)}
            rows = {
                name: read_alerts(db, AlertFilter(rule=name, limit=1_000)).alerts[::-1]
                for name in found
            }
        return {n: ([alert.body for alert in rows[n]], found[n].why) for n in found}

    def panes(self) -> list[dict[str, Any]]:
        """By a sink that is opened anew each time, so that it remembers by the store alone."""
        self.settle()
        asked = read_subscription(self.subscribed)
        shape = shape_of(self.compiled.plan, asked)
        plan = SinkPlan("story", asked, shape, FileDestination(""), Guarantee.AT_LEAST_ONCE)
        heard = Collected()
        Sink(plan, "", self.parts.reader).poll()
        QueueDelivery(
            DeliveryRoute.of_sink(plan), heard, self.parts.reader.db, NotifySettings()
        ).drain()
        return heard.panes

    def settle(self) -> None: ...

    def crash(self) -> None:
        """Go on in a new process, with nothing but the files of the one that was killed."""
        # A copy is what a killed process leaves: nothing is closed, and nothing is written any
        # more.
        self.dead.append(self.parts)
        state = self.folder / f"state-{len(self.dead)}"
        shutil.copytree(self.parts.state, state)
        self.parts = Parts(self.compiled, state, clock=self.clock)

    def close(self) -> None:
        for parts in (*self.dead, self.parts):
            parts.close()

    def stop(self) -> None:
        """The story has ended."""
        self.close()


class BatchEngine(_Engine):
    """Everything through the master; builds after the first are incremental."""

    def settle(self) -> None:
        self.parts.catch_up()


class SpeedEngine(_Engine):
    """One epoch for each send."""

    shared = False

    def send(self, stream: str, records: list[bytes]) -> None:
        super().send(stream, records)
        for flow in self.parts.flows_with(stream):
            self.commit(flow.name)

    def commit(self, flow: str) -> None:
        epoch = self.parts.epoch(flow, shared=self.shared)
        if epoch is not None:
            assert self.parts.store.commit_epoch(epoch)


class BehindEngine(SpeedEngine):
    """Speed, and batch that follows it at the distance of the open group."""

    def commit(self, flow: str) -> None:
        super().commit(flow)
        self.follow()

    def notice(self, silences: list[Epoch]) -> None:
        super().notice(silences)
        if silences:
            self.follow()

    def follow(self) -> None:
        for stream in self.parts.topics:
            self.parts.archive(stream)
        for flow in self.parts.flows:
            if made := self.parts.build(flow, speed_runs=True):
                assert not any(audit.differences for audit in made.audits)


class OpenEngine(SpeedEngine):
    """Stays open after the story, for what is asked then."""

    def stop(self) -> None: ...


class SplitEngine(SpeedEngine):
    """Batch up to `cut` sends, speed after them."""

    shared = True

    def __init__(self, compiled: Compiled, folder: Path, cut: int) -> None:
        super().__init__(compiled, folder)
        self.cut = cut

    def start(self, transcript: Transcript) -> None:
        if self.cut == 0:
            super().start(transcript)
        else:
            self.subscribed = transcript.subscribe or ""
            self.parts = Parts(self.compiled, self.folder / "state", clock=self.clock)

    def commit(self, flow: str) -> None:
        if self.sent == self.cut:
            self.parts.catch_up()
        elif self.sent > self.cut:
            super().commit(flow)

    def settle(self) -> None:
        # A question that comes before the cut is answered by an earlier generation.
        if self.sent < self.cut:
            self.parts.catch_up()


class DrawnEngine(SplitEngine):
    """Cut at one place and killed at another, both drawn; open after the story."""

    def __init__(self, compiled: Compiled, folder: Path, sends: int, rng: Random) -> None:
        # Speed takes at least the last send, and the build after the story all of them.
        super().__init__(compiled, folder, cut=rng.randrange(sends) if sends else 0)
        self.killed_after = rng.randrange(sends) + 1 if sends else 0

    def send(self, stream: str, records: list[bytes]) -> None:
        super().send(stream, records)
        if self.sent == self.killed_after:
            self.crash()

    def stop(self) -> None: ...


class CrashEngine(SpeedEngine):
    """A new process after each step."""

    def commit(self, flow: str) -> None:
        epoch = self.parts.epoch(flow, shared=True)
        assert epoch is not None
        # Killed after the events were acknowledged, and again after the epoch was committed.
        self.crash()
        again = self.parts.epoch(flow)
        assert again is not None
        assert (again.range, again.reached) == (epoch.range, epoch.reached)
        assert again.counts == epoch.counts
        assert self.parts.store.commit_epoch(again)
        self.crash()
        assert not self.parts.store.commit_epoch(epoch), "a replayed epoch was counted twice"

    def notice(self, silences: list[Epoch]) -> None:
        super().notice(silences)
        # Not killed before, because the next process would have to wait again.
        if silences:
            self.crash()
        again = any(map(self.parts.store.commit_epoch, silences))
        assert not again, "the same silence was noticed twice"


class RunnerEngine(SpeedEngine):
    """Epochs as a project runs them, from the log and the store alone."""

    def commit(self, flow: str) -> None:
        parts = self.parts
        runner = EpochRunner(
            self.compiled.speed,
            parts.flows[flow],
            parts.feeds(flow),
            parts.store,
            SpeedSettings(),
            parts.clock,
            self.compiled.processors,
        )
        while runner.step():
            pass
