"""A problem is charged to its subject: to each stream of a joined flow, and to the rule that
notifies, not to the stream that would have got the alerts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from serving.bench import plan_of

from headrace.access.caller import Caller, Permission
from headrace.api.resources.status import ProjectStatus, readable_status
from headrace.core.problems import Problem
from headrace.define.layout import Layout
from headrace.define.project import load_project
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.run.health import with_health
from headrace.run.observatory.observed_project import RuntimeInfo
from headrace.run.observatory.topology import topology_of
from headrace.run.offline import Offline
from headrace.serving.opening import open_store

from .stopped import SETTINGS

STREAMS = ("orders", "payments", "clicks")
SQL = """
CREATE STREAM orders (id STRING, n INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
CREATE STREAM payments (id STRING, n INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
CREATE STREAM clicks (alert_id STRING, id STRING) WITH (id = 'alert_id');
CREATE VIEW paid AS SELECT o.id, count(*) AS n FROM orders o JOIN payments p
  ON o.id = p.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 1 MINUTE GROUP BY o.id;
CREATE RULE large AS SELECT id, n FROM orders WHERE n > 100 NOTIFY STREAM clicks;
"""
JOINED = "orders+payments"


@pytest.fixture
def offline(tmp_path: Path) -> Iterator[Offline]:
    (tmp_path / "headrace.toml").write_text(SETTINGS)
    (tmp_path / "shop.sql").write_text(SQL)
    project = load_project(tmp_path)
    layout = Layout.of(project)
    for name in STREAMS:
        EmbeddedWriter.open(layout.log(name).folder, 2, segment_bytes_max=1 << 20).close()
    plan, store = plan_of(SQL), open_store(layout.store)
    store.take_over()
    store.deploy(plan)
    store.deploy_rules(
        plan, frozenset(), "ann", {name: store.stream(name).position for name in STREAMS}
    )
    store.close()
    service = Offline(project)
    yield service
    service.close()


def status_with(offline: Offline, *problems: Problem) -> ProjectStatus:
    offline.runtime_info = lambda: RuntimeInfo(running=True, problems=problems)  # type: ignore[method-assign]
    plan = offline.deployed()
    found = with_health(offline, plan, offline.status_of("running", "", plan, problems))
    offline.status = lambda: found  # type: ignore[method-assign]
    return found


def bad_in(status: ProjectStatus) -> set[str]:
    return {one.about for one in status.problems if one.level == "bad"}


def nodes_with(offline: Offline, message: str) -> set[str]:
    """The places that have this as their own trouble."""
    nodes = topology_of(offline, None).nodes
    return {node.id for node in nodes if node.reason == message and node.cause is None}


def streams_with(status: ProjectStatus) -> list[str]:
    return [stream.name for stream in status.streams if stream.problem]


@pytest.mark.parametrize("what", ["speed", "archive", "batch", "tidy"])
def test_a_joined_flow_that_fails_is_charged_to_its_place_and_to_each_of_its_streams(
    offline: Offline, what: str
) -> None:
    said = f"{what} of stream '{JOINED}' failed: no room"
    status = status_with(offline, Problem("flow", JOINED, what, said))
    assert streams_with(status) == ["orders", "payments"]
    assert bad_in(status) == {f"speed:{JOINED}"} == nodes_with(offline, said)
    assert status.state == "degraded"


def test_a_stream_that_cannot_be_notified_is_charged_to_the_rule(offline: Offline) -> None:
    said = "stream clicks was not notified: the disk is full"
    status = status_with(offline, Problem("action", "stream clicks", "delivery", said))
    assert streams_with(status) == []
    assert bad_in(status) == {"rule:large"} == nodes_with(offline, said)


def test_a_table_named_like_a_stream_is_not_that_stream(offline: Offline) -> None:
    status = status_with(offline, Problem("table", "clicks", "reload", "it is gone"))
    assert streams_with(status) == []


@pytest.mark.parametrize(
    ("on", "told"),
    [
        (("stream:orders", "stream:payments"), True),
        (("stream:orders",), False),
    ],
)
def test_a_problem_of_a_joined_flow_is_told_to_whoever_may_read_all_of_its_streams(
    offline: Offline, on: tuple[str, ...], told: bool
) -> None:
    said = f"speed of stream '{JOINED}' failed: no room"
    status = status_with(offline, Problem("flow", JOINED, "speed", said))
    cut = readable_status(
        status, Caller("ada", "t", "stopped", tuple(Permission.of("read", one) for one in on))
    )
    assert (said in msgspec.json.encode(cut).decode()) is told
