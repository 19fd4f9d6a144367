"""The same project on a standalone Spark cluster gives the same answers as on one machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from headrace.api.resources.rows import ViewRequest
from headrace.define.project import load_project
from headrace.ingest.generator import Generator
from headrace.run.offline import Offline
from headrace.spark.java import find_java
from tests.run.process import Running, make_project
from tests.run.test_runs import GENERATED

pytestmark = [pytest.mark.process, pytest.mark.prove]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A master and two workers, from the installed PySpark, on loopback."""
    port = _free_port()
    address = f"spark://127.0.0.1:{port}"
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "workers"),
        "PYSPARK_PYTHON": sys.executable,
    }
    run = [str(home / "bin" / "spark-class")]
    master = "org.apache.spark.deploy.master.Master"
    worker = "org.apache.spark.deploy.worker.Worker"
    commands = [[*run, master, "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    commands += [[*run, worker, "--cores", "1", "--memory", "1g", "--webui-port", "0", address]] * 2
    log = (tmp_path / "cluster.log").open("wb")
    processes = []
    for command in commands:
        processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        _wait_listening(port)
    try:
        _wait_text(tmp_path / "cluster.log", "Registering worker", 2)
        yield address
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
        log.close()


@pytest.mark.timeout(300)
def test_a_cluster_gives_the_same_answers_as_one_machine(cluster: str, tmp_path: Path) -> None:
    answers = {}
    for master in ("local[*]", cluster):
        conf = '{ "spark.executor.memory" = "512m" }'
        settings = f'name = "same"\n[spark]\nmaster = "{master}"\nconf = {conf}\n'
        folder = make_project(tmp_path / master.partition(":")[0].strip("[*]"), settings, GENERATED)
        rows = "\n".join(f'{{"url": "url-{n}", "section": "s{n % 3}"}}' for n in range(40))
        (folder / "sections.json").write_text(rows)
        _send(folder)
        summary = Running(folder, "--until-idle").finish()
        assert summary["differences"] == 0
        service = Offline(load_project(folder))
        answers[master] = [service.ask(ViewRequest(name)).rows for name in ("pages", "busiest")]
        service.close()
    assert answers[cluster] == answers["local[*]"]
    assert answers[cluster][0]


def _send(folder: Path) -> None:
    import random

    project = load_project(folder)
    service = Offline(project)
    records = Generator(project.streams["clicks"], random.Random(7), run="0").take(
        3_000, 1_767_225_600_000_000
    )
    service.submit("clicks", records).result()
    service.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_listening(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the master does not listen")


def _wait_text(path: Path, text: str, times: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.read_text(errors="replace").count(text) >= times:
            return
        time.sleep(0.1)
    raise AssertionError(f"'{text}' not seen {times} times: {path.read_text()[-2000:]}")
