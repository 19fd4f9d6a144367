"""A Spark session that computes each frame once, and a reading engine that runs each query once.

What a frame holds is a function of its `key`: the events that it begins with, and what was done to
them. A result that is known is given out again, so an engine can be run thousands of times over the
same few events while Spark computes each epoch and build of them once. It has what epochs and
builds of one stream ask of Spark, and no more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
import pytest

from headrace.serving import engine
from headrace.serving.store import StateRow
from headrace.spark.carry import CarryJob, FoldResult

Memory = dict[Any, Any]


class Session:
    """Gives names to frames, and remembers what SQL over them has come to."""

    def __init__(self, spark: Any, memory: Memory) -> None:
        self.spark, self.memory = spark, memory
        self.named: dict[str, Frame] = {}

    def frame(self, key: Any, make: Callable[[], Any]) -> Frame:
        return Frame(self, key, make)

    def sql(self, text: str, args: Mapping[str, Any] | None = None) -> Frame:
        named = {name: frame for name, frame in self.named.items() if name in text}
        keys = tuple((name, frame.key) for name, frame in sorted(named.items()))

        def make() -> Any:
            for name, frame in named.items():
                frame.make().createOrReplaceTempView(f"`{name}`")
            return self.spark.sql(text, args=dict(args or {}))

        return Frame(self, ("sql", text, tuple(sorted((args or {}).items())), keys), make)

    def once(self, key: Any, compute: Callable[[], Any]) -> Any:
        if key not in self.memory:
            self.memory[key] = compute()
        return self.memory[key]


class Frame:
    """A frame that Spark makes when its rows are not known yet."""

    def __init__(self, session: Session, key: Any, make: Callable[[], Any]) -> None:
        self.sparkSession, self.key, self.make = session, key, make

    def persist(self) -> Frame:
        return self

    def unpersist(self) -> None: ...

    def where(self, condition: str) -> Frame:
        return Frame(self.sparkSession, (self.key, condition), lambda: self.make().where(condition))

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802
        self.sparkSession.named[name.strip("`")] = self

    def toArrow(self) -> pa.Table:  # noqa: N802
        return self.sparkSession.once(self.key, lambda: self.make().toArrow())


class RememberedCarryJob(CarryJob):
    """A fold of events that is done once for the same events, states and watermarks."""

    def __init__(
        self, spark: Session, plan: Any, processors: Any, count: int, cut: str = "0",
        marks: Any = (), since_us: int | None = None,
    ) -> None:  # fmt: skip
        self.session, self.count, self.marks = spark, count, tuple(marks)
        events = spark.sql(plan.sql)
        self.key = (plan.name, events.key, cut, self.marks, since_us)
        self._real = lambda: _real(events, plan, processors, count, cut, marks, since_us)
        self.plan = plan

    def keys(self) -> list[str]:
        return self.session.once(("keys", self.key), lambda: self._real().keys())

    def fold(self, states: Sequence[StateRow]) -> FoldResult:
        key = ("fold", self.key, tuple(states))

        def make() -> Any:
            self.session.memory[key] = self._real().fold(states)
            return self.session.spark.table(f"`{self.plan.name}`")

        if key not in self.session.memory:
            make()
        self.session.frame(key, make).createOrReplaceTempView(self.plan.name)
        return self.session.memory[key]


def _real(events: Frame, plan: Any, *more: Any) -> CarryJob:
    events.make()  # gives the stream's name its events, in Spark's own session
    return CarryJob(events.sparkSession.spark, plan, *more)


def remember_queries(monkeypatch: pytest.MonkeyPatch, memory: Memory) -> None:
    """Let the reading engine run each query once over the same tables."""
    real = engine.run

    def run(sql: str, tables: Mapping[str, pa.Table], *limits: Any, **more: Any) -> pa.Table:
        key = (sql, tuple((name, _content(table)) for name, table in tables.items()))
        if key not in memory:
            memory[key] = real(sql, tables, *limits, **more)
        return memory[key]

    for name, module in list(sys.modules.items()):
        if name.startswith("headrace.serving.") and getattr(module, "run", None) is real:
            monkeypatch.setattr(module, "run", run)


def _content(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


class AtOnce:
    """An executor that does what it is given before it returns."""

    def __init__(self, max_workers: int) -> None: ...

    def __enter__(self) -> AtOnce:
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, call: Callable[..., Any], *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(call(*args))
        return done
