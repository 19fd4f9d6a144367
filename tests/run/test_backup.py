"""What was backed up while events came in is restored whole, or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import pytest
from master.bench import InProcess
from master.test_damage import flip
from typer.testing import CliRunner

from headrace.access.access import Access
from headrace.access.audit_log import Actor
from headrace.api.resources.rows import ViewRequest
from headrace.cli.main import app
from headrace.compile.passes import stream_plan
from headrace.core.errors import (
    BadBackup,
    BadProject,
    Conflict,
    HeadraceError,
    NotFound,
    Unavailable,
)
from headrace.core.position import Interval, Position
from headrace.core.problems import Problems
from headrace.define.layout import Layout
from headrace.define.project import Project, load_project
from headrace.ingest.file_cursors import cursors_path, former_path
from headrace.ingest.files import FileConnector
from headrace.log.embedded.copy import LogSnapshot
from headrace.log.embedded.reader import EmbeddedReader
from headrace.master.archive import Archive
from headrace.master.decoding import declared_schema
from headrace.master.table import MasterTable
from headrace.run import backup as backing
from headrace.run.backup import backup, restore
from headrace.run.launch_spec import ensure_key
from headrace.run.lock import holder
from headrace.run.offline import Offline
from headrace.run.state_check import check_state
from headrace.run.stream_intakes import StreamIntakes
from headrace.run.verify import verify
from headrace.server.home import Home

from .stopped import OLD_MARKS, cut_power, make_stopped

SETTINGS = 'name = "shop"\n[log]\nfree_bytes_min = 0\npartitions = 1\n'
FILES = "CREATE STREAM clicks (n BIGINT) WITH (source = 'files', path = 'inbox/*', poll = '1 ms');"
GO = threading.Event()  # never set


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project that has imported and archived a file of a hundred events without ids."""
    made = files_project(tmp_path / "shop")
    (made.folder / "inbox/a.ndjson").write_bytes(lines(0, 100))
    import_all(made)
    archive(made)
    return made


def files_project(folder: Path) -> Project:
    (folder / "inbox").mkdir(parents=True)
    (folder / "headrace.toml").write_text(SETTINGS)
    (folder / "clicks.sql").write_text(FILES)
    return load_project(folder)


def lines(lower: int, upper: int) -> bytes:
    return b"".join(b'{"n":%d}\n' % n for n in range(lower, upper))


@contextmanager
def importing(project: Project) -> Iterator[FileConnector]:
    layout, stream_intakes = Layout.of(project), StreamIntakes(project)
    check_state(layout, project.streams)
    stream_intakes.open()
    definition = project.streams["clicks"]
    given = stream_intakes.intakes["clicks"], project.folder, Problems("source")
    yield FileConnector(definition, *given)
    stream_intakes.close()


def import_all(project: Project) -> None:
    with importing(project) as connector:
        connector.scan(GO)
        connector.scan(GO)


def archive(project: Project) -> None:
    plan, layout = stream_plan(project.streams["clicks"], project), Layout.of(project)
    Archive(InProcess(), plan, layout.log("clicks"), layout.master("clicks")).step_to_end(10_000)


def logged(project: Project) -> list[int]:
    reader = EmbeddedReader(Layout.of(project).log("clicks").folder)
    whole = Interval(reader.start().offsets[0], reader.end().offsets[0])
    return [json.loads(r)["n"] for block in reader.blocks(0, whole) for r in block.records()]


def moved(project: Project, target: Path) -> Project:
    """The project on another machine: its files, without its state, and with other inodes."""
    shutil.copytree(project.folder, target, ignore=shutil.ignore_patterns(".headrace"))
    for path in (target / "inbox").iterdir():
        path.touch()
    return load_project(target)


def test_a_restored_project_does_not_import_its_files_again(
    project: Project, tmp_path: Path
) -> None:
    backup(Layout.of(project), "shop", tmp_path / "copy")
    again = moved(project, tmp_path / "elsewhere")
    restore(Layout.of(again), tmp_path / "copy")
    import_all(again)
    assert logged(again) == list(range(100))
    assert verify(Layout.of(again)).damages == ()
    with (again.folder / "inbox/a.ndjson").open("ab") as file:
        file.write(lines(100, 110))
    import_all(again)
    assert logged(again) == list(range(110))


def test_a_copy_of_master_and_log_has_the_cursors_too(project: Project, tmp_path: Path) -> None:
    again = moved(project, tmp_path / "elsewhere")
    for part in ("master", "log"):
        shutil.copytree(Layout.of(project).state / part, Layout.of(again).state / part)
    import_all(again)
    assert logged(again) == list(range(100))


def test_a_log_without_cursors_is_refused(project: Project) -> None:
    path = cursors_path(Layout.of(project).log("clicks").folder)
    path.unlink()
    with pytest.raises(BadProject) as caught:
        import_all(project)
    assert str(caught.value) == (
        "BadProject: stream 'clicks' has events, but its file cursors are missing: "
        f"{path}\n"
        "  detail: its files would be imported again, and each event would be counted twice.\n"
        "  hint: restore a complete backup with `headrace restore`; do not mix parts of several "
        "copies. To import all files again, write {} into that file."
    )
    path.write_bytes(b"{}")
    import_all(project)
    assert logged(project) == [*range(100), *range(100)]


def test_cursors_that_are_newer_than_the_log_are_refused(project: Project, tmp_path: Path) -> None:
    log = Layout.of(project).log("clicks").folder
    shutil.copytree(log, tmp_path / "yesterday")
    with (project.folder / "inbox/a.ndjson").open("ab") as file:
        file.write(lines(100, 110))
    import_all(project)
    path = cursors_path(log)
    shutil.copy(path, cursors_path(tmp_path / "yesterday"))
    shutil.rmtree(log)
    shutil.copytree(tmp_path / "yesterday", log)
    with pytest.raises(BadProject) as caught:
        import_all(project)
    assert str(caught.value) == (
        f"BadProject: the file cursors of stream 'clicks' are newer than its log: {path}\n"
        "  detail: they were saved when the log ended at 110; it ends at 100, so lines of its "
        "files would be lost.\n"
        "  hint: restore a complete backup with `headrace restore`; do not mix parts of several "
        "copies."
    )


def as_version_0(project: Project) -> Path:
    """Put the cursors where they were before they had a version."""
    layout = Layout.of(project)
    path = cursors_path(layout.log("clicks").folder)
    former = former_path(layout.former_cursors, "clicks")
    former.parent.mkdir()
    former.write_text(json.dumps(json.loads(path.read_text())["files"]))
    path.unlink()
    return former


def test_cursors_of_version_0_are_migrated_once(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    former = as_version_0(project)
    for _ in range(2):
        import_all(project)
    assert logged(project) == list(range(100))
    assert not former.exists()
    assert caplog.messages == [
        f"migrated the file cursors at {former} from version 0 of its format to version 1"
    ]


def test_cursors_of_version_0_are_backed_up(project: Project, tmp_path: Path) -> None:
    as_version_0(project)
    backup(Layout.of(project), "shop", tmp_path / "copy")
    again = moved(project, tmp_path / "elsewhere")
    restore(Layout.of(again), tmp_path / "copy")
    import_all(again)
    assert logged(again) == list(range(100))


def test_a_backup_beside_an_import_neither_repeats_nor_loses_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.ingest.records.CHUNK_RECORDS", 5)
    project, stop = files_project(tmp_path / "shop"), threading.Event()
    (project.folder / "inbox/a.ndjson").write_bytes(lines(0, 50_000))
    with importing(project) as connector:
        worker = threading.Thread(target=lambda: (connector.scan(stop), connector.scan(stop)))
        worker.start()
        for number in range(4):
            backup(Layout.of(project), "shop", tmp_path / f"copy{number}")
        stop.set()
        worker.join()
    assert 0 < len(logged(project)) < 50_000, "the import went on beside the backups"
    monkeypatch.undo()
    for number in range(4):
        again = moved(project, tmp_path / f"elsewhere{number}")
        restore(Layout.of(again), tmp_path / f"copy{number}")
        import_all(again)
        assert logged(again) == list(range(50_000))


def test_a_restored_project_knows_the_ids_of_all_its_events(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "headrace.toml").write_text(SETTINGS + "segment_bytes_max = 65536\n")
    (folder / "clicks.sql").write_text("CREATE STREAM clicks (n BIGINT) WITH (id = 'n');")
    project = load_project(folder)
    records = lines(0, 20_000).splitlines()
    stream_intakes = StreamIntakes(project)
    for start in range(0, 20_000, 1_000):
        stream_intakes.intake("clicks").accept(records[start : start + 1_000])
    archive(project)
    stream_intakes.topics["clicks"].retain(Position((20_000,)), -1_000_000)
    assert stream_intakes.topics["clicks"].start().offsets[0] > 0, "a part is in the master alone"
    stream_intakes.close()
    backup(Layout.of(project), "shop", tmp_path / "copy")
    shutil.rmtree(project.state)
    restore(Layout.of(project), tmp_path / "copy")
    again = StreamIntakes(project)
    assert again.intake("clicks").accept(records).duplicates == 20_000
    again.close()


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as db:
        names = [
            row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return {name: db.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def test_answers_users_and_what_people_did_are_restored(tmp_path: Path) -> None:
    project = make_stopped(tmp_path / "project")
    layout = Layout.of(project)
    access = Access(layout.access, "stopped")
    access.add_user("ada", "viewer", Actor("admin"))
    access.close()
    with closing(sqlite3.connect(layout.store.path)) as db, db:
        text = "CREATE RULE slow AS SELECT * FROM clicks WHERE ms > 10"
        db.execute("INSERT INTO _rules VALUES ('slow', 1, ?, 'enabled', 1, 7, 'ada')", (text,))
        db.execute(
            "INSERT INTO _alerts (id, rule, version, row_key, severity, body, event_time, per, "
            "raised_at, raised_by, position, missed, acknowledged_by, acknowledged_at, note) "
            "VALUES ('x', 'slow', 1, '[]', 'low', '{}', 1, '', 2, 'speed', '1,0', 0, 'ada', 3, '')"
        )
    before = [rows_of(path) for path in (layout.store.path, layout.access)]
    backup(layout, "stopped", tmp_path / "copy")
    shutil.rmtree(layout.state)
    restore(layout, tmp_path / "copy")
    assert [rows_of(path) for path in (layout.store.path, layout.access)] == before
    assert layout.access.stat().st_mode & 0o777 == 0o600
    service = Offline(project)
    assert service.ask(ViewRequest("total")).rows[0]["n"] == 6
    service.close()


@pytest.mark.parametrize("mark", OLD_MARKS)
def test_a_project_is_backed_up_after_a_power_cut(tmp_path: Path, mark: bytes) -> None:
    project = make_stopped(tmp_path / "project")
    cut_power(project, mark)
    backup(Layout.of(project), "stopped", tmp_path / "copy")
    assert EmbeddedReader(tmp_path / "copy/log/clicks").end() == Position((5, 5))


def test_the_master_is_restored_with_its_position_and_event_times(tmp_path: Path) -> None:
    project = make_stopped(tmp_path / "project")
    layout, plan = Layout.of(project), stream_plan(project.streams["clicks"], project)
    before = MasterTable(layout.master("clicks"), declared_schema(plan), 2).newest()
    backup(layout, "stopped", tmp_path / "copy")
    shutil.rmtree(layout.state)
    restore(layout, tmp_path / "copy")
    after = MasterTable(layout.master("clicks"), declared_schema(plan), 2).newest()
    assert (after.position, after.highs) == (before.position, before.highs)
    assert set(after.files) == set(before.files)
    assert after.columns == before.columns


def without_manifest(copy: Path) -> None:
    (copy / "manifest.json").unlink()


def without_a_segment(copy: Path) -> None:
    min(copy.rglob("*.seg")).unlink()


def with_a_flipped_bit(copy: Path) -> None:
    flip(str(min(copy.rglob("*.parquet"))), 50)


def of_another_format(copy: Path) -> None:
    path = copy / "manifest.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))


def reaching_out(copy: Path) -> None:
    path = copy / "manifest.json"
    path.write_text(path.read_text().replace('"log/', '"../log/'))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (without_manifest, "is not a complete backup: it has no manifest.json"),
        (without_a_segment, "the backup is not complete: "),
        (with_a_flipped_bit, "the backup is damaged: "),
        (of_another_format, "has backup format 2, but this version reads 1"),
        (reaching_out, "names a file outside the backup: ../log/clicks/"),
    ],
)
def test_a_backup_that_is_not_whole_is_refused_and_nothing_is_restored(
    project: Project, tmp_path: Path, damage: Callable[[Path], None], told: str
) -> None:
    copy = tmp_path / "copy"
    backup(Layout.of(project), "shop", copy)
    damage(copy)
    again = moved(project, tmp_path / "elsewhere")
    with pytest.raises(BadBackup) as caught:
        restore(Layout.of(again), copy)
    assert told in caught.value.message
    assert {p.name for p in Layout.of(again).state.glob("*")} <= {"lock"}
    assert not again.state.with_name(".headrace.restoring").exists()


def test_a_restore_does_not_go_into_a_state_that_is_there(project: Project, tmp_path: Path) -> None:
    layout = Layout.of(project)
    backup(layout, "shop", tmp_path / "copy")
    before = sorted(p.name for p in layout.state.rglob("*"))
    with pytest.raises(Conflict) as caught:
        restore(layout, tmp_path / "copy")
    assert caught.value.message == (f"the project already has state in {layout.state}: log, master")
    assert sorted(p.name for p in layout.state.rglob("*") if p.name != "lock") == [
        name for name in before if name != "lock"
    ]


def test_no_run_begins_in_a_state_that_is_about_to_be_replaced(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(Layout.of(project), "shop", tmp_path / "copy")
    layout = Layout.of(moved(project, tmp_path / "elsewhere"))
    remove, gone = backing._remove, list[str]()

    def watched(path: Path) -> None:
        assert holder(layout) is not None, f"the lock was gone before {path.name}"
        remove(path)
        gone.append(path.name)

    monkeypatch.setattr(backing, "_remove", watched)
    restore(layout, tmp_path / "copy")
    assert gone[-1] == "lock"


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EXDEV])
def test_a_state_that_is_a_mount_point_is_told_and_nothing_is_left(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    backup(Layout.of(project), "shop", tmp_path / "copy")
    again = moved(project, tmp_path / "elsewhere")

    def mounted(path: Path, target: Path) -> Path:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "replace", mounted)
    with pytest.raises(Unavailable) as caught:
        restore(Layout.of(again), tmp_path / "copy")
    assert caught.value.message == (
        f"{again.state} cannot be replaced, because it is a mount point"
    )
    assert not again.state.with_name(".headrace.restoring").exists()


@pytest.mark.prove
@pytest.mark.process
def test_a_state_that_is_mounted_is_not_restored_into(project: Project, tmp_path: Path) -> None:
    backup(Layout.of(project), "shop", tmp_path / "copy")
    again = moved(project, tmp_path / "elsewhere")
    again.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", again.state], check=True)
    try:
        with pytest.raises(Unavailable, match="because it is a mount point"):
            restore(Layout.of(again), tmp_path / "copy")
        assert not again.state.with_name(".headrace.restoring").exists()
    finally:
        subprocess.run(["umount", "-l", again.state], check=True)


@pytest.mark.parametrize("moved_away", [False, True])
def test_the_state_of_a_job_is_restored(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved_away: bool
) -> None:
    """Its server has left a key there, or somebody has moved the whole folder away."""
    copy, state = tmp_path / "copy", Home(tmp_path / "home").state("shop")
    backup(Layout.of(project), "shop", copy)
    state.state.parent.mkdir(parents=True)
    if not moved_away:
        ensure_key(state)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HEADRACE_JOB", "shop")
    said = CliRunner().invoke(app, ["restore", str(copy)])
    assert said.exit_code == 0, said.output
    assert EmbeddedReader(state.log("clicks").folder).end() == Position((100,))


def test_a_restored_sink_does_not_repeat_the_ids_of_panes_that_the_log_has(tmp_path: Path) -> None:
    project = make_stopped(tmp_path / "project")
    store = Layout.of(project).store.path
    with closing(sqlite3.connect(store)) as db, db:
        for name in ("a", "b"):
            db.execute("INSERT INTO _sinks VALUES (?, 'f', 7, NULL, 0, 'begun')", (name,))
    backup(Layout.of(project), "stopped", tmp_path / "copy")
    shutil.rmtree(project.state)
    restore(Layout.of(project), tmp_path / "copy")
    sinks = rows_of(store)["_sinks"]
    assert [sink[:3] for sink in sinks] == [("a", "f", 7), ("b", "f", 7)]
    assert len({"begun", *(sink[-1] for sink in sinks)}) == 3


def test_a_restore_that_was_killed_is_begun_again(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(Layout.of(project), "shop", tmp_path / "copy")
    again = moved(project, tmp_path / "elsewhere")
    copies = iter(range(3))

    def killed(*args: object) -> str:
        next(copies)
        return copy_file(*args)  # type: ignore[arg-type]

    copy_file = backing.copy_file
    monkeypatch.setattr(backing, "copy_file", killed)
    monkeypatch.setattr(backing, "_removed_on_failure", lambda _: nullcontext())
    with pytest.raises(StopIteration):
        restore(Layout.of(again), tmp_path / "copy")
    monkeypatch.undo()
    assert again.state.with_name(".headrace.restoring").exists()
    assert not Layout.of(again).logs.exists()
    restore(Layout.of(again), tmp_path / "copy")
    assert logged(again) == list(range(100))


def test_a_backup_takes_as_long_as_it_takes(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile compactions replace the master's files and a vacuum removes them."""
    copy_log = backing.copy_log

    def slow(log: LogSnapshot, target: Path) -> None:
        copy_log(log, target)
        for path in Layout.of(project).master("clicks").rglob("*.parquet"):
            path.unlink()

    monkeypatch.setattr(backing, "copy_log", slow)
    killed = Layout.of(project).work(f"backup-{1 << 30}")
    killed.mkdir(parents=True)
    backup(Layout.of(project), "shop", tmp_path / "copy")
    assert verify(Layout(tmp_path / "copy")).master_records == 100
    assert list(killed.parent.iterdir()) == []


def test_a_damaged_project_is_not_backed_up(project: Project, tmp_path: Path) -> None:
    flip(str(min(Layout.of(project).master("clicks").rglob("*.parquet"))), 50)
    with pytest.raises(HeadraceError, match="is damaged: its checksum does not match"):
        backup(Layout.of(project), "shop", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_project_that_never_ran_has_nothing_to_back_up(tmp_path: Path) -> None:
    project = files_project(tmp_path / "shop")
    with pytest.raises(NotFound, match="nothing to back up"):
        backup(Layout.of(project), "shop", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("place", ["full", ".headrace/copy"])
def test_a_backup_goes_into_a_folder_of_its_own(project: Project, place: str) -> None:
    (project.folder / "full").mkdir()
    (project.folder / "full/file").touch()
    with pytest.raises(Conflict):
        backup(Layout.of(project), "shop", project.folder / place)


def test_the_commands_say_what_they_did(project: Project, tmp_path: Path) -> None:
    copy, again = tmp_path / "copy", moved(project, tmp_path / "elsewhere")
    said = CliRunner().invoke(app, ["backup", str(copy), "--project", str(project.folder)])
    assert said.exit_code == 0
    assert said.stdout.startswith("shop as of 20")
    assert said.stdout.endswith(f"backed up to {copy}\n")
    said = CliRunner().invoke(app, ["restore", str(copy), "--project", str(again.folder), "--json"])
    assert said.exit_code == 0
    assert json.loads(said.stdout)["project"] == "shop"
    assert logged(again) == list(range(100))
