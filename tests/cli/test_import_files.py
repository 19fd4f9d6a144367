"""`headrace import` into a project that does not run: what it takes, skips and says."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from headrace.core.errors import Unavailable
from headrace.core.problems import Problems
from headrace.define.project import load_project
from headrace.ingest.files import FileConnector
from headrace.run.offline import Offline
from headrace.run.stream_intakes import StreamIntakes

from .conftest import document
from .test_send import events, logged


@pytest.fixture
def history(shop: Path) -> list[str]:
    """Three files, one of which has a duplicate and a line that is too long."""
    (shop / "a.ndjson").write_text(events(range(50)))
    (shop / "b.ndjson.gz").write_bytes(gzip.compress(events(range(50, 90)).encode()))
    (shop / "c.ndjson").write_text(events([7, 90]) + "x" * 1_100_000)
    return ["a.ndjson", "b.ndjson.gz", "c.ndjson"]


def test_files_are_imported_once_and_the_summary_says_what_was_taken(
    shop: Path, history: list[str], call: Callable[..., Result]
) -> None:
    result = call("import", "CLICKS", *history)
    assert result.exit_code == 0, result.stdout
    first, problem = result.stdout.splitlines()
    assert first.startswith("93 events of 3 files imported into clicks (")
    assert first.endswith("), 1 duplicate and 1 unreadable record among them")
    assert problem.startswith("  c.ndjson: the line at byte ")
    said = document(call("import", "clicks", *history, "--json"))
    assert said.pop("seconds") >= 0
    assert said == {
        "stream": "clicks", "files": 0, "skipped": history, "accepted": 0, "duplicates": 0,
        "conflicts": 0, "unread": 0,
    }  # fmt: skip
    assert logged(shop) == 93
    again = call("import", "clicks", "a.ndjson", "b.ndjson.gz", "--again")
    assert "90 duplicates among them" in again.stdout
    result = call("import", "clicks", *history)
    assert result.stdout.splitlines()[0] == "skipped: a.ndjson was imported or sent before"


def test_an_import_that_fails_midway_says_what_was_taken_and_is_resumed(
    shop: Path, history: list[str], call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, take = list[str](), Offline.import_part

    def fail(self: Offline, stream: str, part: str) -> object:
        if taken:
            raise Unavailable("the log is gone")
        taken.append(part)
        return take(self, stream, part)

    monkeypatch.setattr(Offline, "import_part", fail)
    result = call("import", "clicks", *history, "--json")
    said = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (said["message"], said["acknowledged"]["accepted"]) == ("the log is gone", 50)
    monkeypatch.setattr(Offline, "import_part", take)
    assert document(call("import", "clicks", *history, "--json"))["accepted"] == 43
    assert logged(shop) == 93


def test_what_cannot_be_imported_is_refused(shop: Path, call: Callable[..., Result]) -> None:
    def refused(*said: str) -> str:
        result = call("import", *said, "--json")
        assert result.exit_code != 0
        return str(json.loads(result.stdout)["message"])

    assert refused("click", "events.ndjson") == "there is no stream 'click'"
    assert refused("clicks", "gone.ndjson") == "there is no file gone.ndjson"
    assert refused("clicks", ".").startswith(". cannot be read: ")


def test_a_stream_that_takes_files_itself_recognizes_those_that_were_imported(
    shop: Path, call: Callable[..., Result]
) -> None:
    (shop / "more.sql").write_text(
        "CREATE STREAM beats (host STRING) WITH (source = 'files', path = 'inbox/*');"
    )
    (shop / "inbox").mkdir()
    (shop / "inbox" / "a.ndjson").write_text('{"host": "a"}\n{"host": "b"}\n')
    assert document(call("import", "beats", "inbox/a.ndjson", "--json"))["accepted"] == 2
    (shop / "inbox" / "b.ndjson").write_text('{"host": "c"}\n')
    intakes = StreamIntakes(load_project(shop))
    intake = intakes.intake("beats")
    connector = FileConnector(intake.definition, intake, shop, Problems("source"))
    for _ in range(2):  # a file is taken when it was still between two scans
        connector.scan(threading.Event())
    assert sum(intake.end().offsets) == 3
    intakes.close()
