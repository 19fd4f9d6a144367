"""Every route that takes SQL refuses every hostile statement, on a project that runs: a few that
are drawn for each place that takes SQL, and all of them in `make prove`.

Which routes these are is read off the tables of routes: each text that a route takes is either SQL,
and then sent here, or named below as something else. A new one fails until it is one of the two.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from chance import PROVE, drawn

from headrace.api.routes import ROUTES
from headrace.server.routes import ROUTES as SERVER_ROUTES
from tests.run import asking
from tests.run.shared.conftest import DEFINITIONS

HOSTILE = (
    (Path(__file__).parents[2] / "spark" / "hostile_queries.sql").read_text("utf-8").splitlines()
)
OVERSIZED = [
    "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    "SELECT " + "1+" * 9000 + "1",
    "SELECT " + "NOT " * 4000 + "true",
    "SELECT " + "- " * 4000 + "1",
    "SELECT '" + "x" * 10_001 + "'",
]
# What Spark is not asked, because it is answered by us.
AS_OF = "SELECT * FROM clicks TIMESTAMP AS OF '2020-01-01'"
FORMS_OF_OURS = {"query": [AS_OF], "query_plan": [AS_OF]}
# Texts that routes take and that are no SQL: names, values, times, secrets, notes.
NO_SQL = {
    "Last-Event-ID", "alert", "apply_version_body", "before", "code", "field", "file", "find",
    "from", "id", "job", "key", "keys", "length", "life", "may", "memory", "name", "note", "null",
    "on", "order", "part", "path", "pool", "role", "rule", "send_events_body", "state", "stream",
    "submit_job_body", "tags", "to", "token", "topics", "user", "view", "watch", "what", "window",
}  # fmt: skip
SOME, LONG = 4, 2  # statements for each place that takes SQL, in `make test`
Send = Callable[[str], httpx.Response]


def texts(route: Any) -> Iterator[str]:
    """The names of all texts that a route takes."""
    for parameter in route.parameters:
        if _is_text(parameter.type):
            yield parameter.name
    for body in route.bodies:
        for kind in typing.get_args(body.type) or (body.type,):
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                hints = typing.get_type_hints(kind)
                yield from (name for name, hint in hints.items() if _is_text(hint))
            else:
                yield f"{route.name}_body"


def _is_text(hint: Any) -> bool:
    return hint is str or any(map(_is_text, typing.get_args(hint)))


def sql_routes(routes: Any) -> list[str]:
    return sorted({route.name for route in routes if set(texts(route)) - NO_SQL})


def senders(url: str) -> dict[str, list[Send]]:
    """How a statement is sent to each route: as it is, and in each place that takes a piece."""

    def post(route: str, form: str = "{}") -> Send:
        def send(sql: str) -> httpx.Response:
            body = {"sql": form.replace("{}", sql)}
            return asking.post(f"{url}/v1/{route}", json=body, timeout=200)

        return send

    def subscribe(form: str = "{}") -> Send:
        return lambda sql: subscribed(url, form.replace("{}", sql))

    count = "WITHIN INTERVAL 1 MINUTE PER user FROM clicks"
    matched = "FROM clicks MATCH_RECOGNIZE (PARTITION BY user ORDER BY ts MEASURES"
    return {
        "query": [post("sql")],
        "query_plan": [post("sql/plan")],
        "add_rules": [
            post("rules"),
            post("rules", "CREATE RULE r AS {}"),
            post("rules", "CREATE RULE r AS SELECT * FROM clicks WHERE ({}) IS NULL"),
            post("rules", f"CREATE RULE r AS count(DISTINCT ({{}})) >= 2 {count}"),
            post("rules", f"CREATE RULE r AS SELECT * {matched} ({{}}) AS m PATTERN (a))"),
        ],
        "add_watches": [
            post("watches"),
            post("watches", "CREATE WATCH w AS {} AFTER 1 MATCH"),
            post("watches", "CREATE WATCH w AS SELECT * FROM clicks AFTER 1 MATCH WHEN (({}) = 1)"),
        ],
        "subscribe": [
            subscribe(),
            subscribe("SUBSCRIBE TO clicks WHERE ({}) IS NULL"),
            subscribe("SUBSCRIBE TO users WHERE ({}) IS NULL"),
        ],
    }


def subscribed(url: str, text: str) -> httpx.Response:
    """The answer to a subscription; of one that is let in, only the head is read."""
    asked = {"params": {"sql": text}, "headers": asking.known(url), "timeout": 120}
    with httpx.stream("GET", f"{url}/v1/subscribe", **asked) as answer:
        if answer.status_code != 200:
            answer.read()
        return answer


def expressions() -> Iterator[str]:
    """What the hostile statements compute, as it may stand alone in a condition."""
    for text in HOSTILE:
        if text.startswith("SELECT ") and " FROM " not in text and ";" not in text:
            yield text.removeprefix("SELECT ")


def some(texts: list[str], many: int, *about: object) -> list[str]:
    """All in `make prove`, else a few: tests/spark/test_allowed_sql.py reads each of them."""
    return texts if PROVE else drawn("hostile", *about).sample(texts, many)


def refused(answer: httpx.Response) -> bool:
    """Whether it was refused for what it says, and neither let in nor met by a failure."""
    return answer.status_code in {400, 403, 404, 413} and answer.json()["condition"] != "Forbidden"


def test_every_text_that_a_route_takes_is_sent_here_or_is_no_sql() -> None:
    assert sql_routes(ROUTES) == sorted(senders(""))
    assert sql_routes(SERVER_ROUTES) == []


@pytest.mark.process
@pytest.mark.timeout(600)
@pytest.mark.parametrize("route", sorted(senders("")))
def test_every_hostile_statement_is_refused_at_every_route(shared_url: str, route: str) -> None:
    for number, send in enumerate(senders(shared_url)[route]):
        sent = [*some(HOSTILE, SOME, route, number), *some(OVERSIZED, LONG, route, number)]
        let_in = [sql[:100] for sql in sent if not refused(send(sql))]
        assert let_in == [sql for sql in sent if sql in FORMS_OF_OURS.get(route, [])]


@pytest.mark.process
@pytest.mark.timeout(600)
def test_every_hostile_expression_is_refused_in_a_condition(shared_url: str) -> None:
    sent = senders(shared_url)
    let_in: dict[str, list[str]] = {}
    chosen = some(list(expressions()), 2 * SOME, "condition")
    for expression in chosen:
        condition = f"CAST({expression} AS STRING) = 'a'"
        select, subscription = f"SELECT * FROM clicks WHERE {condition}", "SUBSCRIBE TO"
        answers = {
            "rule": sent["add_rules"][1](select),
            "watch": sent["add_watches"][1](select),
            "stream": subscribed(shared_url, f"{subscription} clicks WHERE {condition}"),
            "view": subscribed(shared_url, f"{subscription} users WHERE {condition}"),
        }
        for name, answer in answers.items():
            if not refused(answer):
                let_in.setdefault(name, []).append(expression)
    # Conditions on views are answered by the store, to which this is a text like any other.
    harmless = "'${env:HOME}'"
    assert let_in == ({"view": [harmless]} if harmless in chosen else {})


@pytest.mark.process
def test_what_a_file_says_may_not_be_said_after_it(shared_url: str) -> None:
    text = DEFINITIONS[DEFINITIONS.index("CREATE WATCH of_files") :].partition(";")[0]
    body = {"sql": text.replace("of_files", "mine").replace("'a'", "'b'")}
    answer = asking.post(f"{shared_url}/v1/watches", json=body, timeout=200)
    assert (answer.status_code, answer.json()["message"]) == (
        403, "watch 'mine' may not use the function 'xpath_string'",
    )  # fmt: skip


@pytest.mark.process
def test_no_definition_of_the_network_writes_outside_the_output_folder(shared_url: str) -> None:
    for target in ("/tmp/x", "../x.sql", "../functions.py", "../.headrace/serving.db", "a/../../x"):
        for route, head in (("rules", "RULE r"), ("watches", "WATCH w")):
            end = "AFTER 1 MATCH" if route == "watches" else ""
            text = f"CREATE {head} AS SELECT * FROM clicks {end} NOTIFY FILE '{target}'"
            answer = asking.post(f"{shared_url}/v1/{route}", json={"sql": text}, timeout=200)
            assert answer.status_code == 400, answer.text
            assert "which is not in the project's output folder" in answer.json()["message"]


@pytest.mark.process
@pytest.mark.timeout(300)
def test_rules_that_compute_are_added_with_patterns_and_thresholds(shared_url: str) -> None:
    text = """
    CREATE RULE slower AS SELECT user, upper(url) AS page FROM clicks WHERE ms > 900;
    CREATE RULE many AS count(DISTINCT lower(url)) >= 3 WITHIN INTERVAL 1 MINUTE PER user
      FROM clicks WHERE ms > 1;
    CREATE RULE up AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY user ORDER BY ts
      MEASURES last(b.ms) AS most PATTERN (a b+) DEFINE b AS b.ms > prev(b.ms))
    """
    answer = asking.post(f"{shared_url}/v1/rules", json={"sql": text}, timeout=200)
    assert answer.status_code == 200, answer.text
    assert [rule["name"] for rule in answer.json()["rules"]] == ["slower", "many", "up"]
