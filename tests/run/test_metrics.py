"""Every metric keeps the conventions of Prometheus, and its labels are few."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headrace.api.resources.balance import Balance
from headrace.api.resources.status import IdlePartition, ProjectStatus, StreamStatus, ViewStatus
from headrace.core import meters
from headrace.run.metrics import exposition
from headrace.serving.alert_metrics import AlertMetrics, DeliveryMetrics

# Units that are base units, and what is counted without one.
UNITS = ("seconds", "bytes", "events", "requests", "rows", "partitions", "offset", "differences")
COUNTED = (
    "running", "open", "generation", "letters", "builds", "audits", "info", "raised", "delivered",
    "waiting", "failed", "live", "matches", "queries", "problems", "connections",
)  # fmt: skip
LABELS = {
    "stream", "view", "partition", "result", "reason", "engine", "method", "route", "status", "le",
    "version", "python", "rule", "severity", "action", "user", "operation", "decision", "state",
    "level",
}  # fmt: skip
BUCKETS_MAX = 15

STREAM = StreamStatus(
    "clicks", "http", [9, 9], [7, 8], [5, 6], [5, 6], 3, 3, 4, "2026-01-01T00:00:00Z",
    Balance(18, 10, 1, 2, 4), 250, None, -1_500, 0, [IdlePartition(1, "2026-01-01T00:00:00Z")], 5,
    1_200, 500,
)  # fmt: skip
QUIET = StreamStatus("quiet", "http", [0], [0], [0], [0], 0, 0, 0, None, Balance(0, 0, 0, 0, 0))
VIEWS = [
    ViewStatus("visitors", "mergeable", "live", "clicks", 12, 3, 2),
    ViewStatus("fresh", "mergeable", "building", "clicks", 0, 0),
    ViewStatus("busiest", "read", "read", "", 0, 0),
]
STATUS = ProjectStatus("shop", "running", "", None, None, [STREAM, QUIET], VIEWS)
TALLY = AlertMetrics({("slow", "high"): 7}, {"file": DeliveryMetrics(5, 1, 0, 0.0)}, 3, 2)


def _text(folder: Path) -> str:
    (folder / "serving.db").write_bytes(b"x" * 100)
    (folder / "serving.db-wal").write_bytes(b"x" * 20)
    return exposition(STATUS, TALLY, folder, subscriptions=2).decode()


def test_every_name_keeps_the_conventions(tmp_path: Path) -> None:
    text = _text(tmp_path)
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    kinds = dict(re.findall(r"^# TYPE (\S+) (.*)$", text, re.MULTILINE))
    assert set(helps) == set(kinds)
    for name, kind in kinds.items():
        assert re.fullmatch(r"(headrace|process)_[a-z][a-z0-9_]*", name), name
        assert helps[name].strip(), name
        assert name.endswith("_total") == (kind == "counter"), name
        assert not re.search(r"_(ms|us|milliseconds|minutes|kb|mb|percent|count|sum)(_|$)", name)
        if name.startswith("headrace_"):
            assert name.removesuffix("_total").rpartition("_")[2] in (*UNITS, *COUNTED), name
            assert helps[name][0].islower() or helps[name][0].isdigit() or "HTTP" in helps[name]


def test_no_label_is_without_bound(tmp_path: Path) -> None:
    _count_one_of_each()
    for family in text_string_to_metric_families(_text(tmp_path)):
        for sample in family.samples:
            assert set(sample.labels) <= LABELS, family.name
        if family.type == "histogram":
            series: dict[str, int] = {}
            for sample in family.samples:
                rest = {k: v for k, v in sample.labels.items() if k != "le"}
                series[str(rest)] = series.get(str(rest), 0) + ("le" in sample.labels)
            assert all(1 < many <= BUCKETS_MAX for many in series.values()), family.name


def _count_one_of_each() -> None:
    for meter in meters.REGISTRY._collector_to_names:
        child = meter.labels(*meter._labelnames)  # type: ignore[attr-defined]
        child.observe(1.0) if hasattr(child, "observe") else child.inc()


def test_numbers_are_in_base_units_and_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(_text(tmp_path))
        for sample in family.samples
    }
    assert found["headrace_running",] == 1
    assert found["headrace_subscriptions_open",] == 2
    assert found["headrace_stream_lag_events", "clicks"] == 3
    assert found["headrace_stream_lag_seconds", "clicks"] == 1.2
    assert found["headrace_stream_lag_seconds", "quiet"] == 0
    assert found["headrace_stream_watermark_gap_seconds", "clicks"] == -1.5
    assert ("headrace_stream_watermark_gap_seconds", "quiet") not in found
    assert found["headrace_stream_balance_off_events", "clicks"] == 1
    assert found["headrace_stream_dead_letter_events_total", "clicks"] == 2
    assert found["headrace_log_durable_offset", "1", "clicks"] == 9
    assert found["headrace_view_differences", "visitors"] == 2
    assert ("headrace_view_differences", "fresh") not in found
    assert found["headrace_view_rows", "visitors"] == 12
    assert ("headrace_view_rows", "busiest") not in found
    assert found["headrace_store_bytes",] == 120
    assert found["headrace_disk_free_bytes",] > 0
    assert found["process_resident_memory_bytes",] > 0


@pytest.mark.parametrize("state", ["degraded", "stopping"])
def test_running_is_zero_while_a_part_does_not_run(state: str) -> None:
    text = exposition(
        ProjectStatus("shop", state, "why", None, None, [], []), AlertMetrics({}, {})
    ).decode()
    assert "\nheadrace_running 0.0\n" in text
