"""Events of lineage have what OpenLineage requires, and say what is made of what."""

from __future__ import annotations

import re
import uuid
from itertools import repeat
from typing import Any

import msgspec
import pytest

from headrace.core.time import SECOND, from_iso
from headrace.run.openlineage import generation_event, plan_events
from tests.serving.bench import plan_of

PLAN = plan_of()
RUN = str(uuid.UUID(int=7))
KINDS = {"START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"}
URI = re.compile(r"[a-z]+:\S+")


def check(event: dict[str, Any]) -> None:
    """What the JSON schema of a run event requires, by hand."""
    assert {"eventTime", "producer", "schemaURL", "run", "job"} <= set(event)
    assert from_iso(event["eventTime"]) > 0
    assert event["eventType"] in KINDS
    assert URI.fullmatch(event["producer"])
    assert event["schemaURL"].endswith("OpenLineage.json#/$defs/RunEvent")
    assert str(uuid.UUID(event["run"]["runId"])) == event["run"]["runId"]
    things = [event["job"], *event["inputs"], *event["outputs"]]
    for thing in things:
        assert thing["namespace"]
        assert thing["name"]
    for facets in (thing["facets"] for thing in [event["run"], *things]):
        for name, facet in facets.items():
            assert URI.fullmatch(facet["_producer"]), name
            assert re.fullmatch(
                r"https://openlineage\.io/spec/facets/\d+-\d+-\d+/(\w+)\.json#/\$defs/\1",
                facet["_schemaURL"],
            ), name
    for dataset in [*event["inputs"], *event["outputs"]]:
        for field in dataset["facets"].get("schema", {}).get("fields", []):
            assert set(field) == {"name", "type"}
    assert msgspec.json.encode(event)


def test_a_deployment_says_what_each_view_is_made_of() -> None:
    events = list(plan_events(PLAN, SECOND, repeat(RUN)))
    for event in events:
        check(event)
        assert event["eventType"] == "OTHER"
    made = {event["job"]["name"]: [each["name"] for each in event["inputs"]] for event in events}
    assert made["hits"] == ["clicks"]
    assert made["pages"] == ["hits"]  # a view that is read from another
    hits = next(event for event in events if event["job"]["name"] == "hits")
    assert "count(" in hits["job"]["facets"]["sql"]["query"].lower()
    (output,) = hits["outputs"]
    fields = {each["name"]: each["type"] for each in output["facets"]["schema"]["fields"]}
    assert fields["page"] == "STRING"
    assert fields["minute"] == "STRUCT<start: TIMESTAMP, end: TIMESTAMP>"
    assert {"name": "user", "type": "STRING"} in hits["inputs"][0]["facets"]["schema"]["fields"]


@pytest.mark.parametrize("kind", ["START", "COMPLETE", "FAIL"])
def test_a_generation_is_a_run_of_all_views_of_its_stream(kind: str) -> None:
    event = generation_event(
        PLAN, "clicks", kind, SECOND, RUN, "it broke" if kind == "FAIL" else ""
    )
    check(event)
    assert (event["eventType"], event["job"]["name"]) == (kind, "clicks.generation")
    assert [each["name"] for each in event["inputs"]] == ["clicks"]
    assert {each["name"] for each in event["outputs"]} == {"hits", "users", "total", "top"}
    error = event["run"]["facets"].get("errorMessage")
    assert (error["message"] if error else "") == ("it broke" if kind == "FAIL" else "")
