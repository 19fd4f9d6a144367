"""A project's sinks without Spark: epochs are committed by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import Unavailable
from headrace.define.project import Project
from headrace.define.settings import Settings
from headrace.ingest.intake import Receipt
from headrace.run.delivery_worker import DeliveryWorker
from headrace.run.queue_delivery import SINK_PAUSE_US
from headrace.run.sinks import Sinks
from headrace.serving.outbox import Queue, put_panes
from headrace.serving.sinks import mark_delivered, open_state
from tests.serving.bench import DEFINITIONS, WINDOWED, Bench, Click, plan_of

SINK = "CREATE SINK out FROM hits INTO FILE 'panes.jsonl'"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "serving.db", plan_of(DEFINITIONS + SINK))
    made.build()
    yield made
    made.close()


class Running:
    """The sinks of a project and what delivers for them, with a held clock."""

    def __init__(self, bench: Bench, folder: Path, sql: str, submit: Any) -> None:
        plan, project = plan_of(DEFINITIONS + sql), Project(folder, Settings("p"), ())
        self.bench, self.now_us = bench, 0
        self.sinks = Sinks(plan, bench.reader, lambda kind, fields: None)
        self.deliveries = DeliveryWorker(
            plan, project, bench.store.db, submit, lambda kind, fields: None, lambda: self.now_us
        )

    def drain(self) -> None:
        """All that there is, after the pause of what has failed."""
        self.now_us += SINK_PAUSE_US
        self.sinks.poll()
        self.deliveries.drain()

    @property
    def problems(self) -> dict[tuple[str, str, str], str]:
        found = (*self.sinks.problems, *self.deliveries.problems)
        return {one.key: one.message for one in found}


def sinks(bench: Bench, folder: Path, sql: str = SINK, **said: Any) -> Running:
    def refuse(stream: str, events: Any) -> Future[Receipt]:
        raise Unavailable("no room")

    return Running(bench, folder, sql, said.get("submit", refuse))


def told(folder: Path) -> list[tuple[int, str, int]]:
    lines = (folder / "out" / "panes.jsonl").read_text().splitlines()
    panes = [json.loads(line) for line in lines]
    return [(pane["sequence"], pane["row"]["page"], pane["row"]["n"]) for pane in panes]


def test_sink_writes_what_changes_and_goes_on_after_a_restart(bench: Bench, tmp_path: Path) -> None:
    bench.send(Click("/a", "ann", 5))
    sinks(bench, tmp_path).drain()
    bench.send(Click("/a", "bob", 6), Click("/b", "bob", 7))
    again = sinks(bench, tmp_path)
    again.drain()
    again.drain()
    assert told(tmp_path) == [(1, "/a", 1), (2, "/a", 2), (3, "/b", 1)]


def test_sink_takes_a_session_back_that_was_merged_after_a_restart(tmp_path: Path) -> None:
    sql = (
        f"CREATE VIEW visits AS {WINDOWED['visits']};"
        "CREATE SINK out FROM visits INTO FILE 'panes.jsonl' EMIT ON TIME"
    )
    bench = Bench(tmp_path / "serving.db", plan_of(DEFINITIONS + sql))
    bench.build()
    for click in (Click("/a", "ann", 0), Click("/b", "bob", 15)):
        bench.send(click)
    sinks(bench, tmp_path, sql).drain()
    bench.send(Click("/a", "ann", 5))
    sinks(bench, tmp_path, sql).drain()
    assert told(tmp_path) == [(1, "/a", 1)]
    bench.send(Click("/b", "bob", 20))
    sinks(bench, tmp_path, sql).drain()
    bench.close()
    assert told(tmp_path) == [(1, "/a", 1), (2, "/a", 1), (3, "/a", 2)]
    lines = (tmp_path / "out" / "panes.jsonl").read_text().splitlines()
    panes = [json.loads(line) for line in lines]
    assert [(p["op"], p["pane"], p["window"]["end"][-3:-1]) for p in panes] == [
        ("insert", 0, "05"), ("delete", 1, "05"), ("insert", 1, "10"),
    ]  # fmt: skip


def test_sink_that_means_something_else_begins_anew_with_numbers_that_go_on(
    bench: Bench, tmp_path: Path
) -> None:
    bench.send(Click("/a", "ann", 5))
    sinks(bench, tmp_path).drain()
    sinks(bench, tmp_path, f"{SINK} RETRACTING").drain()
    assert told(tmp_path) == [(1, "/a", 1), (2, "/a", 1)]


def test_sink_that_is_gone_leaves_nothing(bench: Bench, tmp_path: Path) -> None:
    bench.send(Click("/a", "ann", 5))
    sinks(bench, tmp_path).drain()
    sinks(bench, tmp_path, "")
    with bench.store.read() as db:
        assert db.execute("SELECT count(*) FROM _sink_rows").fetchone() == (0,)


def test_threads_deliver_and_the_stop_delivers_the_rest(bench: Bench, tmp_path: Path) -> None:
    running = sinks(bench, tmp_path)
    running.sinks.start()
    running.deliveries.start()
    bench.send(Click("/a", "ann", 5))
    running.sinks.stop()
    running.deliveries.stop()
    assert told(tmp_path) == [(1, "/a", 1)]


def test_sink_that_fails_says_so_and_delivers_later(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way")
    bench.send(Click("/a", "ann", 5))
    running = sinks(bench, tmp_path)
    running.drain()
    assert "sink 'out' failed: " in running.problems["sink", "out", "delivery"]
    (tmp_path / "out").unlink()
    running.drain()
    assert running.problems == {}
    assert told(tmp_path) == [(1, "/a", 1)]


def test_sink_into_a_stream_sends_the_row_flat_with_its_number_as_id(
    bench: Bench, tmp_path: Path
) -> None:
    sent: list[dict[str, Any]] = []

    def submit(stream: str, events: Any) -> Future[Receipt]:
        sent.extend({"to": stream, **json.loads(event)} for event in events)
        done: Future[Receipt] = Future()
        done.set_result(Receipt(len(events), 0, 0, ()))
        return done

    stream = "CREATE STREAM told (page STRING) WITH (id = 'event_id');"
    bench.send(Click("/a", "ann", 5, 7))
    sinks(
        bench, tmp_path, f"{stream} CREATE SINK s FROM hits INTO STREAM told", submit=submit
    ).drain()
    assert (name := sent[0].pop("event_id")).startswith("s:")
    assert name.endswith(":1")
    assert sent == [
        {
            "to": "told", "page": "/a", "n": 1, "slowest": 7,
            "minute_start": "2026-01-01T00:00:00Z", "minute_end": "2026-01-01T00:01:00Z",
            "pane_op": "insert", "pane_timing": "early", "pane_last": False, "pane_index": 0,
            "pane_sequence": 1,
        }
    ]  # fmt: skip


def test_a_sink_that_begins_anew_does_not_repeat_the_ids_of_the_old_one(
    bench: Bench, tmp_path: Path
) -> None:
    """All ids of a stream are known for ever, so a pane 1 of before would be a conflict."""
    ids: list[str] = []

    def submit(stream: str, events: Any) -> Future[Receipt]:
        ids.extend(json.loads(event)["event_id"] for event in events)
        done: Future[Receipt] = Future()
        done.set_result(Receipt(len(events), 0, 0, ()))
        return done

    sql = "CREATE STREAM told (page STRING) WITH (id = 'event_id');"
    sql += " CREATE SINK s FROM hits INTO STREAM told"
    bench.send(Click("/a", "ann", 5, 7))
    sinks(bench, tmp_path, sql, submit=submit).drain()
    with bench.store.write() as db:
        for table in ("_sinks", "_sink_rows", "_outbox"):
            db.execute(f"DELETE FROM {table}")
    sinks(bench, tmp_path, sql, submit=submit).drain()
    assert [name.rpartition(":")[2] for name in ids] == ["1", "1"]
    assert len(set(ids)) == 2


def test_a_pane_whose_id_another_event_has_is_sent_again_with_a_new_id(
    bench: Bench, tmp_path: Path
) -> None:
    """As after a restore of an older store beside a newer log."""
    taken: dict[str, Any] = {}

    def submit(stream: str, events: Any) -> Future[Receipt]:
        rows = {row["event_id"]: row for row in map(json.loads, events)}
        conflicts = sum(taken.get(name, row) != row for name, row in rows.items())
        taken.update({name: row for name, row in rows.items() if name not in taken})
        done: Future[Receipt] = Future()
        done.set_result(Receipt(len(rows), 0, conflicts, ()))
        return done

    sql = "CREATE STREAM told (page STRING) WITH (id = 'event_id');"
    sql += " CREATE SINK s FROM hits INTO STREAM told"
    bench.send(Click("/a", "ann", 5, 7))
    running = sinks(bench, tmp_path, sql, submit=submit)
    running.drain()
    with bench.store.write() as db:
        for table in ("_sink_rows", "_outbox"):
            db.execute(f"DELETE FROM {table}")
        db.execute("UPDATE _sinks SET sequence = 0")
    bench.send(Click("/b", "bob", 6, 8), Click("/a", "bob", 6, 8))
    again = sinks(bench, tmp_path, sql, submit=submit)
    again.drain()
    assert again.problems["sink", "s", "delivery"] == (
        "sink 's' failed: stream 'told' already has other events with the ids of 1 panes"
    )
    again.drain()
    assert again.problems == {}
    newest = {(row["page"], row["n"]) for name, row in taken.items()}
    assert {("/a", 2), ("/b", 1)} <= newest


def test_file_of_another_state_folder_is_not_gone_on_with(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "panes.jsonl").write_text('{"sequence": 40}\n')
    running = sinks(bench, tmp_path)
    running.drain()
    assert running.problems["sink", "out", "delivery"] == (
        "sink 'out' failed: panes.jsonl has pane 40, but the newest pane of the store is 0"
    )
    (tmp_path / "out" / "panes.jsonl").unlink()
    running.drain()
    assert running.problems == {}


def test_outbox_keeps_panes_until_they_are_marked(bench: Bench) -> None:
    account = open_state(bench.store.db, "out", "v1")
    queue = Queue(bench.store.db, "sink out")
    with bench.store.write() as db:
        put_panes(db, "out", [(9, b"a"), (10, b"b"), (11, b"c")], bench.clock())
    (first,) = queue.due(bench.clock(), 1)
    assert (account.sequence, first.body) == (0, b"a")
    queue.delivered([first], bench.clock())
    assert [message.body for message in queue.due(bench.clock(), 9)] == [b"b", b"c"]
    mark_delivered(bench.store.db, "out", 10)
    (last,) = queue.due(bench.clock(), 9)
    assert (last.body, last.key.rpartition(":")[2]) == (b"c", "11")
