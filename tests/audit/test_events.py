"""DuckDB's records and events of a stream, wherever the master ends and the log begins."""

from __future__ import annotations

import duckdb
import pytest

from headrace.audit.events import name_events, records_name, register_stream
from headrace.core.event import EventStatus
from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.define.layout import Layout
from headrace.serving.store import ShedEpoch

from .traced import Traced, event


def fill(traced: Traced, archived: int) -> None:
    steps = [
        lambda: traced.send(event("/a", 1), b"no json"),
        lambda: traced.send(event("/a", 1), status=EventStatus.DUPLICATE),
        lambda: traced.send(event("/b", 2), event("/c", 3), partition=1),
    ]
    for number, step in enumerate(steps):
        if number == archived:
            traced.archive.step(100)
        step()


@pytest.mark.parametrize("archived", [0, 1, 2, 3])
def test_every_record_up_to_the_position_is_there_once(traced: Traced, archived: int) -> None:
    fill(traced, archived)
    with duckdb.connect(":memory:") as connection:
        stream, state = traced.plan.stream("clicks"), traced.layout.state
        register_stream(connection, stream, Position((3, 1)), Layout(state))
        names = f"_partition, _offset, _status FROM {records_name('clicks')}"
        records = connection.execute(f"SELECT {names} ORDER BY ALL").fetchall()
        events = connection.execute('SELECT page, _offset FROM "clicks" ORDER BY ALL').fetchall()
    assert records == [(0, 0, 0), (0, 1, 2), (0, 2, 1), (1, 0, 0)]
    assert events == [("/a", 0), ("/b", 0)]


def test_what_is_shed_is_a_record_and_no_event(traced: Traced) -> None:
    traced.send(*(event("/a", n) for n in range(4)))
    whole = PositionRange(Position((0, 0)), Position((4, 0)))
    shed = ShedEpoch(1, whole, Shedding("oldest", 0.5), 2)
    with duckdb.connect(":memory:") as connection:
        stream, state = traced.plan.stream("clicks"), traced.layout.state
        register_stream(connection, stream, whole.upper, Layout(state), [shed])
        assert connection.execute('SELECT _offset FROM "clicks"').fetchall() == [(2,), (3,)]
        assert len(connection.execute(f"FROM {records_name('clicks')}").fetchall()) == 4
        name_events(connection, stream, records_name("clicks"), "_offset = 1")
        assert connection.execute('SELECT _offset FROM "clicks"').fetchall() == [(1,)]
