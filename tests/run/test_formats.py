"""States that earlier versions of Headrace wrote open, and give the answers that they had.

tests/samples/make.py has made one for each version of a format. Version 0, in which nothing says
the version, is made here of version 1.
"""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from msgspec.json import encode

from headrace.access import file as access_file
from headrace.access.access import Access
from headrace.access.file import USERS
from headrace.api.resources.rows import ViewRequest
from headrace.core.errors import UnsupportedFormat
from headrace.core.files import digest_of
from headrace.core.migrations import SqlConnection
from headrace.core.position import Interval, Position
from headrace.core.version import __version__
from headrace.define.layout import Layout
from headrace.define.project import load_project
from headrace.log.embedded.description import LOG
from headrace.log.opening import open_reader
from headrace.master.table import MasterTable, counts
from headrace.master.version import FORMAT, MASTER
from headrace.run.backup import MANIFEST, backup, restore
from headrace.run.offline import Offline
from headrace.run.verify import verify
from headrace.server import database
from headrace.server.database import DOMAIN, DomainDatabase
from headrace.server.records import read_job
from headrace.serving import sqlite
from headrace.serving.alerts import AlertFilter
from headrace.serving.opening import read_store
from headrace.serving.sqlite import SqliteDatabase
from headrace.serving.store_tables import STORE

SAMPLES = sorted((Path(__file__).parents[1] / "samples").glob("*.tar.xz"))
E2 = b'{"event_id": "e2", "user": "bob", "url": "/home", "ts": "2025-11-18T10:02:00Z", "ms": 70, "price": 1.25}'  # noqa: E501
DECLARED = pa.schema(
    [
        ("user", pa.string()),
        ("url", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("ms", pa.int64()),
        ("price", pa.decimal128(8, 2)),
    ]
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A state that was unpacked: of a project that is stopped, and of a server."""

    folder: Path

    @property
    def layout(self) -> Layout:
        return Layout(self.folder / "project" / ".headrace")

    @property
    def domain(self) -> Path:
        return self.folder / "server" / "domain.db"

    @property
    def log(self) -> Path:
        return self.layout.log("clicks").folder

    @property
    def master(self) -> Path:
        return self.layout.master("clicks")

    def offline(self) -> Offline:
        return Offline(load_project(self.folder / "project"))

    def table(self) -> MasterTable:
        return MasterTable(self.master, DECLARED, 2)

    def contents(self) -> dict[Path, bytes]:
        """The bytes of all files, but for an empty journal that SQLite leaves after reading."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        found = {path: path.read_bytes() for path in files if not path.name.endswith("-shm")}
        return {path: data for path, data in found.items() if data or path.suffix != ".db-wal"}


def unpacked(path: Path, folder: Path) -> Sample:
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    return Sample(folder)


@pytest.fixture
def newest(tmp_path: Path) -> Sample:
    return unpacked(SAMPLES[-1], tmp_path)


@pytest.fixture
def oldest(tmp_path: Path) -> Sample:
    return unpacked(SAMPLES[0], tmp_path)


@pytest.fixture(params=["0", *(path.name for path in SAMPLES)])
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    if request.param != "0":
        return unpacked(SAMPLES[0].with_name(request.param), tmp_path)
    made = unpacked(SAMPLES[0], tmp_path)
    for what in UNVERSIONED:
        VERSIONED[what](made, None)
    return made


# What says the version of each format; None takes it away, as it was before there was one.


def write_database(path: Path, version: int | None) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA journal_mode = DELETE")  # as in a file that was restored from a backup
        if version is None:
            db.execute("DELETE FROM _meta WHERE key = 'schema_version'")
            if not db.execute("SELECT count(*) FROM _meta").fetchone()[0]:
                db.execute("DROP TABLE _meta")
        else:
            db.execute("UPDATE _meta SET value = ? WHERE key = 'schema_version'", (version,))


def write_master(sample: Sample, version: int | None) -> None:
    path = sample.master / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    (properties,) = (a["metaData"]["configuration"] for a in actions if "metaData" in a)
    del properties[FORMAT]
    properties |= {} if version is None else {FORMAT: str(version)}
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


VERSIONED: dict[str, Callable[[Sample, int | None], None]] = {
    "store": lambda sample, version: write_database(sample.layout.store.path, version),
    "file of users": lambda sample, version: write_database(sample.layout.access, version),
    "database of the server": lambda sample, version: write_database(sample.domain, version),
    "master": write_master,
}
DATABASES: dict[str, tuple[Callable[[Sample], Path], Callable[[Path], object]]] = {
    "store": (lambda sample: sample.layout.store.path, SqliteDatabase),
    "file of users": (lambda sample: sample.layout.access, lambda path: Access(path, "shop")),
    "database of the server": (lambda sample: sample.domain, DomainDatabase),
}
DATABASE = pytest.mark.parametrize("what", DATABASES)
FORMATS = {
    "log": LOG,
    "master": MASTER,
    "store": STORE.versions,
    "file of users": USERS.versions,
    "database of the server": DOMAIN.versions,
}
UNVERSIONED = [what for what in VERSIONED if FORMATS[what].oldest == 0]


def test_the_store_gives_its_answers(sample: Sample) -> None:
    offline = sample.offline()
    try:
        answer = offline.ask(ViewRequest("pages"))
        assert answer.rows == [
            {"url": "/cart", "hits": 1, "users": 1, "slowest": 500, "paid": "1.25"},
            {"url": "/home", "hits": 2, "users": 2, "slowest": 70, "paid": "2.50"},
        ]
        assert answer.as_of["clicks"].position == [3, 2]
        (alert,) = offline.rule_service.alerts(AlertFilter()).alerts
        assert (alert.rule, alert.severity, alert.state) == ("slow", "high", "open")
        assert alert.body == {"user": "ann", "url": "/cart", "ms": 500}
    finally:
        offline.close()


def test_every_view_gives_the_answer_that_was_kept_with_it(sample: Sample) -> None:
    kept = sample.folder / "answers.json"
    answers = json.loads(kept.read_text()) if kept.exists() else {}
    offline = sample.offline()
    try:
        rows = {view: offline.ask(ViewRequest(view)).rows for view in answers}
    finally:
        offline.close()
    assert json.loads(encode(rows)) == answers


def test_the_log_has_its_records(sample: Sample) -> None:
    reader = open_reader(sample.layout.log("clicks"))
    assert reader.end() == Position((4, 2))
    blocks = list(reader.blocks(0, Interval(0, 2)))
    assert [record for block in blocks for record in block.records()] == [E2, E2]
    assert [status for block in blocks for status in block.statuses.tolist()] == [0, 1]


def test_the_master_has_its_rows(sample: Sample) -> None:
    version = sample.table().newest()
    assert (version.format, version.position) == (MASTER.newest, Position((3, 2)))
    assert counts(version.files) == {"event": 3, "duplicate": 1, "dead_letter": 1}
    files = [file.path for file in version.files if file.status == "event"]
    rows = ds.dataset(files).to_table(["user", "url", "ms"]).to_pylist()
    assert sorted(row["ms"] for row in rows) == [30, 70, 500]
    assert {"user": "ann", "url": "/cart", "ms": 500} in rows


def test_the_users_are_known(sample: Sample) -> None:
    access = Access(sample.layout.access, "shop")
    try:
        assert [user.name for user in access.users()] == ["ada"]
        assert [(grant.may, grant.on) for grant in access.grants("ada")] == [("viewer", "*")]
        assert [token.name for token in access.tokens("ada")] == ["laptop"]
        checked = access.verify_audit_log()
        assert (checked.entries, checked.broken_at) == (3, None)
    finally:
        access.close()


def test_the_jobs_of_a_server_are_known(sample: Sample) -> None:
    with DomainDatabase(sample.domain).read() as db:
        job = read_job(db, "shop")
    assert (job.owner, job.desired, job.version) == ("ada", "running", 1)


@DATABASE
def test_a_migrated_database_has_the_tables_of_a_new_one(
    sample: Sample, what: str, tmp_path: Path
) -> None:
    path_of, open_it = DATABASES[what]
    open_it(path_of(sample))
    open_it(tmp_path / "new.db")
    made, migrated = statements(tmp_path / "new.db"), statements(path_of(sample))
    assert {name: migrated.get(name) for name in made} == made


def statements(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {name: " ".join(sql.split()) for name, sql in found}


def test_a_state_is_verified_as_it_is(sample: Sample) -> None:
    before = sample.contents()
    assert verify(sample.layout).damages == ()
    with read_store(sample.layout.store) as db:
        assert db.execute("SELECT value FROM _meta WHERE key = 'schema_version'").fetchone()
    assert sample.contents() == before


@DATABASE
def test_a_database_of_an_earlier_version_is_migrated_once(
    oldest: Sample, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    version, newest = (1 if FORMATS[what].oldest else 0), FORMATS[what].newest
    if version == 0:
        VERSIONED[what](oldest, None)
    path_of, open_it = DATABASES[what]
    path = path_of(oldest)
    for _ in range(2):
        open_it(path)
    assert caplog.messages == [
        f"migrated the {what} at {path} from version {version} of its format to version {newest}"
    ]


@pytest.mark.parametrize("version", [0, 1])
def test_a_master_of_an_earlier_version_is_migrated_once(
    oldest: Sample, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    write_master(oldest, version or None)
    before = oldest.table().newest_or_none()
    assert before is not None
    assert before.format == version
    for _ in range(2):
        after = oldest.table().newest()
        assert after.format == MASTER.newest
        assert (after.position, after.highs) == (before.position, before.highs)
        assert after.files == before.files
    assert caplog.messages == [
        f"migrated the master at {oldest.master} from version {version} of its format to version "
        f"{MASTER.newest}"
    ]


def test_a_state_is_backed_up_before_it_is_migrated_and_restored_after(
    sample: Sample, tmp_path: Path
) -> None:
    backup(sample.layout, "shop", tmp_path / "backup")
    sample.layout.state.rename(tmp_path / "before")
    restore(sample.layout, tmp_path / "backup")
    test_the_store_gives_its_answers(sample)
    test_the_master_has_its_rows(sample)
    test_the_users_are_known(sample)


def test_a_backup_with_a_newer_store_is_not_restored(newest: Sample, tmp_path: Path) -> None:
    backup(newest.layout, "shop", tmp_path / "backup")
    newest.layout.state.rename(tmp_path / "before")
    write_database(tmp_path / "backup" / "serving.db", 99)
    manifest = tmp_path / "backup" / MANIFEST
    said = json.loads(manifest.read_text())
    said["files"]["serving.db"]["sha256"] = digest_of(tmp_path / "backup" / "serving.db")
    manifest.write_text(json.dumps(said))
    with pytest.raises(UnsupportedFormat, match="has format version 99"):
        restore(newest.layout, tmp_path / "backup")
    assert not newest.layout.store.path.exists()


def refused(sample: Sample, path: Path, what: str, open_it: Callable[[], object]) -> None:
    """What has version 99 is refused with this sentence, and stays as it is."""
    before = sample.contents()
    with pytest.raises(UnsupportedFormat) as caught:
        open_it()
    error = caught.value
    versions = range(FORMATS[what].oldest, FORMATS[what].newest + 1)
    read = f"versions {versions[0]} to {versions[-1]}" if len(versions) > 1 else "version 1"
    assert error.message == (
        f"the {what} at {path} has format version 99, but Headrace {__version__} supports {read}"
    )
    assert error.detail == "it was written by a newer Headrace; nothing was changed."
    assert error.hint == "use the Headrace that wrote it, or a newer one."
    assert sample.contents() == before


@DATABASE
def test_a_newer_database_is_refused(newest: Sample, what: str) -> None:
    VERSIONED[what](newest, 99)
    path_of, open_it = DATABASES[what]
    refused(newest, path_of(newest), what, lambda: open_it(path_of(newest)))


def test_a_newer_store_is_refused_by_whoever_only_reads_it(newest: Sample) -> None:
    write_database(newest.layout.store.path, 99)
    refused(newest, newest.layout.store.path, "store", newest.offline)
    refused(newest, newest.layout.store.path, "store", lambda: verify(newest.layout))


def test_a_newer_master_is_refused(newest: Sample) -> None:
    write_master(newest, 99)
    refused(newest, newest.master, "master", newest.table().newest)
    refused(newest, newest.master, "master", newest.table().newest_or_none)


def test_a_newer_log_is_refused(newest: Sample) -> None:
    (newest.log / "topic.json").write_text(json.dumps({"partitions": 2, "version": 99}))
    refused(newest, newest.log, "log", lambda: open_reader(newest.layout.log("clicks")))


@DATABASE
def test_a_migration_that_fails_leaves_the_file_as_it_is(
    newest: Sample, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(db: SqlConnection) -> None:
        db.execute("DELETE FROM _meta")
        raise RuntimeError("a migration has a defect")

    for module, name in ((sqlite, "STORE"), (access_file, "USERS"), (database, "DOMAIN")):
        format = getattr(module, name)
        migrations = (*format.migrations, fail)
        monkeypatch.setattr(module, name, replace(format, migrations=migrations))
    path_of, open_it = DATABASES[what]
    before = newest.contents()
    with pytest.raises(RuntimeError, match="a migration has a defect"):
        open_it(path_of(newest))
    assert newest.contents() == before
