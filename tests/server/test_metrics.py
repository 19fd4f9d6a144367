"""The numbers of a server: how its jobs are, and what it has counted."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from run.waiting import wait

from headrace.access.access import Access
from headrace.define.settings import HttpSettings
from headrace.server.metrics import JobMetrics, exposition
from headrace.server.settings import ServerSettings
from tests.access.users import bearer, token_of

from .conftest import Site, serving

SETTINGS = ServerSettings(http=HttpSettings(port=0))


@pytest.fixture
def client(site: Site, access: Access, token: str) -> Iterator[httpx.Client]:
    with serving(site, access, token, SETTINGS) as client:
        yield client


def numbers(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_name_keeps_the_conventions_and_none_is_prometheus_own() -> None:
    text = exposition([JobMetrics("shop", "running", 0.5)]).decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (.*)$", text, re.MULTILINE))
    for name, kind in kinds.items():
        assert re.fullmatch(r"(headrace|process)_[a-z][a-z0-9_]*", name), name
        assert name.endswith("_total") == (kind == "counter"), name
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert not {"job", "instance"} & set(sample.labels), "Prometheus says these itself"


def test_jobs_are_counted_by_state_and_each_is_told() -> None:
    jobs = [
        JobMetrics("shop", "running", 0.5),
        JobMetrics("bank", "paused"),
        JobMetrics("web", "cancelled"),
        JobMetrics("mill", "degraded", 0.5, problems=2),
    ]
    found = numbers(exposition(jobs).decode())
    states = {key[1]: many for key, many in found.items() if key[0] == "headrace_jobs"}
    assert (states["running"], states["paused"], states["failed"]) == (1, 1, 0)
    assert states["degraded"] == 1
    assert len(states) == 9
    assert found["headrace_job_running", "shop"] == 1
    assert found["headrace_job_running", "bank"] == 0
    assert found["headrace_job_running", "mill"] == 1, "it answers and takes events"
    assert found["headrace_job_problems", "mill"] == 2
    assert ("headrace_job_problems", "bank") not in found, "it has no process"
    assert ("headrace_job_running", "web") not in found, "nobody waits for it"
    assert found["headrace_job_heartbeat_age_seconds", "shop"] == 0.5
    assert ("headrace_job_heartbeat_age_seconds", "bank") not in found, "it has no process"


@pytest.mark.process
def test_starts_deaths_and_commands_are_counted_where_they_happen(
    client: httpx.Client, site: Site
) -> None:
    def asked() -> dict[tuple[str, ...], float]:
        return numbers(client.get("/metrics").text)

    # Counters are of the process, which has run other tests; the name is of this one alone.
    before = asked()
    client.post("/v1/jobs?name=counted", content=site.body())
    wait(lambda: site.snapshot("counted").state == "running")
    first = site.snapshot("counted").pid
    assert first is not None
    assert asked()["headrace_job_heartbeat_age_seconds", "counted"] < 60
    assert asked()["headrace_job_deaths_total", "counted"] == 0
    os.kill(first, signal.SIGKILL)
    wait(lambda: site.snapshot("counted").pid not in (None, first))
    assert client.post("/v1/jobs/counted/resume").status_code == 409
    after = asked()
    assert after["headrace_job_starts_total", "counted"] == 2
    assert after["headrace_job_deaths_total", "counted"] == 1
    for verb, result in (("submit", "done"), ("resume", "refused")):
        key = ("headrace_commands_total", result, verb)
        assert after[key] - before.get(key, 0) == 1


def test_the_numbers_name_all_jobs_so_they_need_the_right_to_read_everything(
    client: httpx.Client, access: Access
) -> None:
    eve = bearer(token_of(access, "eve", "read", on="job:shop"))
    assert client.get("/metrics", headers=eve).status_code == 403
