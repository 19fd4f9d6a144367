"""Jobs of the batch layer are cancelled when the run is stopped, however long they would take."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from headrace.core.position import Position
from headrace.define.settings import Settings
from headrace.run.schedule import Schedule
from headrace.spark.jobs import BatchJobs

ENDLESS_S = 600


def endless(spark: Any) -> None:
    """A job that takes ten minutes."""

    def sleep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        time.sleep(ENDLESS_S)
        yield from batches

    spark.range(1).mapInArrow(sleep, "id long").toArrow()


def soon(event: threading.Event, seconds: float) -> None:
    threading.Timer(seconds, event.set).start()


def test_what_is_told_to_stop_ends_and_is_no_failure(spark: Any) -> None:
    stop = threading.Event()
    soon(stop, 2)
    began, done = time.monotonic(), False
    with BatchJobs(spark).cancelled_by(stop):
        endless(spark)
        done = True
    assert not done
    assert time.monotonic() - began < ENDLESS_S / 10


def test_what_fails_by_itself_is_a_failure(spark: Any) -> None:
    with pytest.raises(PySparkException), BatchJobs(spark).cancelled_by(threading.Event()):
        spark.sql("SELECT raise_error('no')").collect()


class Building:
    """A pipeline whose build does not end."""

    starting = False

    def __init__(self, spark: Any) -> None:
        self.spark, self.begun = spark, threading.Event()

    def end(self) -> Position:
        return Position((0,))

    def has_committed(self, end: Position) -> bool:
        return True

    def archive(self) -> None: ...

    def mend(self) -> None: ...

    def build(self) -> None:
        self.begun.set()
        endless(self.spark)


def test_the_schedule_stops_during_a_build(spark: Any) -> None:
    pipeline, jobs = Building(spark), BatchJobs(spark)
    pipelines: Any = {"clicks": pipeline}
    schedule = Schedule(pipelines, {}, Settings("s"), lambda kind, fields: None, jobs=jobs)
    schedule.start()
    schedule._times.build_at = 0
    assert pipeline.begun.wait(60)
    began = time.monotonic()
    schedule.stop()
    assert time.monotonic() - began < ENDLESS_S / 10
    assert schedule.problems == []
