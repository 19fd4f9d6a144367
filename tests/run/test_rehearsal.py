"""Rules tried on a history that is half in the master and half in the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from master.bench import InProcess

from headrace.core.errors import Unsupported
from headrace.core.time import from_iso
from headrace.define.layout import Layout
from headrace.define.project import Project, load_project
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.master.archive import Archive
from headrace.run.compiling import compile_with
from headrace.run.rehearsal import Rehearsal, rehearse_in
from headrace.serving.opening import open_store

SOURCES = """
CREATE STREAM calls (route STRING, type INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)
  WITH (partitions = '1');
CREATE TABLE routes (route STRING, kind STRING) USING csv LOCATION 'routes.csv';
"""
ON = "ON calls c LEFT JOIN routes r ON c.route = r.route"
DEPLOYED = f"""CREATE RULES directions {ON}
  RULE outgoing WHEN c.type IN (1, 3) THEN SET direction = 'O', old = 1
  ELSE SET direction = '?';"""
CHANGED = f"""CREATE RULES directions {ON}
  RULE outgoing WHEN c.type IN (1, 3, 5) THEN SET direction = 'O'
  RULE roaming WHEN r.kind = 'incoming' THEN SET direction = 'R', kind = r.kind
  RULE never WHEN c.type < 0 THEN SET direction = 'N';"""
CALLS = [(1, "a"), (3, "b"), (5, "a"), (0, "a"), (0, "b"), (7, None)]


def project_of(folder: Path, rules: str) -> Project:
    (folder / "headrace.toml").write_text('name = "calls"\n[log]\nfree_bytes_min = 0\n')
    (folder / "calls.sql").write_text(SOURCES + rules)
    (folder / "routes.csv").write_text("route,kind\na,incoming\nb,outgoing\n")
    return load_project(folder)


@pytest.fixture(scope="module")
def folder(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("rehearsal")
    project = project_of(made, DEPLOYED)
    layout, plan = Layout.of(project), compile_with(spark, project)
    store = open_store(layout.store)
    store.take_over()
    store.deploy(plan)
    store.close()
    topic = EmbeddedWriter.open(layout.log("calls").folder, 1, segment_bytes_max=1 << 20)
    archive = Archive(
        InProcess(), plan.stream("calls"), layout.log("calls"), layout.master("calls")
    )
    for number, (type, route) in enumerate(CALLS):
        if number == 3:
            archive.step(100)
        record = {"type": type, "route": route, "ts": f"2026-01-01T00:00:0{number}Z"}
        topic.append(0, [json.dumps(record).encode()], bytes(1)).result()
    topic.append(0, [b"no json"], bytes(1)).result()
    topic.close()
    return made


def rehearsed(
    spark: Any, folder: Path, rules: str, since: str | None = None, limit: int = 3
) -> Rehearsal:
    project = project_of(folder, rules)
    since_us = from_iso(since) if since else None
    return rehearse_in(spark, project, "directions", since_us, limit)


def test_changed_rules_are_counted_compared_and_shown(spark: Any, folder: Path) -> None:
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    found = rehearsed(spark, folder, CHANGED)
    assert (found.rules, found.stream, found.events, found.results) == ("directions", "calls", 6, 6)
    assert found.decided == {"outgoing": 3, "roaming": 1, "never": 0}
    assert found.undecided == 2
    assert found.deployed is not None
    # One more is outgoing, one is roaming, two have no direction any more.
    assert found.deployed.fields == {"direction": 4, "rule": 4}
    assert (found.deployed.differ, found.deployed.only_now, found.deployed.only_deployed) == (
        4,
        0,
        0,
    )
    assert (found.deployed.new_fields, found.deployed.gone_fields) == (["kind"], ["old"])
    assert [row["rule"] for row in found.samples] == ["outgoing", "roaming", None]
    assert found.samples[1] == {
        "rule": "roaming", "direction": "R", "kind": "incoming", "route": "a", "type": 0,
        "ts": "2026-01-01T00:00:03Z",
    }  # fmt: skip
    after = sorted(path for path in folder.rglob("*") if path.is_file())
    assert [p for p in after if p not in before and p.suffix not in {".db-shm", ".db-wal"}] == []


def test_unchanged_rules_differ_in_nothing(spark: Any, folder: Path) -> None:
    found = rehearsed(spark, folder, DEPLOYED)
    assert found.decided == {"outgoing": 2, "else": 4}
    assert found.deployed is not None
    assert (found.deployed.differ, found.deployed.fields) == (0, {})


def test_since_is_of_event_time(spark: Any, folder: Path) -> None:
    found = rehearsed(spark, folder, DEPLOYED, "2026-01-01T00:00:02Z", 0)
    assert (found.since, found.events, found.samples) == ("2026-01-01T00:00:02Z", 4, [])


def test_all_matches_are_counted_one_by_one(spark: Any, folder: Path) -> None:
    text = f"""CREATE RULES directions {ON} ALL MATCHES
      RULE any WHEN c.type IS NOT NULL THEN SET seen = true
      RULE incoming WHEN r.kind = 'incoming' THEN SET direction = 'I';"""
    found = rehearsed(spark, folder, text)
    assert (found.decided, found.undecided) == ({"any": 6, "incoming": 3}, 0)
    assert found.samples[0]["rules"] in (["any"], ["any", "incoming"])


def test_an_event_with_several_results_is_one_event(spark: Any, folder: Path) -> None:
    text = """CREATE RULES directions ON calls c JOIN routes r ON true
      RULE a WHEN true THEN SET k = r.kind;"""
    found = rehearsed(spark, folder, text)
    assert (found.events, found.results, found.decided) == (6, 12, {"a": 12})
    assert found.deployed is not None
    assert (found.deployed.differ, found.deployed.only_now) == (6, 0)


def test_a_project_that_never_ran_has_no_events(spark: Any, tmp_path: Path) -> None:
    found = rehearsed(spark, tmp_path, CHANGED)
    assert (found.events, found.undecided, found.deployed, found.samples) == (0, 0, None, [])
    assert not (tmp_path / ".headrace" / "master").exists()


def test_rules_on_a_carried_stream_cannot_be_rehearsed(spark: Any, tmp_path: Path) -> None:
    text = """CREATE STREAM counted AS SELECT type, ts,
        row_number() OVER (PARTITION BY type ORDER BY ts) AS n FROM calls;
      CREATE RULES directions ON counted RULE first_one WHEN n = 1 THEN SET first = true;"""
    with pytest.raises(Unsupported, match="they read a stateful stream"):
        rehearsed(spark, tmp_path, text)
