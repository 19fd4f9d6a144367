"""Sending a file to a project that does not run, and what is told when it fails midway."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from typer.testing import Result

from headrace.cli.send import SendTarget, _kind
from headrace.core.errors import BadRequest, Unavailable
from headrace.core.schema import Schema
from headrace.log.embedded.reader import EmbeddedReader

from .conftest import Told, document


def logged(shop: Path) -> int:
    return sum(EmbeddedReader(shop / ".headrace" / "log" / "clicks").end().offsets)


def events(numbers: Iterable[int]) -> str:
    made = (
        {"event_id": f"n{n}", "user": f"u{n % 7}", "url": "/home", "ts": "2026-11-15T19:00:00Z"}
        for n in numbers
    )
    return "".join(json.dumps(event) + "\n" for event in made)


def test_the_sample_events_go_into_the_log_of_a_stopped_project(
    shop: Path, call: Callable[..., Result]
) -> None:
    result = call("send", "clicks", "events.ndjson")
    assert result.exit_code == 0
    assert result.stdout == "21 events accepted by clicks, 1 duplicate among them\n"
    assert logged(shop) == 21


def test_json_tells_what_was_accepted_and_a_second_send_is_all_duplicates(
    shop: Path, call: Callable[..., Result]
) -> None:
    first = document(call("send", "clicks", "events.ndjson", "--json"))
    assert first == {"stream": "clicks", "accepted": 21, "duplicates": 1, "conflicts": 0}
    again = document(call("send", "CLICKS", "events.ndjson", "--json"))
    assert (again["accepted"], again["duplicates"]) == (21, 21)


@pytest.fixture
def beats(shop: Path) -> Path:
    """A file for a stream without an id."""
    (shop / "more.sql").write_text("CREATE STREAM beats (host STRING);")
    (shop / "beats.ndjson").write_text('{"host": "a"}\n{"host": "b"}\n')
    return shop / "beats.ndjson"


def beats_logged(beats: Path) -> int:
    return sum(EmbeddedReader(beats.parent / ".headrace" / "log" / "beats").end().offsets)


def test_a_file_is_sent_once_to_a_stream_without_an_id(
    beats: Path, call: Callable[..., Result]
) -> None:
    assert document(call("send", "beats", "beats.ndjson", "--json"))["accepted"] == 2
    beats.rename(beats.with_name("renamed.ndjson"))
    result = call("send", "BEATS", "renamed.ndjson")
    assert result.exit_code == 0
    assert result.stdout.startswith("skipped: renamed.ndjson was sent to beats at 20")
    assert "--again" in result.stdout
    said = document(call("send", "beats", "renamed.ndjson", "--json"))
    assert (said["accepted"], said["sent_at"][:2], beats_logged(beats)) == (0, "20", 2)
    assert document(call("send", "beats", "renamed.ndjson", "--again", "--json"))["accepted"] == 2
    with beats.open("w") as file:
        file.write('{"host": "c"}\n')
    assert document(call("send", "beats", "beats.ndjson", "--json"))["accepted"] == 1
    assert beats_logged(beats) == 5


def test_stdin_and_a_file_without_events_are_sent_whenever_one_says(
    beats: Path, call: Callable[..., Result]
) -> None:
    for _ in range(2):
        assert document(call("send", "beats", "-", "--json", input=beats.read_text()))["accepted"]
    beats.write_text("\n")
    for _ in range(2):
        assert "sent_at" not in document(call("send", "beats", "beats.ndjson", "--json"))


def test_a_file_that_was_sent_in_part_is_not_skipped(
    told: Told, beats: Path, call: Callable[..., Result]
) -> None:
    beats.write_text('{"host": "a"}\n' * 6_000)
    told.fails_at = 2
    assert call("send", "beats", "beats.ndjson").exit_code == 1
    assert "sent_at" not in document(call("send", "beats", "beats.ndjson", "--json"))
    assert "sent_at" in document(call("send", "beats", "beats.ndjson", "--json"))


def test_a_csv_whose_columns_are_not_shown_is_refused() -> None:
    hidden = SendTarget("clicks", "json", Schema(()))
    assert _kind(hidden, "events.ndjson", None) == "ndjson"
    with pytest.raises(BadRequest, match="CSV cannot be sent to stream 'clicks'"):
        _kind(hidden, "events.csv", None)


def test_stdin_is_sent_with_a_dash(shop: Path, call: Callable[..., Result]) -> None:
    result = call("send", "clicks", "-", "--json", input=events(range(3)))
    assert document(result)["accepted"] == 3
    assert logged(shop) == 3


def test_csv_becomes_json_by_its_header(shop: Path, call: Callable[..., Result]) -> None:
    (shop / "more.csv").write_text("event_id,user,url,ts\na1,ann,/home,2026-11-15T19:00:00Z\n")
    assert document(call("send", "clicks", "more.csv", "--json"))["accepted"] == 1
    (shop / "more.txt").write_text("event_id,user,url,ts\na1,ann,/home,2026-11-15T19:00:00Z\n")
    said = document(call("send", "clicks", "more.txt", "--format", "csv", "--json"))
    assert (said["accepted"], said["duplicates"]) == (1, 1)


def test_json_is_not_sent_to_a_stream_that_takes_csv(
    shop: Path, call: Callable[..., Result]
) -> None:
    (shop / "more.sql").write_text("CREATE STREAM rows (a STRING) WITH (format = 'csv');")
    result = call("send", "rows", "events.ndjson")
    assert result.exit_code == 1
    assert "BadRequest: stream 'rows' requires CSV, not JSON" in result.stderr
    (shop / "rows").write_text("a\n1\n2\n")
    assert document(call("send", "rows", "rows", "--json"))["accepted"] == 2


def test_an_unknown_stream_or_file_exits_with_3(shop: Path, call: Callable[..., Result]) -> None:
    result = call("send", "click", "events.ndjson")
    assert result.exit_code == 3
    assert "NotFound: there is no stream 'click'" in result.stderr
    assert "hint: did you mean 'clicks'?" in result.stderr
    result = call("send", "clicks", "nothing.ndjson")
    assert result.exit_code == 3
    assert "there is no file nothing.ndjson" in result.stderr
    assert not (shop / ".headrace").exists()


def test_a_folder_cannot_be_sent(shop: Path, call: Callable[..., Result]) -> None:
    result = call("send", "clicks", "lookups")
    assert result.exit_code == 1
    assert "BadRequest: lookups cannot be read" in result.stderr


def test_a_send_that_fails_midway_tells_what_was_acknowledged(
    told: Told, shop: Path, call: Callable[..., Result]
) -> None:
    (shop / "many.ndjson").write_text(events(range(12_000)))
    told.fails_at = 3
    result = call("send", "clicks", "many.ndjson")
    assert result.exit_code == 1
    assert "HeadraceError: the log is gone" in result.stdout
    assert "acknowledged before: 10,000 events accepted by clicks, 2 duplicates" in result.stdout
    assert [many for _, many in told.asked] == [5_000, 5_000, 2_000]
    assert told.closed


def test_in_json_the_receipt_stands_beside_the_five_fields(
    told: Told, shop: Path, call: Callable[..., Result]
) -> None:
    (shop / "many.ndjson").write_text(events(range(6_000)))
    told.fails_at = 2
    result = call("send", "clicks", "many.ndjson", "--json")
    assert result.exit_code == 1
    said = document(result)
    acknowledged = said.pop("acknowledged")
    assert list(said) == ["condition", "message", "detail", "hint", "origin"]
    assert acknowledged == {"stream": "clicks", "accepted": 5_000, "duplicates": 1, "conflicts": 0}


def test_a_send_of_which_nothing_was_taken_is_a_plain_error(
    told: Told, call: Callable[..., Result]
) -> None:
    told.fails_at, told.error = 1, Unavailable("it is stopping")
    result = call("send", "clicks", "events.ndjson")
    assert result.exit_code == 5
    assert result.stdout == ""
    assert result.stderr == "Unavailable: it is stopping\n"


def test_an_interrupted_send_tells_what_was_acknowledged(
    told: Told, shop: Path, call: Callable[..., Result]
) -> None:
    (shop / "many.ndjson").write_text(events(range(6_000)))
    told.fails_at, told.error = 2, KeyboardInterrupt()
    result = call("send", "clicks", "many.ndjson", "--json")
    assert result.exit_code == 130
    assert document(result)["acknowledged"]["accepted"] == 5_000


def test_an_event_that_is_too_long_is_told_and_those_before_it_are_taken(
    shop: Path, call: Callable[..., Result]
) -> None:
    (shop / "headrace.toml").write_text('name = "shop"\n[log]\nevent_bytes_max = 200\n')
    (shop / "long.ndjson").write_text(events([1]) + json.dumps({"user": "x" * 300}) + "\n")
    result = call("send", "clicks", "long.ndjson", "--json")
    assert result.exit_code == 1
    said = document(result)
    assert said["condition"] == "LimitReached"
    assert said["acknowledged"]["accepted"] == 1
    assert logged(shop) == 1


def test_an_empty_file_is_no_error(shop: Path, call: Callable[..., Result]) -> None:
    result = call("send", "clicks", "-", input="\n\n")
    assert result.exit_code == 0
    assert result.stdout == "0 events accepted by clicks, 0 duplicates among them\n"


@pytest.mark.parametrize("quiet", [True, False])
def test_a_bar_is_never_written_into_a_pipe(
    quiet: bool, shop: Path, call: Callable[..., Result]
) -> None:
    arguments = ["send", "clicks", "events.ndjson", *(["--json"] if quiet else [])]
    assert call(*arguments).stderr == ""
