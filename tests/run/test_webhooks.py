"""The month of examples/webhooks through batch and speed, beside what plain Python finds in it."""

from __future__ import annotations

import json
import runpy
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from engines import Parts, compile_sql

from headrace.audit.oracle import audit_view

WEBHOOKS = Path(__file__).parents[2] / "examples" / "webhooks"
SCRIPT = runpy.run_path(str(WEBHOOKS / "make_month.py"))
SUCCEEDED, FAILED, REFUNDED = "charge.succeeded", "charge.failed", "charge.refunded"
HALF_HOUR_S, DELAY_S = 1_800, 3_600

Events = list[dict[str, Any]]


@pytest.fixture(scope="module")
def month() -> dict[str, list[Any]]:
    made: dict[str, list[Any]] = SCRIPT["make_month"](seed=3, events=3_000)
    return made


@pytest.fixture(scope="module")
def payments(month: dict[str, list[Any]]) -> Events:
    return events_of(month["payments"])


@pytest.fixture(scope="module")
def forge(month: dict[str, list[Any]]) -> Events:
    return events_of(month["forge"])


def events_of(lines: list[Any]) -> Events:
    return [json.loads(x.text, parse_float=Decimal) for x in lines if x.kind == "event"]


@pytest.fixture(scope="module")
def parts(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, month: dict[str, list[Any]]
) -> Iterator[Parts]:
    """The first half of each file is in a generation, and the second only in speed."""
    folder = tmp_path_factory.mktemp("webhooks")
    sql = (WEBHOOKS / "webhooks.sql").read_text("utf-8")
    made = Parts(compile_sql(spark, folder, sql), folder / "state")
    send(made, month, slice(None, 800))
    made.catch_up()
    send(made, month, slice(800, None))
    for flow in made.flows:
        epoch = made.epoch(flow)
        assert epoch is not None
        assert made.store.commit_epoch(epoch)
    yield made
    made.close()


def send(parts: Parts, month: dict[str, list[Any]], part: slice) -> None:
    for stream, lines in month.items():
        parts.intake(stream).accept([line.text.encode() for line in lines[part]])


def rows_of(parts: Parts, view: str, *keys: str) -> dict[Any, dict[str, Any]]:
    rows = parts.reader.view(view).rows
    found = {tuple(key_of(row[key]) for key in keys): row for row in rows}
    assert len(found) == len(rows)
    return found


def key_of(value: Any) -> Any:
    return value["start"][:10] if isinstance(value, dict) else value


def day_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def week_of(seconds: float) -> str:
    day = datetime.fromtimestamp(seconds, UTC).date()
    return (day - timedelta(days=day.weekday())).isoformat()


def sums(events: Events, kind: str, *, by_day: bool = True) -> dict[Any, Decimal]:
    """Amounts by day and currency, or by currency and customer."""
    total: dict[Any, Decimal] = defaultdict(Decimal)
    for event in events:
        if event["type"] == kind:
            currency = event.get("currency", "EUR")
            day, customer = day_of(event["created"]), event["customer"]["id"]
            total[(day, currency) if by_day else (currency, customer)] += Decimal(event["amount"])
    return total


def test_duplicates_dead_letters_and_late_events_are_those_that_were_made(
    parts: Parts, month: dict[str, list[Any]]
) -> None:
    said: Counter[str] = Counter()
    for lines in month.values():
        said.update(SCRIPT["summary"](lines))
    found = parts.counts()
    assert found == {name: said[name] for name in found}
    assert min(found.values()) > 20


def test_takings_are_exact_to_the_last_digit(parts: Parts, payments: Events) -> None:
    rows = rows_of(parts, "takings", "day", "currency")
    taken, refunded = sums(payments, SUCCEEDED), sums(payments, REFUNDED)
    fees: dict[Any, Decimal] = defaultdict(Decimal)
    minor: Counter[Any] = Counter()
    for event in payments:
        key = day_of(event["created"]), event.get("currency", "EUR")
        fees[key] += event.get("fee", 0)
        minor[key] += event["amount_minor"] if event["type"] == SUCCEEDED else 0
    assert rows.keys() == fees.keys()
    for key, row in rows.items():
        assert Decimal(row["taken"] or 0) == taken[key]
        assert Decimal(row["refunded"]) == refunded[key]
        assert Decimal(row["fees"]) == fees[key]
        assert (row["taken_minor"] or 0) == minor[key]


def test_sums_of_sums_are_exact_too(parts: Parts, payments: Events) -> None:
    spent = sums(payments, SUCCEEDED, by_day=False)
    customers = rows_of(parts, "customers", "currency", "customer_id")
    assert {key: Decimal(row["spent"]) for key, row in customers.items()} == spent
    rates = rows_of(parts, "refund_rates", "currency")
    to_date: dict[str, Decimal] = defaultdict(Decimal)
    for row in parts.reader.view("takings_to_date").rows:
        value = Decimal(row["taken_to_date"] or 0)
        to_date[row["currency"]] = max(to_date[row["currency"]], value)
    best = [row for row in parts.reader.view("top_customers").rows if row["place"] == 1]
    assert len(rates) == len(best) == 4
    for row in best:
        mine = {key: value for key, value in spent.items() if key[0] == row["currency"]}
        assert mine[row["currency"], row["customer_id"]] == max(mine.values())
        total = sum(mine.values())
        assert Decimal(rates[(row["currency"],)]["taken"]) == total == to_date[row["currency"]]


def test_items_are_counted_one_by_one(parts: Parts, payments: Events) -> None:
    sold: Counter[Any] = Counter()
    taken: dict[Any, Decimal] = defaultdict(Decimal)
    for event in payments:
        for item in event["items"] if event["type"] == SUCCEEDED else ():
            key = item["sku"], event.get("currency", "EUR")
            sold[key] += item["quantity"]
            taken[key] += item["quantity"] * Decimal(item["price"])
    rows = rows_of(parts, "products", "sku", "currency")
    assert {key: row["sold"] for key, row in rows.items()} == sold
    assert {key: Decimal(row["taken"]) for key, row in rows.items()} == taken


def test_paths_of_a_variant_find_methods_and_reasons(parts: Parts, payments: Events) -> None:
    methods: Counter[Any] = Counter()
    reasons: Counter[Any] = Counter()
    for event in payments:
        data, kind = event["data"], event["type"]
        if kind != REFUNDED:
            methods[data["method"]["type"], data["method"].get("card", {}).get("brand")] += 1
        if kind != SUCCEEDED:
            reason = data["failure"]["code"] if kind == FAILED else data["reason"]
            reasons[kind, reason, event.get("metadata", {}).get("channel")] += 1
    rows = rows_of(parts, "methods", "method", "brand")
    assert {key: row["charges"] for key, row in rows.items()} == methods
    rows = rows_of(parts, "reasons", "type", "reason", "channel")
    assert {key: row["events"] for key, row in rows.items()} == reasons


def test_commits_labels_and_merges_are_those_of_the_forge(parts: Parts, forge: Events) -> None:
    commits: Counter[Any] = Counter()
    labels: Counter[Any] = Counter()
    times: dict[Any, dict[str, int]] = defaultdict(dict)
    for event in forge:
        for commit in event.get("commits", ()):
            commits[commit["author"]["login"], week_of(event["timestamp"] / 1000)] += 1
        subject = event.get("pull_request") or event.get("issue") or {}
        if event.get("action") == "opened":
            labels.update((label["name"], event["event"]) for label in subject["labels"])
        if event["event"] == "pull_request":
            key = event["repository"]["name"], subject["number"]
            times[key][event["action"]] = event["timestamp"]
    rows = rows_of(parts, "commits_by_author", "author", "week")
    assert {key: row["commits"] for key, row in rows.items()} == commits
    rows = rows_of(parts, "labels", "label", "event")
    assert {key: row["opened"] for key, row in rows.items()} == labels
    for (repository,), row in rows_of(parts, "merge_times", "repo").items():
        hours = [
            (ends["merged"] - ends["opened"]) / 3_600_000
            for (name, _), ends in times.items()
            if name == repository and "merged" in ends
        ]
        assert row["merged"] == len(hours)
        assert row["hours_mean"] == pytest.approx(sum(hours) / len(hours), abs=0.051)
        assert row["hours_max"] == pytest.approx(max(hours), abs=0.051)


def test_duckdb_finds_the_same_answers(parts: Parts) -> None:
    project = parts.compiled.project
    stored = [view.name for view in parts.plan.shown_views if view.kept]
    assert len(stored) > 8
    for name in stored:
        found = audit_view(parts.store, parts.layout, parts.plan, name, project)
        assert (name, found.examples, found.differences) == (name, (), 0)


def test_three_failures_of_a_customer_in_half_an_hour_are_found(
    parts: Parts, payments: Events
) -> None:
    """After a build, which puts late events at their place."""
    parts.catch_up()
    failures: dict[str, list[int]] = defaultdict(list)
    for event in payments:
        if event["type"] == FAILED:
            failures[event["customer"]["id"]].append(event["created"])
    watermark = max(event["created"] for event in payments) - DELAY_S
    times = {
        customer: sum(t <= watermark for t in thirds(sorted(found)))
        for customer, found in failures.items()
    }
    rows = rows_of(parts, "tried_customers", "customer_id")
    assert {key: row["times"] for (key,), row in rows.items()} == {
        k: n for k, n in times.items() if n
    }
    assert rows


def thirds(times: list[int]) -> Iterator[int]:
    """Times of failures that are the third within half an hour, and not the fourth."""
    for n, at in enumerate(times):
        if sum(at - before < HALF_HOUR_S for before in times[: n + 1]) == 3:
            yield at
