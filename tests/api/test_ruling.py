"""Each route of rules and alerts on a real server, asked by `Remote`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from headrace.api.client import Remote
from headrace.api.server import HttpServer
from headrace.core.errors import BadDefinition, NotFound
from headrace.define.settings import HttpSettings
from headrace.run.rulebook import StoreRulebook
from headrace.serving.ledger import Wanted
from tests.run.test_rulebook import OTHER, Deployer
from tests.serving.bench import Click
from tests.serving.rule_bench import SLOW, RuleBench, rule_project


@dataclass
class Service:
    rulebook: StoreRulebook


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Any, StoreRulebook, str]]:
    bench = RuleBench(tmp_path / "serving.db", rules=f"{SLOW} NOTIFY FILE 'a.ndjson'")
    bench.build()
    bench.look()
    bench.send(Click("/a", "ann", 5, 99), Click("/b", "bob", 6, 98))
    bench.look()
    book = StoreRulebook(rule_project(Path(), SLOW), bench.store, Deployer(bench))
    server = HttpServer(Service(book), HttpSettings(port=0))  # type: ignore[arg-type]
    server.start()
    with Remote(server.url) as remote:
        yield remote.rulebook, book, server.url
    server.stop()
    bench.close()


def test_each_question_goes_there_and_back(served: tuple[Any, StoreRulebook, str]) -> None:
    remote, book, _ = served
    assert remote.rules() == book.rules()
    assert remote.rule("slow") == book.rule("slow")
    assert remote.history("slow") == book.history("slow")
    newest, oldest = book.alerts(Wanted())
    assert remote.alerts(Wanted()) == [newest, oldest]
    assert remote.alerts(Wanted(rule="slow", state="open", limit=1)) == [newest]
    assert remote.alerts(Wanted(missed=True, withdrawn=True)) == []
    assert remote.alert(oldest.id) == book.alert(oldest.id)
    with pytest.raises(NotFound, match="there is no rule 'x y'"):
        remote.rule("x y")


def test_each_change_says_who_made_it(served: tuple[Any, StoreRulebook, str]) -> None:
    remote, book, _ = served
    assert remote.switch("slow", "disabled", "bob") == book.history("slow")[0]
    assert remote.switch("slow", "enabled", "cid").changed_by == "cid"
    assert [rule.name for rule in remote.add(OTHER, "dan")] == ["other"]
    assert remote.remove("other", "eve").state == "removed"
    assert remote.mute("slow", "1h", {"user": "ann"}, "bob").keys == {"user": "ann"}
    assert remote.unmute("slow", {"user": "ann"})[0].keys == {"user": "ann"}
    with pytest.raises(NotFound, match="rule 'slow' is not muted so"):
        remote.unmute("slow", {})
    id = book.alerts(Wanted())[0].id
    assert (remote.retry(id), remote.retry(rule="slow")) == (0, 0)
    seen = remote.acknowledge(id, "bob", "on it")
    assert (seen.acknowledged_by, seen.note) == ("bob", "on it")
    with pytest.raises(BadDefinition, match="only CREATE RULE can be added"):
        remote.add("CREATE STREAM s (x INT)", "bob")


def test_who_does_not_say_a_name_is_api(served: tuple[Any, StoreRulebook, str]) -> None:
    _, book, url = served
    assert httpx.post(f"{url}/v1/rules/slow/disable").json()["changed_by"] == "api"
    long = httpx.post(f"{url}/v1/rules/slow/enable", headers={"X-Headrace-User": "x" * 101})
    assert (long.status_code, long.json()["condition"]) == (400, "BadRequest")
    assert httpx.post(f"{url}/v1/alerts/retry").json() == {"notifications": 0}
    id = book.alerts(Wanted())[0].id
    assert httpx.post(f"{url}/v1/alerts/{id}/ack").json()["acknowledged_by"] == "api"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("missed=maybe", "missed is true or false, not 'maybe'"),
        ("limit=0", "limit must be a whole number from 1 to 10000, not '0'"),
        ("colour=red", "alerts have no parameter 'colour'"),
    ],
)
def test_wrong_questions_are_refused(
    query: str, sentence: str, served: tuple[Any, StoreRulebook, str]
) -> None:
    answer = httpx.get(f"{served[2]}/v1/alerts?{query}")
    assert (answer.status_code, answer.json()["message"]) == (400, sentence)
