"""Which files an import takes, and from where."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from headrace.core.errors import BadRequest, Conflict
from headrace.ingest.id_index import hash_key
from headrace.ingest.import_part import read_part
from headrace.ingest.import_plan import ImportFile, plan_files, tasks_of
from headrace.ingest.importer import Importer, import_folder
from headrace.ingest.intake import Intake
from headrace.ingest.packing import BlockPacker, PackSpec
from headrace.ingest.sent_files import SentFile

from .bulk import import_into
from .conftest import Bench

LINES = [b'{"event_id":%d,"user":"u%d"}\n' % (n, n) for n in range(40)]


def accepted(bench: Bench, *paths: Path, again: bool = False) -> int:
    assert bench.opened is not None
    found = import_into(bench.opened, paths, part_bytes=100, again=again)
    return sum(receipt.accepted for receipt in found)


@pytest.fixture
def file(tmp_path: Path, bench: Bench) -> Path:
    bench.intake(key="user")
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"".join(LINES[:20]))
    return path


def test_a_file_is_imported_once_whatever_its_name_is(bench: Bench, file: Path) -> None:
    assert accepted(bench, file) == 20
    assert accepted(bench, file) == 0
    file = file.rename(file.with_name("renamed.ndjson"))
    copy = file.with_name("copy.ndjson")
    copy.write_bytes(file.read_bytes())
    assert accepted(bench, file, copy) == 0
    assert accepted(bench, copy, again=True) == 20
    assert accepted(bench, copy, file) == 0


def test_of_two_files_with_the_same_bytes_the_first_is_imported(bench: Bench, file: Path) -> None:
    copy = file.with_name("copy.ndjson.gz")
    copy.write_bytes(gzip.compress(LINES[0]))
    other = file.with_name("other.ndjson.gz")
    other.write_bytes(copy.read_bytes())
    assert accepted(bench, copy, other) == 1


def test_a_file_that_has_grown_is_continued(bench: Bench, file: Path) -> None:
    accepted(bench, file)
    with file.open("ab") as more:
        more.writelines(LINES[20:])
    assert accepted(bench, file) == 20
    assert sorted(bench.records()) == sorted(line.rstrip() for line in LINES)


def test_a_file_that_only_begins_like_another_is_another(bench: Bench, file: Path) -> None:
    accepted(bench, file)
    longer = file.with_name("longer.ndjson")
    longer.write_bytes(b"".join(LINES))
    assert accepted(bench, longer) == 40


def test_a_file_that_was_sent_is_not_imported(bench: Bench, file: Path) -> None:
    assert bench.opened is not None
    with file.open("rb") as opened:
        SentFile.of(bench.opened.address, opened).remember()
    assert accepted(bench, file) == 0
    file.write_bytes(b"".join(LINES[:3]))
    assert accepted(bench, file) == 3


def test_small_files_share_a_task_and_large_ones_are_cut_where_a_line_ends(
    bench: Bench, file: Path, tmp_path: Path
) -> None:
    assert bench.opened is not None
    small = [tmp_path / f"{n}.ndjson" for n in range(3)]
    for n, path in enumerate(small):
        path.write_bytes(LINES[n])
    files = [ImportFile(path.name, path, "ndjson") for path in (*small, file)]
    tasks = list(tasks_of(plan_files(files, bench.opened.address), 200))
    assert [[piece.name for piece in task] for task in tasks] == [
        ["0.ndjson", "1.ndjson", "2.ndjson"], *[["a.ndjson"]] * 3,
    ]  # fmt: skip
    ends = [piece.end.taken for task in tasks[1:] for piece in task if piece.end]
    assert ends[-1] == file.stat().st_size
    assert all(file.read_bytes()[end - 1 : end] == b"\n" for end in ends)


def staged(intake: Intake, file: Path, *, again: bool = False) -> list[str]:
    """The name of the one part of a small file, read from the saved cursors."""
    folder = import_folder(intake.folder)
    folder.mkdir(exist_ok=True)
    key = hash_key(intake.folder / "ids") if intake.definition.id else None
    packer = BlockPacker(PackSpec(intake.definition, 2, 1_000, folder, key))
    plans = plan_files([ImportFile(file.name, file, "ndjson")], intake.address, again=again)
    return [part.name for task in tasks_of(plans, 10_000) for part in packer.pack(task)]


def test_a_part_that_was_read_from_an_older_cursor_is_refused(bench: Bench, file: Path) -> None:
    intake = bench.intake(key="user")
    [one], [other] = staged(intake, file), staged(intake, file)
    importer = Importer(intake)
    importer.take(one)
    with pytest.raises(Conflict, match=r"file a\.ndjson was taken by another import"):
        importer.take(other)
    with pytest.raises(BadRequest, match="is not the name of a part"):
        importer.take("../begun")
    assert len(bench.records()) == 20


def test_a_file_that_is_begun_again_is_not_taken_for_one_that_was_taken(
    bench: Bench, file: Path
) -> None:
    intake = bench.intake(key="user")
    Importer(intake).take(*staged(intake, file))
    [name] = staged(intake, file, again=True)
    (import_folder(intake.folder) / name).rename(import_folder(intake.folder) / "begun")
    Importer(bench.intake(key="user")).recover()
    assert len(bench.records()) == 40


@pytest.mark.parametrize("id", [None, "event_id"])
def test_blocks_that_the_log_has_of_a_part_are_not_appended_again(
    bench: Bench, file: Path, id: str | None
) -> None:
    intake = bench.intake(key="user", id=id)
    assert bench.topic is not None
    [name] = staged(intake, file)
    part = (import_folder(intake.folder) / name).rename(import_folder(intake.folder) / "begun")
    one, other = read_part(part).blocks
    intake.file_cursors.save_end()
    bench.topic.append_packed(one.partition, one.packed, bytes(len(one.packed))).result()
    intake = bench.intake(key="user", id=id)  # as after a kill
    sent = other.packed.body.splitlines()
    intake.accept(sent)  # the same bytes of a producer are in no block of the import
    Importer(intake).recover()
    Importer(intake).recover()
    assert Counter(bench.records()) == Counter([*file.read_bytes().splitlines(), *sent])
    statuses = Counter(status for _, _, status in bench.logged())
    assert statuses == ({0: 20, 1: len(sent)} if id else {0: 20 + len(sent)})
    assert intake.file_cursors.cursor("a.ndjson").ended
    assert not part.exists()
