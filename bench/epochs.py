"""A carried view in a store with an empty generation, given its events as typed columns: what its
epochs and builds cost without log and decoding.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

# The columns that the log's reader adds to an event; `i` is its number, `moment` its time.
HIDDEN = """0::INTEGER AS _partition, i::BIGINT AS _offset, {moment} AS _arrived_at,
            false AS _late, 0::BIGINT AS _lateness, 0::TINYINT AS _status"""
START_US = 1_767_225_600_000_000
TASKS = 2  # that read an epoch, as a stream of two partitions has


@dataclass(frozen=True)
class ReadRecords:
    """The records of an epoch that were written as columns; carried views take no kernel."""

    spark: Any
    rows: Any

    def frame(self) -> Any:
        return self.rows


def write_typed(folder: Path, rows: str, events_each: int) -> None:
    """The rows of a SELECT, which are numbered by `_offset`, as one file for each task of each
    epoch.
    """
    part = f"_offset // {events_each // TASKS}"
    duckdb.sql(f"""
        COPY (SELECT *, {part} AS part FROM ({rows})) TO '{folder}'
        (FORMAT parquet, PARTITION_BY (part))
    """)


class Epochs:
    """One carried view `v` over the stream `clicks` of one partition."""

    def __init__(self, folder: Path, definitions: str, events: Path, events_each: int) -> None:
        from pyspark.sql import SparkSession

        from headrace.compile.flow import flows_of
        from headrace.compile.passes import compile_project
        from headrace.core.address import StoreAddress
        from headrace.define.project import Project
        from headrace.define.settings import Settings, SparkSettings
        from headrace.define.statements import read_statements
        from headrace.serving.merge import stored_schema
        from headrace.serving.opening import open_store
        from headrace.spark.analyse import SparkAnalyser
        from headrace.spark.session import start_session

        work = folder / "work"
        self.spark: Any = SparkSession.getActiveSession() or start_session(
            SparkSettings(), app_name="bench", work=work
        )
        self.events_each = events_each
        parsed = tuple(read_statements(definitions, "bench.sql"))
        project = Project(folder, Settings("bench"), parsed)
        self.folder = folder
        plan = self.plan = compile_project(project, SparkAnalyser(self.spark))
        self.flow = flows_of(plan)[0]
        self.folder_of_events = events
        self.events = self.spark.read.parquet(str(events)).drop("part")
        self.store = open_store(StoreAddress.of_file(folder / "serving.db"))
        self.store.take_over()
        self.store.deploy(plan)
        start = self.store.stream("clicks").built
        staged = [
            self.store.stage(version, True, stored_schema(version.plan).empty_table(), {})
            for version in self.store.versions("clicks")
        ]
        self.store.promote("clicks", 0, start, 0, staged, [])

    def epoch(self, number: int) -> float:
        """Compute and commit one epoch, as the speed layer does; seconds."""
        from headrace.core.position import Position, PositionRange
        from headrace.speed.carry import EpochContext
        from headrace.speed.epoch import compute_epoch

        began = time.monotonic()
        upper = (number + 1) * self.events_each
        parts = range(number * TASKS, (number + 1) * TASKS)
        frame = self.spark.read.parquet(*(f"{self.folder_of_events}/part={n}" for n in parts))
        state = self.store.stream("clicks")
        context = EpochContext(self.store, state, lambda *_: self.events, 0, {})
        made = compute_epoch(
            ReadRecords(self.spark, frame),
            self.flow,
            self.store.versions("clicks"),
            PositionRange(state.position, Position((upper,))),
            context,
            START_US,
            vectorised=False,
        )
        self.store.commit_epoch(made)
        return time.monotonic() - began

    def fold_all(self, mark_us: int | None = None) -> float:
        """Fold and stage all events at once, as a full build does; seconds."""
        from headrace.spark.carry import CarryJob

        began = time.monotonic()
        self.events.createOrReplaceTempView("clicks")
        version = self.store.versions("clicks")[0]
        assert version.plan.carry is not None
        folded = CarryJob(self.spark, version.plan.carry, {}, 0, marks=[(0, mark_us)]).fold([])
        rows = self.spark.sql(version.plan.partial_sql).toArrow()
        self.store.stage(version, True, rows, {}, folded.states)
        return time.monotonic() - began

    def rows(self) -> list[tuple[Any, ...]]:
        from headrace.serving.read import Reader

        found = Reader(self.store.db, rows_max=10_000_000).view("v").rows
        return [tuple(row.values()) for row in found]

    def close(self) -> None:
        from headrace.spark.session import stop_session

        self.store.close()
        stop_session(self.spark)
