"""The lines of headrace.log."""

from __future__ import annotations

import contextlib
import json
import logging
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog

from headrace.api.get_request import GetRequest
from headrace.api.server import HttpServer
from headrace.define.layout import Layout
from headrace.define.settings import HttpSettings, LogSettings
from headrace.run.log_file import BYTES_MAX, log_to_file, log_to_stderr
from headrace.serving.sqlite import SqliteDatabase
from headrace.serving.sqlite_files import edit_file
from tests.access.users import bearer, open_access
from tests.api.conftest import Shop
from tests.serving.databases import as_version_1


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    if file := getattr(structlog.get_config()["logger_factory"], "_file", None):
        file.close()


def journal(folder: Path, **log: Any) -> Path:
    log_to_file(Layout(folder), "shop", LogSettings(**log))
    return folder / "headrace.log"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_what_libraries_log_is_not_printed_but_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = journal(tmp_path)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        logging.getLogger().exception("%s while sending command.", "KeyboardInterrupt")
    logging.getLogger("py4j").info("not said")
    (line,) = lines(path)
    assert (line["event"], line["level"], line["library"]) == (
        "KeyboardInterrupt while sending command.", "error", "root",
    )  # fmt: skip
    assert "KeyboardInterrupt" in line["exception"]
    assert capfd.readouterr() == ("", "")


def test_a_migration_is_logged(tmp_path: Path) -> None:
    path, store = journal(tmp_path), tmp_path / "serving.db"
    SqliteDatabase(store).close()
    with edit_file(store) as db:
        as_version_1(db)
    SqliteDatabase(store).close()
    (line,) = lines(path)
    assert (line["level"], line["project"]) == ("warning", "shop")
    assert line["event"] == (
        f"migrated the store at {store} from version 1 of its format to version 2"
    )


def test_a_line_has_its_project_level_time_and_the_reason(tmp_path: Path) -> None:
    path = journal(tmp_path)
    try:
        raise ValueError("why")
    except ValueError:
        structlog.get_logger().exception("it failed", stream="clicks")
    (line,) = lines(path)
    assert line["timestamp"].endswith("Z")
    assert "ValueError: why" in line["exception"]
    known = {name: line[name] for name in ("project", "level", "event", "stream")}
    assert known == {
        "project": "shop", "level": "error", "event": "it failed", "stream": "clicks",
    }  # fmt: skip


@pytest.mark.parametrize(("level", "told"), [("debug", 3), ("info", 2), ("error", 1)])
def test_what_is_below_the_level_is_left_out(tmp_path: Path, level: str, told: int) -> None:
    path = journal(tmp_path, level=level)
    log = structlog.get_logger()
    log.debug("a")
    log.info("b")
    log.error("c")
    assert len(lines(path)) == told


def test_console_is_for_a_person(tmp_path: Path) -> None:
    path = journal(tmp_path, format="console")
    structlog.get_logger().info("it runs", stream="clicks")
    text = path.read_text("utf-8")
    assert "it runs" in text
    assert "stream=clicks" in text
    assert "\x1b" not in text


def test_a_long_file_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "headrace.log").write_bytes(b"x" * (BYTES_MAX + 1))
    assert journal(tmp_path).stat().st_size == 0
    assert (tmp_path / "headrace.log.1").stat().st_size > BYTES_MAX


class Speaking(Shop):
    """Says something in the thread that answers."""

    def ask(self, question: GetRequest[Any]) -> Any:
        structlog.get_logger().info("asked")
        return super().ask(question)


def test_what_is_said_for_a_request_has_the_id_that_the_client_got_and_the_user(
    tmp_path: Path,
) -> None:
    path = journal(tmp_path, level="debug")
    access, token = open_access(tmp_path)
    server = HttpServer(Speaking(), HttpSettings(port=0), access)
    server.start()
    try:
        url, who = f"{server.url}/v1/status", bearer(token)
        answers = [httpx.get(url, headers=who) for _ in range(2)]
    finally:
        server.stop()
        access.close()
    said = [(line["event"], line["request_id"], line["user"]) for line in lines(path)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert said == [(event, id, "ann") for id in ids for event in ("asked", "request answered")]
    assert lines(path)[1]["status"] == 200


def test_without_a_journal_only_what_is_wrong_is_said_beside_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_to_stderr()
    structlog.get_logger().info("asked")
    structlog.get_logger().warning("refused")
    said = capsys.readouterr()
    assert (said.out, "refused" in said.err, "asked" in said.err) == ("", True, False)


def test_a_line_that_finds_no_room_is_lost_and_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "headrace.log").symlink_to("/dev/full")
    journal(tmp_path)
    structlog.get_logger().error("the archive failed", stream="clicks")


def test_the_line_after_one_that_was_cut_is_whole(tmp_path: Path) -> None:
    path = journal(tmp_path)
    log, room = structlog.get_logger(), resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        # A file that may not grow takes a part of a line, and then nothing, as a full disk does.
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, room[1]))
        log.error("cut")
        log.error("lost")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, room)
        signal.signal(signal.SIGXFSZ, before)
    log.error("whole")
    cut, whole = path.read_text("utf-8").splitlines()
    assert (len(cut), json.loads(whole)["event"]) == (20, "whole")


def test_standard_error_that_finds_no_room_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    log_to_stderr()
    with open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr("sys.stderr", full)
        structlog.get_logger().warning("refused")
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()
