"""A folder of real files: import, tail, restart, and what goes wrong."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import BadProject
from headrace.ingest import files
from headrace.ingest.files import FilesConnector
from headrace.ingest.intake import Intake
from headrace.ingest.progress import Mark, Progress

from .conftest import Bench, running, stream, wait_for

GO = threading.Event()  # never set: a look that is not to be stopped


def connect(
    bench: Bench, intake: Intake, path: str, said: dict[str, Any] | None = None, **options: str
) -> FilesConnector:
    (bench.folder / "inbox").mkdir(exist_ok=True)
    options = {"path": path, "poll": "20 ms", **options}
    definition = stream(source="files", options=options, **(said or {}))
    # The clock is the files' own time, so that no file is old enough to be taken at first sight.
    return FilesConnector(definition, intake, bench.folder, bench.folder / "state", clock=lambda: 0)


def put(bench: Bench, name: str, body: bytes) -> Path:
    path = bench.folder / "inbox" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(body)
    return path


def add(path: Path, body: bytes) -> None:
    with path.open("ab") as file:
        file.write(body)


def look_twice(connector: FilesConnector) -> None:
    """An import takes a file at the second look, when it has been still."""
    connector.look(GO)
    connector.look(GO)


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
    connector.look(GO)
    add(path, b":1}\n")
    connector.look(GO)
    assert bench.records() == []
    connector.look(GO)
    assert bench.records() == [b'{"n":1}']


def test_import_takes_an_old_file_at_first_sight(bench: Bench) -> None:
    path = put(bench, "a.ndjson", b"1\n")
    os.utime(path, (1, 1))
    definition = stream(source="files", options={"path": "inbox/*"})
    FilesConnector(definition, bench.intake(), bench.folder, bench.folder / "state").look(GO)
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
    save = Progress.save

    def crashing_save(progress: Progress, *args: Any) -> None:
        nonlocal saves
        saves += 1
        if saves == crash_at:
            raise KeyboardInterrupt
        save(progress, *args)

    monkeypatch.setattr(Progress, "save", crashing_save)
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
        connector.look(GO)
    records = bench.records()
    assert len(records) > 10_000
    assert records == lines[: len(records)]
    assert len(connector.problems) == 1
    assert connector.problems[0].startswith("inbox/a.gz: it cannot be read beyond byte")


def test_a_json_array_is_imported(bench: Bench) -> None:
    put(bench, "a.json", b'[{"n":1},\n{"n":2}]')
    look_twice(connect(bench, bench.intake(partitions=1), "inbox/*.json"))
    assert bench.records() == [b'{"n":1}', b'{"n":2}']


def test_a_line_above_the_limit_is_passed_over_and_kept_as_a_problem(bench: Bench) -> None:
    put(bench, "a.ndjson", b"1\n" + b"x" * 100 + b"\n2\n")
    put(bench, "b.csv", b"a_long_name\nvalue\n")
    intake = bench.intake(partitions=1, changes={"event_bytes_max": 20})
    connector = connect(bench, intake, "inbox/*")
    look_twice(connector)
    assert bench.records() == [b"1", b"2"]
    assert list(connector.problems) == [
        "inbox/a.ndjson: the line at byte 2 has 101 bytes, above the limit of 20",
        "inbox/b.csv: 1 records before byte 18 are above the limit of 20 bytes",
    ]


def test_names_of_files_are_not_paths_in_the_state_folder(bench: Bench) -> None:
    put(bench, "..%2f..%2fevil\n;.ndjson", b"1\n")
    look_twice(connect(bench, bench.intake(), "inbox/*", {"name": "../clicks"}))
    assert bench.records() == [b"1"]
    assert [p.name for p in (bench.folder / "state").iterdir()] == ["files-..%2Fclicks.json"]


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


def test_of_very_many_marks_those_of_gone_files_are_forgotten_oldest_first(tmp_path: Path) -> None:
    progress = Progress(tmp_path, "clicks")
    for name in ("old", "here", "older", "old"):
        progress.save(name, Mark.of(tmp_path.stat()))
    progress.forget_gone({"here"}, marks_max=2)
    assert [name for name in ("old", "here", "older") if progress.mark(name)] == ["old", "here"]


def test_progress_is_saved_until_it_works(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bench, "a.ndjson", b"1\n")
    monkeypatch.setattr(files, "_SAVE_AGAIN_S", 0.01)
    connector = connect(bench, bench.intake(partitions=1), "inbox/*")
    place = bench.folder / "state" / "files-clicks.json"
    place.mkdir(parents=True)  # a folder where the file is to be
    with running(connector):
        wait_for(lambda: connector.problems)
        place.rmdir()
        wait_for(place.is_file)
    assert bench.records() == [b"1"]
    assert "its progress cannot be saved" in connector.problems[0]


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
    assert list(connector.problems) == ["inbox/a.gz: a packed file cannot be followed; import it"]


def test_damaged_progress_is_refused_rather_than_counted_twice(bench: Bench) -> None:
    (bench.folder / "state").mkdir()
    (bench.folder / "state" / "files-clicks.json").write_bytes(b"{half")
    with pytest.raises(BadProject, match="the progress of imported files cannot be read"):
        connect(bench, bench.intake(), "inbox/*")
