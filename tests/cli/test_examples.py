"""The examples can be read, without Spark; tests/cli/test_spark.py compiles them."""

from __future__ import annotations

import runpy
from pathlib import Path
from random import Random

import pyarrow as pa

from headrace.compile.resolve import resolve
from headrace.core.time import SECOND, now_us
from headrace.define.functions import load_functions
from headrace.define.project import load_project
from headrace.define.sigma.script import SigmaScript, translate
from headrace.define.statements import read_statements
from headrace.ingest.connector import check_options
from headrace.ingest.generator import Generator

SHOP = Path(__file__).parents[2] / "examples" / "shop"
CALLS = SHOP.parent / "calls"
INTRUSION = SHOP.parent / "intrusion"
WEBHOOKS = SHOP.parent / "webhooks"


def test_the_shop_can_be_read_and_its_names_are_known() -> None:
    project = load_project(SHOP)
    assert project.settings.name == "shop"
    assert project.settings.batch.interval_us == 15 * SECOND
    assert list(resolve(project)) == ["visits", "visitors", "sales", "totals", "busiest"]
    assert (SHOP / project.tables["sections"].location).is_file()
    for stream in project.streams.values():
        check_options(stream)


def test_the_calls_can_be_read_and_their_names_are_known() -> None:
    project = load_project(CALLS)
    assert list(resolve(project)) == [
        "directions", "charges", "by_direction", "by_route", "by_rule",
    ]  # fmt: skip
    charges = project.queries["charges"].rules
    assert charges is not None
    assert charges.names[0] == "not billable"
    assert charges.names[-1] == "else"
    assert (CALLS / project.tables["routes"].location).is_file()
    for stream in project.streams.values():
        check_options(stream)
    events = Generator(project.streams["calls"], Random(1), run="0").take(200, now_us())
    assert any(b'"0800111222"' in event for event in events)


def test_the_intrusions_can_be_read_and_their_names_are_known() -> None:
    project = load_project(INTRUSION)
    assert [*resolve(project)][:3] == ["brute_forces", "port_scans", "break_ins"]
    assert list(project.rules) == ["brute_force", "port_scan", "peer_to_peer", "break_in"]
    for stream in project.streams.values():
        check_options(stream)
    events = Generator(project.streams["traffic"], Random(1), run="0").take(500, now_us())
    assert all(any(kind in event for event in events) for kind in (b"brute", b"scan", b"peer"))


def test_the_webhooks_can_be_read_and_their_month_is_made_of_a_seed() -> None:
    project = load_project(WEBHOOKS)
    assert [*resolve(project)][:4] == ["commits", "labelled", "sold", "takings"]
    assert list(project.rules) == ["card_tried"]
    for stream in project.streams.values():
        check_options(stream)
    make_month = runpy.run_path(str(WEBHOOKS / "make_month.py"))["make_month"]
    made = make_month(seed=1, events=200)
    assert list(made) == list(project.streams)
    texts = [[line.text for line in lines] for lines in made.values()]
    again = make_month(seed=1, events=200)
    assert texts == [[line.text for line in lines] for lines in again.values()]
    other = make_month(seed=2, events=200)
    assert texts != [[line.text for line in lines] for lines in other.values()]


def sigma_of_intrusion() -> SigmaScript:
    files = sorted((INTRUSION / "sigma").glob("*.yml"))
    return translate([(str(p), p.read_text("utf-8")) for p in files], stream="traffic")


def test_the_sigma_rules_say_what_the_rules_of_the_project_say() -> None:
    made, project = sigma_of_intrusion(), load_project(INTRUSION)
    assert made.errors == ()
    assert made.rules == ("sigma_brute_force", "sigma_peer_to_peer", "sigma_port_scan")
    columns = {name.lower() for name in project.streams["traffic"].schema.names}
    assert set(made.columns) <= columns
    read = {each.name: each for each in read_statements(made.sql, "sigma.sql")}
    for ours, theirs in (("brute_forces", "brute_force"), ("port_scans", "port_scan")):
        threshold = getattr(read[f"sigma_{theirs}_reached"], "threshold")  # noqa: B009
        mine = project.queries[ours].threshold
        assert (threshold.keys, threshold.least, threshold.within_us) == (
            mine and (mine.keys, mine.least, mine.within_us)
        )
    for name in made.rules:
        severity = getattr(read[name], "severity")  # noqa: B009
        assert severity == project.rules[name.removeprefix("sigma_")].severity


def test_its_events_are_generated() -> None:
    clicks = load_project(SHOP).streams["clicks"]
    events = Generator(clicks, Random(1), run="0").take(200, now_us())
    assert len(events) == 200
    assert any(b'"/pay"' in event for event in events)


def test_its_function_tells_how_a_visitor_came() -> None:
    (channel,) = load_functions(SHOP / "functions.py")
    came = ["https://www.google.com/", "https://mastodon.social/", "https://shop.example/", None]
    assert channel.name == "channel"
    assert channel.body(pa.array(came)).to_pylist() == ["search", "social", "direct", "direct"]
