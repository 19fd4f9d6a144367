"""`headrace verify` reads all that is kept, names what is damaged, and repairs what can be."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from master.test_damage import flip
from typer.testing import CliRunner

from headrace.access.access import Access
from headrace.cli.main import app
from headrace.core.errors import AlreadyRunning
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.run.lock import RunLock
from headrace.run.offline import Offline
from headrace.run.verify import VerifyResult, verify

from .stopped import OLD_MARKS, cut_power, make_stopped


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make_stopped(tmp_path / "project")
    Access(Layout.of(made).access, "stopped").close()
    return made


def repaired(project: Project) -> VerifyResult:
    return verify(Layout.of(project), repair=True)


def master_file(project: Project) -> Path:
    return min(Layout.of(project).master("clicks").rglob("*.parquet"))


def say(project: Project, *options: str) -> tuple[int, dict[str, Any]]:
    arguments = ["verify", "--project", str(project.folder), "--json", *options]
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, json.loads(result.stdout)


def test_a_sound_project_is_read_whole(project: Project) -> None:
    result = verify(Layout.of(project))
    assert result.damages == ()
    # Of ten records in the log six are in the master.
    assert (result.log_events, result.master_records) == (10, 6)
    assert result.log_bytes > 0
    assert result.master_bytes > 0
    shown = CliRunner().invoke(app, ["verify", "--project", str(project.folder)])
    assert shown.exit_code == 0
    assert "10 events of the log" in shown.stdout
    assert "6 records of the master in 2 files" in shown.stdout
    assert "no damage" in shown.stdout


def test_a_damaged_file_of_the_master_is_named_and_repaired(project: Project) -> None:
    path = master_file(project)
    before = path.read_bytes()
    flip(str(path), 100)
    code, said = say(project)
    assert (code, said["ok"]) == (1, False)
    (damage,) = said["damages"]
    assert damage["path"] == str(path)
    assert damage["problem"] == "its checksum does not match"
    assert (damage["stream"], damage["partition"], damage["repaired"]) == ("clicks", 0, False)
    assert damage["offsets"][0] == 0
    code, said = say(project, "--repair")
    assert (code, said["ok"], said["damages"][0]["repaired"]) == (0, True, True)
    assert path.read_bytes() == before
    assert say(project)[1]["damages"] == []


@pytest.mark.parametrize(
    ("said", "instead"),
    [("INTERVAL 10 SECONDS", "INTERVAL 1 HOUR"), ("ms BIGINT", "ms STRING")],
)
def test_a_repair_reads_events_as_they_were_deployed_whatever_the_files_say_now(
    project: Project, said: str, instead: str
) -> None:
    definitions = project.folder / "bench.sql"
    before = {p: p.read_bytes() for p in Layout.of(project).master("clicks").rglob("*.parquet")}
    for path in before:
        flip(str(path), 100)
    text = definitions.read_text().replace(said, instead)
    assert text != definitions.read_text()
    definitions.write_text(text)
    code, document = say(project, "--repair")
    assert (code, document["ok"]) == (0, True)
    assert {path: path.read_bytes() for path in before} == before


def test_without_a_store_nothing_is_repaired(project: Project) -> None:
    Layout.of(project).store.path.unlink()
    flip(str(master_file(project)), 100)
    (damage,) = repaired(project).damages
    assert damage.problem == (
        "its checksum does not match; not repaired: the store has no deployed plan of the stream"
    )
    assert not damage.repaired


def test_a_damaged_block_of_the_log_is_named(project: Project) -> None:
    segment = min((Layout.of(project).log("clicks").folder / "0").glob("*.seg"))
    flip(str(segment), 60)
    damages = verify(Layout.of(project)).damages
    assert [(d.part, d.path, d.stream, d.partition) for d in damages] == [
        ("log", str(segment), "clicks", 0)
    ]
    assert "offset 0 of the log is damaged" in damages[0].problem
    # The log cannot be repaired from itself.
    assert not repaired(project).sound


@pytest.mark.parametrize("name", ["serving.db", "access.db"])
def test_a_damaged_database_is_named(project: Project, name: str) -> None:
    path = Layout.of(project).state / name
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(byte ^ 0xFF for byte in data[4096:])
    path.write_bytes(data)
    assert [damage.path for damage in verify(Layout.of(project)).damages] == [str(path)]


def test_a_damaged_row_of_the_store_is_named(project: Project) -> None:
    path = Layout.of(project).store.path
    with closing(sqlite3.connect(path)) as db, db:
        [(id, rows)] = db.execute("SELECT id, rows FROM _runs ORDER BY id LIMIT 1").fetchall()
        flipped = bytes([rows[0] ^ 1]) + rows[1:]
        db.execute("UPDATE _runs SET rows = ? WHERE id = ?", (flipped, id))
    (damage,) = verify(Layout.of(project)).damages
    assert (damage.part, damage.path) == ("store", str(path))
    assert damage.problem.startswith("the store is damaged: the checksum of a run of '")


def test_a_damaged_commit_of_the_master_is_named_once(project: Project) -> None:
    log = Layout.of(project).master("clicks") / "_delta_log"
    newest = max(log.glob("*.json"))
    newest.write_text(newest.read_text().replace('"appId":"high-0"', '"appId":"high-1"'))
    (damage,) = verify(Layout.of(project)).damages
    assert (damage.part, damage.path, damage.stream) == ("master", str(log), "clicks")
    assert "highest event times does not match" in damage.problem


@pytest.mark.parametrize("mark", OLD_MARKS)
def test_a_power_cut_is_no_damage(project: Project, mark: bytes) -> None:
    cut_power(project, mark)
    result = verify(Layout.of(project))
    assert (result.damages, result.log_events) == ((), 10)


def test_a_damaged_log_that_has_lost_its_mark_is_named(project: Project) -> None:
    cut_power(project, b"")
    segment = min((Layout.of(project).log("clicks").folder / "0").glob("*.seg"))
    flip(str(segment), 60)
    (damage,) = verify(Layout.of(project)).damages
    assert (damage.part, damage.path, damage.stream) == ("log", str(segment), "clicks")


def test_a_log_that_is_older_than_the_master_is_told(project: Project) -> None:
    import shutil

    from headrace.log.embedded.writer import EmbeddedWriter

    log = Layout.of(project).log("clicks").folder
    shutil.rmtree(log)
    EmbeddedWriter.open(log, 2, segment_bytes_max=1 << 20).close()
    found = [(d.problem, d.partition, d.offsets) for d in verify(Layout.of(project)).damages]
    master, store = (
        f"the {part} has records that are not in the log" for part in ("master", "store")
    )
    assert found == [(told, n, (0, 3)) for n in (0, 1) for told in (master, store)]


def test_a_running_project_is_verified_and_not_repaired(project: Project) -> None:
    lock = RunLock(Layout.of(project))
    lock.acquire()
    assert verify(Layout.of(project)).sound
    with pytest.raises(AlreadyRunning):
        repaired(project)
    lock.release()


def test_a_damaged_master_is_no_answer(project: Project) -> None:
    """The audit reads the master with another engine, and refuses what an answer may not use."""
    flip(str(master_file(project)), 100)
    service = Offline(project)
    with pytest.raises(Exception, match="is damaged: its checksum does not match"):
        service.audit(None)
    service.close()
