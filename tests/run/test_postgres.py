"""A project whose store is in PostgreSQL: it runs, loses its database and finds it again, is
killed, and answers when it is stopped.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from typer.testing import CliRunner

from headrace.api.resources.rows import ViewRequest
from headrace.cli.main import app
from headrace.define.project import load_project
from headrace.run.offline import Offline
from tests.run import asking
from tests.run.process import ALL_KINDS, SETTINGS, Producer, Running, make_project, wait_fresh
from tests.run.waiting import wait

pytestmark = pytest.mark.process


def rows_of(project: Path, view: str) -> list[dict[str, object]]:
    service = Offline(load_project(project))
    try:
        return service.ask(ViewRequest(view)).rows
    finally:
        service.close()


@pytest.mark.timeout(600)
def test_a_project_waits_for_its_database_and_loses_nothing(tmp_path: Path) -> None:
    with closing(PostgresServer()) as server:
        _outlives(server, tmp_path)


def _outlives(server: PostgresServer, tmp_path: Path) -> None:
    settings = f'{SETTINGS}[store]\nurl = "{server.url}"\n'
    project = make_project(tmp_path / "shop", settings, ALL_KINDS)
    subprocess.run([sys.executable, "-m", "headrace", "plan", str(project)], check=True)
    producer, running = Producer(), Running(project)
    try:
        url = running.wait_for("ready")["url"]
        producer.send_until(url, 500)
        wait_fresh(url, 500)

        server.kill()
        sent = len(producer.acknowledged) + 200
        producer.send_until(url, sent)
        wait(lambda: "PostgreSQL cannot be used now" in asking.get(f"{url}/v1/status").text)
        assert asking.get(f"{url}/v1/status").json()["state"] == "degraded"
        server.start()
        wait_fresh(url, sent)

        producer.send_until(url, sent + 100)
        running.kill()
        running = Running(project)
        url = running.wait_for("ready")["url"]
        status = wait_fresh(url, len(producer.acknowledged))
        assert status["streams"][0]["balance"]["off"] == 0
        audits = asking.post(f"{url}/v1/audit", json={}, timeout=300).json()["audits"]
        assert {audit["differences"] for audit in audits} == {0}
        running.stop()

        assert not (project / ".headrace" / "serving.db").exists()
        pages = {row["page"]: row["hits"] for row in rows_of(project, "pages")}
        assert pages == {page: row["hits"] for page, row in producer.expected().items()}
        for command in ("backup", "restore"):
            words = [command, str(tmp_path / "copy"), "--project", str(project)]
            done = CliRunner().invoke(app, words)
            assert done.exit_code != 0
            assert "project's store is in schema kills of" in done.output
        assert CliRunner().invoke(app, ["verify", "--project", str(project)]).exit_code == 0
    finally:
        running.kill()
