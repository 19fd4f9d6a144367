"""The lines of headrace.log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog

from headrace.api.server import HttpServer
from headrace.define.settings import HttpSettings, LogSettings
from headrace.run.journal import BYTES_MAX, keep_journal, keep_no_journal
from headrace.run.layout import Layout
from tests.access.people import bearer, open_access
from tests.api.conftest import Shop


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    if file := getattr(structlog.get_config()["logger_factory"], "_file", None):
        file.close()


def journal(folder: Path, **log: Any) -> Path:
    keep_journal(Layout(folder), "shop", LogSettings(**log))
    return folder / "headrace.log"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


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

    def status(self) -> Any:
        structlog.get_logger().info("asked")
        return super().status()


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
    keep_no_journal()
    structlog.get_logger().info("asked")
    structlog.get_logger().warning("refused")
    said = capsys.readouterr()
    assert (said.out, "refused" in said.err, "asked" in said.err) == ("", True, False)
