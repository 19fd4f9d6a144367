"""The graph of a project, its numbers, and what trouble is caused by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from audit.traced import Traced, event

from headrace.api.resources.topology import Node, Topology
from headrace.core.problems import Problem
from headrace.core.time import SECOND
from headrace.define.project import load_project
from headrace.run.observatory import graph
from headrace.run.observatory.observed_project import RuntimeInfo
from headrace.run.observatory.samples import Samples
from headrace.run.observatory.topology import topology_of
from headrace.run.offline import Offline


@pytest.fixture
def offline(tmp_path: Path) -> Iterator[Offline]:
    """Two events in a generation, one in the store, and one in the log."""
    traced = Traced(tmp_path / "project")
    traced.send(event("/a", 5), event("/b", 6))
    traced.epoch()
    traced.generation()
    traced.send(event("/a", 7))
    traced.epoch()
    traced.send(event("/a", 8), partition=1)
    service = traced.offline()
    service.store.clock = lambda: traced.clock.now_us + 3 * SECOND
    triggered(service, 4 * SECOND)
    yield service
    service.close()
    traced.close()


def triggered(offline: Offline, trigger_us: int) -> None:
    """Begin an epoch this often; here each takes a second."""
    settings = offline.project.settings
    speed = replace(settings.speed, trigger_us=trigger_us)
    offline.project = replace(offline.project, settings=replace(settings, speed=speed))


def running(offline: Offline, *problems: Problem) -> Topology:
    """The topology as if the project ran, with these problems and some rates."""
    offline.runtime_info = lambda: RuntimeInfo(running=True, problems=problems)  # type: ignore[method-assign]
    samples = Samples()
    samples.add(0, {"source:clicks": 0, "log:clicks": 0, "speed:clicks": 0})
    samples.add(SECOND, {"source:clicks": 40, "log:clicks": 40, "speed:clicks": 30})
    return topology_of(offline, samples)


def nodes(topology: Topology) -> dict[str, Node]:
    return {node.id: node for node in topology.nodes}


def test_there_is_a_node_for_each_thing_and_edges_as_events_go(offline: Offline) -> None:
    topology = running(offline)
    views = ("slow", "known", "quick_pages", "total", "often", "unnamed", "reread")
    assert set(nodes(topology)) == {
        "source:clicks", "log:clicks", "master:clicks", "speed:clicks", "table:sections",
        "stream:quick", *(f"view:{view}" for view in views),
    }  # fmt: skip
    edges = {(edge.source, edge.target) for edge in topology.edges}
    assert {
        ("source:clicks", "log:clicks"),
        ("log:clicks", "master:clicks"),
        ("log:clicks", "speed:clicks"),
        ("speed:clicks", "stream:quick"),
        ("stream:quick", "view:quick_pages"),
        ("speed:clicks", "view:slow"),
        ("master:clicks", "view:slow"),
        ("table:sections", "view:known"),
        ("view:slow", "view:reread"),
    } <= edges
    assert ("speed:clicks", "view:quick_pages") not in edges
    assert len(edges) == len(topology.edges)


def test_numbers_are_those_of_the_store_and_the_log(offline: Offline) -> None:
    found = nodes(running(offline))
    speed, master = found["speed:clicks"], found["master:clicks"]
    assert (speed.health, speed.lag_events, speed.rate) == ("ok", 1, 30)
    assert speed.lag_ms is not None
    assert 3_000 <= speed.lag_ms <= 5_000
    assert (master.lag_events, master.detail["events"]) == (2, 2)
    assert found["log:clicks"].detail == {"accepted": 4, "in_log": 2}
    assert found["view:slow"].rate == 30
    assert (speed.saturation, speed.detail["epoch_ms"]) == (0.25, 1_000.0)


def test_rates_are_those_of_what_flows(offline: Offline) -> None:
    rates = {(edge.source, edge.target): edge.rate for edge in running(offline).edges}
    assert rates["source:clicks", "log:clicks"] == 40
    assert rates["log:clicks", "speed:clicks"] == 30
    assert rates["speed:clicks", "view:slow"] == rates["stream:quick", "view:quick_pages"] == 30
    assert rates["master:clicks", "view:slow"] is None


def test_trouble_of_speed_is_told_to_all_that_is_behind_it(offline: Offline) -> None:
    found = nodes(
        running(
            offline, Problem("flow", "clicks", "speed", "speed of stream 'clicks' failed: boom")
        )
    )
    assert (found["speed:clicks"].health, found["speed:clicks"].cause) == ("bad", None)
    for id in ("view:slow", "stream:quick", "view:quick_pages", "view:reread"):
        assert (found[id].health, found[id].cause) == ("bad", "speed:clicks")
        assert found[id].reason == "speed of stream 'clicks' failed: boom"
    assert found["log:clicks"].health == "ok"
    assert found["table:sections"].cause is None


def test_behind_a_master_or_source_that_fails_answers_are_still_right(offline: Offline) -> None:
    found = nodes(running(offline, Problem("flow", "clicks", "archive", "the archive failed")))
    assert found["master:clicks"].health == "bad"
    assert (found["view:slow"].health, found["view:slow"].cause) == ("warn", "master:clicks")
    assert found["speed:clicks"].health == "ok"
    found = nodes(running(offline, Problem("source", "clicks", "connector", "the port is taken")))
    assert (found["source:clicks"].health, found["log:clicks"].health) == ("bad", "warn")
    assert found["view:reread"].cause == "source:clicks"


def test_tables_that_cannot_be_read_spoil_what_joins_them(offline: Offline) -> None:
    found = nodes(running(offline, Problem("table", "sections", "reload", "sections.csv is gone")))
    assert found["table:sections"].health == "bad"
    assert (found["view:known"].health, found["view:known"].cause) == ("bad", "table:sections")
    assert found["view:slow"].health == "ok"


def test_events_that_wait_long_are_warned_of(offline: Offline) -> None:
    now = offline.store.clock()
    offline.store.clock = lambda: now + 60 * SECOND
    found = nodes(running(offline))
    assert found["speed:clicks"].health == found["master:clicks"].health == "warn"
    assert found["speed:clicks"].reason == (
        "events of 'clicks' have waited for speed for more than 14s"
    )
    assert found["master:clicks"].reason == (
        "events of 'clicks' have waited for the archive for more than 30s"
    )
    offline.store.clock = lambda: now + 600 * SECOND
    speed = nodes(running(offline))["speed:clicks"]
    assert (speed.health, speed.reason) == (
        "bad",
        "events of 'clicks' have waited for speed for more than 1.4m",
    )


def test_an_epoch_that_takes_longer_than_its_interval_is_warned_of(offline: Offline) -> None:
    triggered(offline, SECOND // 2)
    speed = nodes(running(offline))["speed:clicks"]
    assert (speed.saturation, speed.health) == (2.0, "warn")


def test_an_epoch_of_long_ago_is_not_in_the_way_of_the_next(offline: Offline) -> None:
    triggered(offline, SECOND // 2)
    now = offline.store.clock()
    offline.store.clock = lambda: now + 61 * SECOND
    speed = nodes(running(offline))["speed:clicks"]
    assert (speed.saturation, speed.detail["epoch_ms"]) == (None, 1_000.0)
    assert "trigger" not in speed.reason


def test_a_view_with_differences_is_bad(offline: Offline) -> None:
    status = offline.status()
    views = [
        msgspec.structs.replace(view, differences=2) if view.name == "slow" else view
        for view in status.views
    ]
    offline.status = lambda: msgspec.structs.replace(status, views=views)  # type: ignore[method-assign]
    found = nodes(running(offline))
    assert (found["view:slow"].health, found["view:slow"].reason) == (
        "bad",
        "the audit found 2 differences",
    )
    assert found["view:reread"].cause == "view:slow"


def test_what_stands_still_is_idle_and_so_is_a_stopped_project(offline: Offline) -> None:
    offline.runtime_info = lambda: RuntimeInfo(running=True)  # type: ignore[method-assign]
    samples = Samples()
    for at in (0, SECOND):
        samples.add(at, {"source:clicks": 4, "log:clicks": 4, "speed:clicks": 3})
    found = nodes(topology_of(offline, samples))
    assert found["source:clicks"].health == found["view:slow"].health == "idle"
    assert found["speed:clicks"].health == "ok"  # an event waits for it
    offline.runtime_info = lambda: RuntimeInfo()  # type: ignore[method-assign]
    stopped = topology_of(offline, None)
    assert {(node.health, node.reason) for node in stopped.nodes} == {
        ("idle", "the project is not running")
    }
    assert {edge.rate for edge in stopped.edges} == {None}


def test_a_project_that_never_ran_has_nothing_to_show(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text('name = "new"\n')
    service = Offline(load_project(tmp_path))
    assert topology_of(service, None).nodes == []
    service.close()


def test_the_queries_of_a_project_are_read_once_until_there_is_another(
    offline: Offline, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[object]()
    monkeypatch.setattr(graph, "reads_of", lambda project: read.append(project) or {"a": ["b"]})
    reads = graph.ReadsCache()
    assert reads(offline.project) == reads(offline.project) == {"a": ["b"]}
    assert read == [offline.project]
    other = replace(offline.project)
    reads(other)
    assert read[1] is other
