"""A folder of real files: import, tail, restart, and what goes wrong."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import BadProject, UnsupportedFormat
from headrace.core.event import DAMAGED, OVERLONG
from headrace.core.position import Position
from headrace.core.problems import Problems
from headrace.ingest import files
from headrace.ingest.file_cursors import FileCursor, FileCursors, cursors_path
from headrace.ingest.files import FileConnector
from headrace.ingest.intake import Intake

from .conftest import Bench, running, stream, wait_for

GO = threading.Event()  # never set: a look that is not to be stopped
PROBLEMS = Problems("source")


def connect(
    bench: Bench, intake: Intake, path: str, said: dict[str, Any] | None = None, **options: str
) -> FileConnector:
    (bench.folder / "inbox").mkdir(exist_ok=True)
    options = {"path": path, "poll": "20 ms", **options}
    definition = stream(source="files", options=options, **(said or {}))
    given = definition, intake, bench.folder, PROBLEMS
    for problem in PROBLEMS:
        PROBLEMS.over(problem.key)
    # The clock is the files' own time, so that no file is old enough to be taken at first sight.
    return FileConnector(*given, clock=lambda: 0)


def told() -> list[tuple[str, str]]:
    """What is wrong with the source, worst first."""
    assert {one.about for one in PROBLEMS} <= {"source:clicks"}
    return sorted((one.level, one.message) for one in PROBLEMS)


def put(bench: Bench, name: str, body: bytes) -> Path:
    path = bench.folder / "inbox" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(body)
    return path


def add(path: Path, body: bytes) -> None:
    with path.open("ab") as file:
        file.write(body)


def look_twice(connector: FileConnector) -> None:
    """An import takes a file at the second look, when it has been still."""
    connector.scan(GO)
    connector.scan(GO)


def test_import_takes_each_file_once_and_new_ones_when_they_come(bench: Bench) -> None:
    put(bench, "b.ndjson", b"3\n")
    put(bench, "a.ndjson", b"1\n2")
    connector = connect(bench, bench.intake(partitions=1), "inbox/*.ndjson")
    with running(connector):
        wait_for(lambda: bench.records() == [b"1", b"2", b"3"])
        put(bench, "c.ndjson", b"4\n")
        wait_for(lambda: bench.records() == [b"1", b"2", b"3", b"4"])


def test_import_waits_until_a_file_is_still(bench: Bench) -> None:
    path = put(bench, "a.ndjson", b'{"n"')
    connector = connect(bench, bench.intake(partitions=1), "inbox/*")
    connector.scan(GO)
    add(path, b":1}\n")
    connector.scan(GO)
    assert bench.records() == []
    connector.scan(GO)
    assert bench.records() == [b'{"n":1}']


def test_import_takes_an_old_file_at_first_sight(bench: Bench) -> None:
    path = put(bench, "a.ndjson", b"1\n")
    os.utime(path, (1, 1))
    definition = stream(source="files", options={"path": "inbox/*"})
    FileConnector(definition, bench.intake(), bench.folder, PROBLEMS).scan(GO)
    assert bench.records() == [b"1"]


def test_a_restart_goes_on_where_the_last_ack_was(bench: Bench) -> None:
    path = put(bench, "a.ndjson", b"1\n2\n")
    look_twice(connect(bench, bench.intake(partitions=1), "inbox/*"))
    again = connect(bench, bench.intake(partitions=1), "inbox/*")
    look_twice(again)
    assert bench.records() == [b"1", b"2"]
    add(path, b"3\n")
    look_twice(again)
    assert bench.records() == [b"1", b"2", b"3"]


def test_a_stop_at_any_chunk_loses_nothing_and_repeats_are_recognised(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [b'{"event_id":%d}' % n for n in range(12_000)]
    put(bench, "a.ndjson", b"\n".join(lines))
    crash_at, saves = 0, 0
    save = FileCursors.save

    def crashing_save(progress: FileCursors, *args: Any) -> None:
        nonlocal saves
        saves += 1
        if saves == crash_at:
            raise KeyboardInterrupt
        save(progress, *args)

    monkeypatch.setattr(FileCursors, "save", crashing_save)
    for crash_at in (1, 2, 3, 4, 0):
        saves = 0
        connector = connect(bench, bench.intake(partitions=1, id="event_id"), "inbox/*")
        try:
            look_twice(connector)
        except KeyboardInterrupt:
            assert crash_at
    assert [record for _, record, status in bench.logged() if not status] == lines


def test_tail_follows_a_file_and_leaves_an_unfinished_line(bench: Bench) -> None:
    path = put(bench, "a.log", b"1\n2")
    connector = connect(bench, bench.intake(partitions=1), "inbox/*.log", mode="tail")
    with running(connector):
        wait_for(lambda: bench.records() == [b"1"])
        add(path, b"2\n3\n")
        wait_for(lambda: bench.records() == [b"1", b"22", b"3"])


@pytest.mark.parametrize("mode", ["import", "tail"])
def test_a_file_that_shrank_is_read_again(bench: Bench, mode: str) -> None:
    path = put(bench, "a.ndjson", b"1\n2\n3\n")
    connector = connect(bench, bench.intake(partitions=1), "inbox/*", mode=mode)
    look_twice(connector)
    path.write_bytes(b"4\n")
    look_twice(connector)
    assert bench.records() == [b"1", b"2", b"3", b"4"]


def test_a_file_that_was_replaced_is_read_again(bench: Bench) -> None:
    path = put(bench, "a.ndjson", b"1\n2\n")
    connector = connect(bench, bench.intake(partitions=1), "inbox/*", mode="tail")
    look_twice(connector)
    path.write_bytes(b"5\n6\n7\n")  # the same file, longer, but it begins differently
    look_twice(connector)
    new = put(bench, "new.tmp", b"9\n6\n7\n8\n")
    new.replace(path)  # another file, that begins differently
    look_twice(connector)
    assert bench.records() == [b"1", b"2", *b"5 6 7 9 6 7 8".split()]


def test_a_file_that_was_replaced_by_one_that_begins_the_same_goes_on(bench: Bench) -> None:
    path = put(bench, "a.ndjson", b"5\n6\n")
    connector = connect(bench, bench.intake(partitions=1), "inbox/*.ndjson")
    look_twice(connector)
    put(bench, "new.tmp", b"5\n6\n7\n").replace(path)
    look_twice(connector)
    assert bench.records() == [b"5", b"6", b"7"]


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz"])
def test_a_file_that_came_back_from_a_backup_is_not_imported_again(bench: Bench, name: str) -> None:
    body = b"".join(b"%d\n" % n for n in range(12_000))
    path = put(bench, name, gzip.compress(body) if name.endswith("gz") else body)
    look_twice(connect(bench, bench.intake(partitions=1), "inbox/*"))
    copy = bench.folder / "copy"
    copy.write_bytes(path.read_bytes())
    path.unlink()
    copy.rename(path)  # another inode, another time
    look_twice(connect(bench, bench.intake(partitions=1), "inbox/*"))
    assert len(bench.records()) == 12_000


def test_files_that_are_renamed_one_to_the_next_go_on_where_they_were(bench: Bench) -> None:
    inbox = bench.folder / "inbox"
    first = put(bench, "app.log", b"1\n2\n")
    connector = connect(bench, bench.intake(partitions=1), "inbox/*", mode="tail")
    look_twice(connector)
    for number in range(3, 6):
        for old in sorted(inbox.iterdir(), reverse=True):
            parts = old.name.split(".")
            old.rename(inbox / f"app.log.{int(parts[2]) + 1 if len(parts) > 2 else 1}")
        put(bench, "app.log", b"%d\n" % number)
        look_twice(connector)
    assert not first.read_bytes().startswith(b"1")
    assert bench.records() == [b"1", b"2", b"3", b"4", b"5"]


def test_two_files_may_say_the_same(bench: Bench) -> None:
    for number, name in enumerate("ab"):
        os.utime(put(bench, name, b"ok\n"), (number, number))
    look_twice(connect(bench, bench.intake(partitions=1), "inbox/*"))
    assert bench.records() == [b"ok", b"ok"]


def test_csv_files_become_json_by_their_header_and_go_on_after_growth(bench: Bench) -> None:
    path = put(bench, "a.csv", b"MS,user,extra\n7,ada,x\n")
    connector = connect(bench, bench.intake(partitions=1), "inbox/*.csv", mode="tail")
    look_twice(connector)
    add(path, b",bob,\n")
    look_twice(connector)
    assert bench.records() == [
        b'{"ms":7,"user":"ada","extra":"x"}',
        b'{"ms":null,"user":"bob","extra":null}',
    ]


def test_csv_without_a_header_has_the_declared_columns(bench: Bench) -> None:
    put(bench, "a.csv", b"ada,2026-01-01T00:00:00Z,7\n")
    look_twice(connect(bench, bench.intake(partitions=1), "inbox/*", header="false"))
    assert bench.records() == [b'{"user":"ada","ts":"2026-01-01T00:00:00Z","ms":7}']


def test_a_csv_stream_takes_rows_as_they_are_without_the_header(bench: Bench) -> None:
    path = put(bench, "a.csv", b"user,ts,ms\nada,x,7\n")
    said = {"format": "csv"}
    connector = connect(bench, bench.intake(partitions=1, format="csv"), "inbox/*", said)
    look_twice(connector)
    add(path, b"bob,y,8\n")
    look_twice(connector)
    assert bench.records() == [b"ada,x,7", b"bob,y,8"]


def test_packed_files_are_imported_once(bench: Bench) -> None:
    put(bench, "a.ndjson.gz", gzip.compress(b"1\n2\n"))
    put(bench, "b.csv.gz", gzip.compress(b"user\nada\n"))
    for _ in range(2):
        look_twice(connect(bench, bench.intake(partitions=1), "inbox/*.gz"))
    assert bench.records() == [b"1", b"2", b'{"user":"ada"}']


def test_of_a_cut_off_packed_file_the_readable_part_is_taken(
    bench: Bench,
) -> None:
    lines = [b"%d" % (n * 7919 % 100_003) for n in range(50_000)]
    packed = gzip.compress(b"\n".join(lines))
    put(bench, "a.gz", packed[: len(packed) // 2])
    connector = connect(bench, bench.intake(partitions=1), "inbox/*")
    for _ in range(4):
        connector.scan(GO)
    *records, rest = bench.logged()
    assert len(records) > 10_000
    assert [record for _, record, _ in records] == lines[: len(records)]
    assert rest[2] == DAMAGED
    assert lines[len(records)].startswith(rest[1]), "as far as it was read"
    ((level, message),) = told()
    assert level == "warn"
    assert message.startswith("stream 'clicks', file inbox/a.gz: it cannot be read beyond byte")
    (bench.folder / "inbox" / "a.gz").unlink()
    connector.scan(GO)
    assert told() == [], "a file that is gone warns of nothing"


def test_a_json_array_is_imported(bench: Bench) -> None:
    put(bench, "a.json", b'[{"n":1},\n{"n":2}]')
    look_twice(connect(bench, bench.intake(partitions=1), "inbox/*.json"))
    assert bench.records() == [b'{"n":1}', b'{"n":2}']


def test_a_line_above_the_limit_is_a_dead_letter_with_its_beginning(bench: Bench) -> None:
    put(bench, "a.ndjson", b"1\n" + b"x" * 100 + b"\n2\n")
    put(bench, "b.csv", b"a_long_name\nvalue\n")
    intake = bench.intake(partitions=1, id="event_id", changes={"event_bytes_max": 20})
    look_twice(connect(bench, intake, "inbox/*"))
    begun = b'{"a_long_name":"valu'
    found = [(record, status) for _, record, status in bench.logged()]
    assert found == [(b"1", 0), (b"2", 0), (b"x" * 20, OVERLONG), (begun, OVERLONG)]
    assert intake.counters.accepted == 4
    last = "stream 'clicks', file inbox/b.csv: a record before byte 18 has 23 bytes"
    assert told() == [("warn", f"{last}, above the limit of 20 (and 1 other files)")]


def test_the_id_in_the_beginning_of_a_long_line_is_not_taken(bench: Bench) -> None:
    put(bench, "a.ndjson", b'{"event_id":1}' + b" " * 20 + b'\n{"event_id":1}\n')
    intake = bench.intake(partitions=1, id="event_id", changes={"event_bytes_max": 20})
    look_twice(connect(bench, intake, "inbox/*"))
    assert [status for _, _, status in bench.logged()] == [0, OVERLONG]


def test_names_of_files_are_not_paths_in_the_state_folder(bench: Bench) -> None:
    put(bench, "..%2f..%2fevil\n;.ndjson", b"1\n")
    before = set(bench.folder.rglob("*"))
    look_twice(connect(bench, bench.intake(partitions=1), "inbox/*"))
    assert bench.records() == [b"1"]
    made = {path for path in set(bench.folder.rglob("*")) - before if path.is_file()}
    assert {p.parent for p in made} == {bench.folder / "topic", bench.folder / "topic" / "0"}


def test_the_state_is_never_imported_whatever_the_pattern_says(bench: Bench) -> None:
    put(bench, "a.json", b"1\n")
    connector = connect(bench, bench.intake(partitions=1), "**/*.json")
    (bench.folder / ".headrace").mkdir()
    (bench.folder / ".headrace" / "x.json").write_bytes(b"secret\n")
    look_twice(connector)
    look_twice(connector)
    assert b"secret" not in bench.records()
    assert not any(b"inode" in record for record in bench.records())


def test_what_the_project_writes_or_a_link_leads_to_is_never_imported(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> None:
    put(bench, "a.json", b"1\n")
    away = tmp_path_factory.mktemp("away")
    (away / "x.json").write_bytes(b"secret\n")
    (bench.folder / "out").mkdir()
    (bench.folder / "out" / "y.json").write_bytes(b"written\n")
    (bench.folder / "inbox" / "b.json").symlink_to(away / "x.json")
    (bench.folder / "inbox" / "c.json").symlink_to(bench.folder / "out" / "y.json")
    (bench.folder / "inbox" / "d.json").symlink_to(bench.folder / "inbox" / "a.json")
    look_twice(connect(bench, bench.intake(partitions=1), "[io]*/*.json"))
    assert bench.records() == [b"1", b"1"]


def test_a_folder_that_was_away_is_not_imported_again(bench: Bench) -> None:
    put(bench, "a.ndjson", b"1\n")
    connector = connect(bench, bench.intake(partitions=1), "inbox/*")
    look_twice(connector)
    (bench.folder / "inbox").rename(bench.folder / "away")
    look_twice(connector)
    (bench.folder / "away").rename(bench.folder / "inbox")
    look_twice(connector)
    assert bench.records() == [b"1"]


def test_of_very_many_cursors_those_of_gone_files_are_forgotten_oldest_first(
    tmp_path: Path,
) -> None:
    progress = FileCursors(tmp_path, lambda: Position.start(1))
    for name in ("old", "here", "older", "old"):
        progress.save({name: FileCursor.of(tmp_path.stat())})
    progress.forget_gone({"here"}, cursors_max=2)
    assert [name for name in ("old", "here", "older") if progress.cursor(name)] == ["old", "here"]


def test_progress_is_saved_until_it_works(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bench, "a.ndjson", b"1\n")
    monkeypatch.setattr(files, "_SAVE_AGAIN_S", 0.01)
    connector = connect(bench, bench.intake(partitions=1), "inbox/*")
    place = cursors_path(bench.folder / "topic")
    place.mkdir(parents=True)  # a folder where the file is to be
    with running(connector):
        wait_for(told)
        ((level, message),) = told()
        place.rmdir()
        wait_for(place.is_file)
        wait_for(lambda: not told())
    assert bench.records() == [b"1"]
    assert level == "bad"
    assert "file inbox/a.ndjson: its progress cannot be saved" in message


def test_a_touched_file_is_not_imported_again(bench: Bench) -> None:
    paths = [put(bench, "a", b"1\n"), put(bench, "b.gz", gzip.compress(b"2\n"))]
    connector = connect(bench, bench.intake(partitions=1), "inbox/*")
    look_twice(connector)
    for path in paths:
        os.utime(path, (5, 5))
    look_twice(connector)
    assert bench.records() == [b"1", b"2"]


def test_a_packed_file_is_not_followed(bench: Bench) -> None:
    put(bench, "a.gz", gzip.compress(b"1\n"))
    connector = connect(bench, bench.intake(), "inbox/*", mode="tail")
    look_twice(connector)
    said = "a compressed file cannot be followed; set mode = 'import'"
    assert told() == [("warn", f"stream 'clicks', file inbox/a.gz: {said}")]


def test_damaged_progress_is_refused_rather_than_counted_twice(bench: Bench) -> None:
    intake = bench.intake()
    cursors_path(intake.folder).write_bytes(b"{half")
    with pytest.raises(BadProject, match="the progress of imported files cannot be read"):
        connect(bench, intake, "inbox/*")


def test_cursors_of_a_newer_headrace_are_refused(bench: Bench) -> None:
    intake = bench.intake()
    cursors_path(intake.folder).write_bytes(b'{"version":99,"files":[]}')
    with pytest.raises(UnsupportedFormat, match=r"file cursors at .* has format version 99"):
        connect(bench, intake, "inbox/*")
