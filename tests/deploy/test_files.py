"""The dashboard and the alerts name metrics that there are, and say what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from headrace.api.resources.balance import Balance
from headrace.api.resources.status import ProjectStatus, StreamStatus, ViewStatus
from headrace.cli.main import app
from headrace.core.meters import REGISTRY
from headrace.run.metrics import exposition
from headrace.server.meters import REGISTRY as SERVER_REGISTRY
from headrace.server.metrics import exposition as server_exposition
from headrace.serving.alert_metrics import AlertMetrics

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "deploy/grafana/headrace.json").read_text("utf-8"))
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text("utf-8"))
ALERTS: list[dict[str, Any]] = [rule for group in RULES["groups"] for rule in group["rules"]]
_NAME = re.compile(r"\b((?:headrace|process)_[a-z0-9_]+)\b")
_MATCHERS = re.compile(r"(headrace_\w+?)(?:_bucket)?\{([^}]*)\}")


def exposed() -> set[str]:
    """Every series of our exposition, the parts of histograms included."""
    stream = StreamStatus("s", "http", [0], [0], [0], [0], 0, 0, 0, None, Balance(0, 0, 0, 0, 0))
    view = ViewStatus("v", "mergeable", "live", "s", 0, 0)
    status = ProjectStatus("p", "running", "", None, None, [stream], [view])
    text = exposition(status, AlertMetrics({}, {}), ROOT).decode() + server_exposition([]).decode()
    kinds = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    parts = {
        f"{name}_{part}"
        for name, kind in kinds
        if kind == "histogram"
        for part in ("bucket", "sum", "count")
    }
    return {name for name, _ in kinds} | parts


def expressions() -> list[str]:
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    variables = [each["query"] for each in DASHBOARD["templating"]["list"]]
    return panels + variables + [rule["expr"] for rule in ALERTS]


def test_every_metric_that_is_named_exists() -> None:
    named = {name for text in expressions() for name in _NAME.findall(text)}
    assert named - exposed() == set()
    assert len(named) > 20


def test_every_label_that_is_asked_for_exists() -> None:
    labels = {
        meter.describe()[0].name: {*meter._labelnames, "instance"}  # type: ignore[attr-defined]
        for registry in (REGISTRY, SERVER_REGISTRY)
        for meter in registry._collector_to_names
    }
    labels["headrace_jobs"] = {"state", "instance"}
    for text in expressions():
        for name, matchers in _MATCHERS.findall(text):
            known = labels.get(name.removesuffix("_total"), {"stream", "view", "instance"})
            assert set(re.findall(r"(\w+)\s*=", matchers)) <= known, text


def test_panels_do_not_overlap_and_each_has_a_title_and_a_unit() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_every_alert_says_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"Headrace[A-Z]\w+", rule["alert"])
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert set(rule["annotations"]) == {"summary", "action"}
    assert len(rule["annotations"]["action"].split()) > 8


def test_commands_that_alerts_name_exist() -> None:
    known = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    told = [rule["annotations"]["action"] for rule in ALERTS]
    named = {name for text in told for name in re.findall(r"`headrace ([a-z-]+)", text)}
    assert named <= known
    assert {"status", "audit", "dead-letters"} <= named
