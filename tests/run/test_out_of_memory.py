"""Spark runs out of memory while a rule is added: the request is answered, the run ends and says
why, and the next start is without that rule and goes on.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from chance import PROVE

from headrace.define.project import load_project
from headrace.run.offline import Offline
from tests.run.asking import get, post
from tests.run.process import SETTINGS, Producer, Running, make_project, wait_fresh

# Each row needs more than the whole heap, by steps of which the fence refuses none.
HUGE = (
    "CREATE RULE huge AS SELECT page, repeat(repeat(repeat(page, 10000), 10000), 4) AS long "
    "FROM clicks"
)
MEMORY = '[spark]\nmemory = "512m"\n'


@pytest.mark.process
def test_a_rule_that_needs_too_much_memory_ends_the_run_and_is_not_kept(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project", SETTINGS + MEMORY)
    running, producer = Running(folder), Producer()
    try:
        url = str(running.wait_for("ready")["url"])
        producer.send_until(url, 100)
        wait_fresh(url, len(producer.acknowledged))
        answer = post(f"{url}/v1/rules", json={"sql": HUGE}, timeout=120)
        assert (answer.status_code, answer.json()["condition"]) == (500, "EngineFailed")
        assert answer.json()["message"] == "Spark ran out of memory, and its process exited"
        assert "in progress: a build of stream 'clicks'" in answer.json()["detail"]
        assert running.process.wait(60) == 1
    finally:
        running.kill()
    service = Offline(load_project(folder))
    assert service.rule_service.rules() == []
    service.close()
    if PROVE:
        the_next_run_goes_on(folder, producer)


def the_next_run_goes_on(folder: Path, producer: Producer) -> None:
    again = Running(folder)
    try:
        url = str(again.wait_for("ready")["url"])
        assert get(f"{url}/v1/rules").json() == {"rules": []}
        producer.send_until(url, len(producer.acknowledged) + 100)
        wait_fresh(url, len(producer.acknowledged))
        again.stop()
    finally:
        again.kill()
