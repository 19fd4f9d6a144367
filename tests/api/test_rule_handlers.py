"""Each route of rules and alerts on a real server, asked by `RemoteService`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from headrace.api.client import RemoteService
from headrace.api.resources.alerts import AlertRequest, AlertsRequest
from headrace.api.resources.rules import RuleRequest, RulesRequest, RuleVersionsRequest
from headrace.api.server import HttpServer
from headrace.core.errors import BadDefinition, NotFound
from headrace.define.settings import HttpSettings
from headrace.run.rule_service import LocalRuleService
from headrace.serving.alerts import AlertFilter
from tests.access.users import open_access
from tests.run.answering import Answering
from tests.run.test_rule_service import OTHER, RuleDeployer
from tests.serving.bench import Click
from tests.serving.rule_bench import SLOW, RuleBench, rule_project


@dataclass
class Service(Answering):
    rule_service: LocalRuleService


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[RemoteService, LocalRuleService, httpx.Client]]:
    bench = RuleBench(tmp_path / "serving.db", rules=f"{SLOW} NOTIFY FILE 'a.ndjson'")
    bench.build()
    bench.look()
    bench.send(Click("/a", "ann", 5, 99), Click("/b", "bob", 6, 98))
    bench.look()
    book = LocalRuleService(
        rule_project(Path(), SLOW), bench.store, RuleDeployer(bench), threading.Lock()
    )
    access, token = open_access(tmp_path)
    server = HttpServer(Service(book), HttpSettings(port=0), access)  # type: ignore[arg-type]
    server.start()
    with RemoteService(server.url, token) as remote:
        yield remote, book, remote._http
    server.stop()
    access.close()
    bench.close()


def test_each_question_goes_there_and_back(
    served: tuple[RemoteService, LocalRuleService, httpx.Client],
) -> None:
    asked, book, _ = served
    assert asked.ask(RulesRequest()).rules == book.rules()
    assert asked.ask(RuleRequest("slow")) == book.rule("slow")
    assert asked.ask(RuleVersionsRequest("slow")).versions == book.history("slow")
    newest, oldest = book.alerts(AlertFilter()).alerts
    assert asked.ask(AlertsRequest()) == book.alerts(AlertFilter())
    first = asked.ask(AlertsRequest(rule="slow", state="open", limit=1))
    assert (first.alerts, first.total) == ([newest], 2)
    after = asked.ask(AlertsRequest(rule="slow", state="open", limit=1, before=newest.number))
    assert (after.alerts, after.total) == ([oldest], 2)
    assert asked.ask(AlertsRequest(each=1)).alerts == [newest]
    assert asked.ask(AlertsRequest(missed=True, withdrawn=True)).alerts == []
    assert asked.ask(AlertRequest(oldest.id)) == book.alert(oldest.id)
    with pytest.raises(NotFound, match="there is no rule 'x y'"):
        asked.ask(RuleRequest("x y"))


def test_each_change_says_who_made_it(
    served: tuple[RemoteService, LocalRuleService, httpx.Client],
) -> None:
    remote, book = served[0].rule_service, served[1]
    assert remote.switch("slow", "disabled", "bob") == book.history("slow")[0]
    assert remote.switch("slow", "enabled", "cid").changed_by == "ann"
    assert [rule.name for rule in remote.add(OTHER, "dan")] == ["other"]
    assert remote.remove("other", "eve").state == "removed"
    assert remote.mute("slow", "1h", {"user": "ann"}, "bob").keys == {"user": "ann"}
    assert remote.unmute("slow", {"user": "ann"})[0].keys == {"user": "ann"}
    with pytest.raises(NotFound, match="rule 'slow' is not muted for these keys"):
        remote.unmute("slow", {})
    id = book.alerts(AlertFilter()).alerts[0].id
    assert (remote.retry(id), remote.retry(rule="slow")) == (0, 0)
    seen = remote.acknowledge(id, "bob", "on it")
    assert (seen.acknowledged_by, seen.note) == ("ann", "on it")
    with pytest.raises(BadDefinition, match="only CREATE RULE statements are accepted"):
        remote.add("CREATE STREAM s (x INT)", "bob")


def test_a_name_in_a_header_changes_nothing(
    served: tuple[RemoteService, LocalRuleService, httpx.Client],
) -> None:
    _, book, http = served
    said = {"X-Headrace-User": "bob"}
    assert http.post("/v1/rules/slow/disable", headers=said).json()["changed_by"] == "ann"
    assert http.post("/v1/alerts/retry").json() == {"notifications": 0}
    id = book.alerts(AlertFilter()).alerts[0].id
    assert http.post(f"/v1/alerts/{id}/ack", headers=said).json()["acknowledged_by"] == "ann"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("missed=maybe", "missed must be true or false, not 'maybe'"),
        ("limit=0", "limit must be a whole number from 1 to 10000, not '0'"),
        ("before=yesterday", "before must be a whole number from 0 on, not 'yesterday'"),
        ("among=slow", "alerts have no parameter 'among'"),
        ("colour=red", "alerts have no parameter 'colour'"),
    ],
)
def test_wrong_questions_are_refused(
    query: str, sentence: str, served: tuple[RemoteService, LocalRuleService, httpx.Client]
) -> None:
    answer = served[2].get(f"/v1/alerts?{query}")
    assert (answer.status_code, answer.json()["message"]) == (400, sentence)
