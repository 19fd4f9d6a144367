"""`headrace rule` and `headrace alerts`: the pages, over a store without Spark."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from headrace.api.get_request import GetRequest
from headrace.api.resources.alerts import AlertsRequest
from headrace.run.rule_service import LocalRuleService
from headrace.serving.alerts import Alert, Alerts
from tests.run.answering import Answering
from tests.run.test_rule_service import OTHER, RuleDeployer, fail
from tests.serving.bench import Click
from tests.serving.rule_bench import SLOW, RuleBench, rule_project

from .conftest import document

Call = Callable[..., Result]
AT = "2026-01-01T00:00:00Z"


@dataclass
class Service(Answering):
    rule_service: LocalRuleService


@pytest.fixture
def bench(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RuleBench]:
    made = RuleBench(tmp_path / "serving.db", rules=f"{SLOW} NOTIFY FILE 'a.ndjson'")
    made.build()
    made.look()
    made.send(Click("/a", "ann", 5, 99))
    made.look()
    book = LocalRuleService(
        rule_project(Path(), SLOW), made.store, RuleDeployer(made), threading.Lock()
    )
    monkeypatch.setattr("headrace.run.connect.connect", lambda project: Service(book))
    yield made
    made.close()


def lines(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_rules_are_listed_shown_and_have_a_history(bench: RuleBench, call: Call) -> None:
    assert lines(call("rule", "list")) == [
        "rule state severity version alerts open suppressed missed withdrawn waiting failed",
        "slow enabled medium 1 1 1 0 0 0 1 0",
    ]
    assert document(call("rule", "list", "--json"))["rules"][0]["numbers"]["open"] == 1
    shown = lines(call("rule", "show", "slow"))
    assert shown[3].startswith("CREATE RULE slow AS SELECT")
    assert shown[-1].startswith("in the project's files, by ann at 2026-01-01")
    assert lines(call("rule", "history", "slow"))[1].startswith("1 enabled 2026-01-01")


def test_rules_are_changed_by_the_one_who_calls(
    bench: RuleBench, call: Call, tmp_path: Path
) -> None:
    file = tmp_path / "more.sql"
    file.write_text(OTHER)
    assert lines(call("rule", "add", str(file))) == ["other: version 1"]
    assert lines(call("rule", "disable", "other")) == ["other: disabled, version 2"]
    assert lines(call("rule", "enable", "other")) == ["other: enabled, version 3"]
    removed = document(call("rule", "remove", "other", "--json"))
    assert (removed["state"], removed["changed_by"]) == ("removed", getpass.getuser())
    assert call("rule", "show", "other").exit_code == 3
    assert call("rule", "add", str(tmp_path / "nothing.sql")).exit_code == 1


def test_alerts_are_listed_acknowledged_and_muted(bench: RuleBench, call: Call) -> None:
    (alert,) = bench.alerts()
    assert lines(call("alerts", "list"))[1].startswith(
        f"{alert.id[:12]} slow medium open 2026-01-01 00:00:05 speed"
    )
    assert lines(call("alerts", "list", "--missed", "--withdrawn")) == ["no alerts"]
    assert lines(call("alerts", "show", alert.id))[-1] == "file a.ndjson waiting 0"
    seen = lines(call("alerts", "ack", alert.id[:8], "--note", "on it"))
    assert f"acknowledged by {getpass.getuser()}: on it" in seen
    said = lines(call("alerts", "mute", "slow", "--for", "1h", "--where", "user=ann"))
    assert said == ["slow (user=ann): muted until 2026-01-01 02:00 UTC"]
    assert "muted (user=ann) until 2026-01-01 02:00 UTC" in lines(call("rule", "show", "slow"))
    unmuted = lines(call("alerts", "unmute", "slow", "--where", "user=ann"))
    assert unmuted == ["slow (user=ann): not muted any more"]
    assert call("alerts", "unmute", "slow").exit_code == 3
    assert call("alerts", "show", "zz").exit_code == 3


def test_no_rule_hides_the_alerts_of_another(
    shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    class Noisy(Answering):
        def ask(self, question: GetRequest[Any]) -> Any:
            asked.append(question)
            alert = Alert("9c1f", "slow", 1, "low", "open", {}, AT, AT, "speed")
            return Alerts([alert], 560, [])

    monkeypatch.setattr("headrace.run.connect.connect", lambda project: Noisy())
    assert lines(call("alerts", "list", "--state", "open"))[-1] == "1 of 560"
    call("alerts", "list", "--each", "3", "--limit", "50")
    call("alerts", "list", "--rule", "slow", "--limit", "50")
    assert asked == [
        AlertsRequest(state="open", each=20, limit=100),
        AlertsRequest(each=3, limit=50),
        AlertsRequest("slow", each=50, limit=50),
    ]


def test_failed_notifications_are_tried_again(bench: RuleBench, call: Call) -> None:
    assert lines(call("alerts", "retry")) == ["retrying 0 notifications"]
    fail(bench)
    assert lines(call("alerts", "retry", bench.alerts()[0].id[:8])) == ["retrying 1 notification"]
    fail(bench)
    said = document(call("alerts", "retry", "--rule", "slow", "--json"))
    assert said == {"notifications": 1}
