"""A backup: a consistent copy of a project's state, made while the project runs.

The order of the steps makes it consistent. First the store is copied. Then a version of each master
is chosen and its files are hard-linked, so that they cannot be removed. Then the end of each log
and the cursors of its file imports are read in one step. The logs are copied before the masters,
because retention may remove log segments. So nothing in the copy is ahead of its log, and no
imported file is read twice or skipped. Events between store and log are processed after a restore
as after a restart. The copy is verified, and only then gets its manifest: a folder without a
manifest is not a backup. A restore is atomic: one rename.
tests/run/test_backup.py restores what was copied while events came in.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from headrace.core.address import FILE
from headrace.core.errors import BadBackup, Conflict, NotFound, Unavailable, Unsupported
from headrace.core.files import copy_file, digest_of, sync
from headrace.core.time import Clock, iso, now_us
from headrace.core.version import __version__
from headrace.define.layout import Layout
from headrace.ingest.file_cursors import copy_cursors, former_path, pause_imports
from headrace.ingest.importer import copy_begun
from headrace.log.opening import LogSnapshot, copy_log, logs_in, snapshot
from headrace.master.copy import copy_master, link_files
from headrace.master.version import newest_version
from headrace.run.lock import RunLock, started_at
from headrace.run.state_check import has_writer
from headrace.run.verify import VerifyResult, verify
from headrace.serving.sinks import renew_incarnation
from headrace.serving.sqlite_files import copy_database, edit_file

MANIFEST, FORMAT = "manifest.json", 1
PATIENCE_S = 60.0
# Files that every run creates again; a restore may replace them. The lock is removed last, so that
# no run starts in a state that is about to be replaced.
_TRANSIENT = (
    "run.json",
    "run.token",
    "server.key",
    "work",
    "headrace.log",
    "headrace.log.1",
    "lock",
)


class CopiedFile(msgspec.Struct, frozen=True):
    """One file of a backup."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """The files of a backup with their checksums; it is written last."""

    format: int
    headrace: str
    project: str
    made_at: str
    files: dict[str, CopiedFile]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files.values())


def backup(layout: Layout, project: str, target: Path, clock: Clock = now_us) -> Manifest:
    """Copy the project's state into a new folder, and verify the copy."""
    _check_store(layout)
    topics = logs_in(layout.logs)
    if not topics:
        raise NotFound("the project has never run, so there is nothing to back up")
    _make(layout, target)
    made_at = iso(clock())
    with _removed_on_failure(target):
        _copy(layout, topics, Layout(target))
        _check(verify(Layout(target)), target)
        manifest = Manifest(FORMAT, __version__, project, made_at, _checksums(target))
        _write_manifest(manifest, target)
        return manifest


def _check_store(layout: Layout) -> None:
    if layout.store.kind != FILE:
        raise Unsupported(
            f"a backup copies the state folder only, and the project's store is in {layout.store}",
            detail="the two would be copied at different times and would be inconsistent.",
            hint="stop the project; then copy the state folder, and the schema with pg_dump.",
        )


def _copy(layout: Layout, topics: Mapping[str, int], copy: Layout) -> None:
    for source, goal in ((layout.store.path, copy.store.path), (layout.access, copy.access)):
        if source.exists():
            copy_database(source, goal)
    found = {name: newest_version(layout.master(name), n) for name, n in topics.items()}
    versions = {name: version for name, version in found.items() if version is not None}
    with _links(layout) as links:
        for name, version in versions.items():
            link_files(version, links / name)
        logs = {name: _log_and_cursors(layout, name, copy) for name in topics}
        for name, log in logs.items():
            copy_log(log, copy.log(name))
        for name, version in versions.items():
            copy_master(version, copy.master(name), links / name)


def _log_and_cursors(layout: Layout, stream: str, copy: Layout) -> LogSnapshot:
    """The end of a log, and a copy of the file cursors there, and of a part that an import that was
    killed has begun.
    """
    log, former = layout.log(stream), former_path(layout.former_cursors, stream)
    with pause_imports(log.folder, PATIENCE_S):
        copy_cursors(log.folder, copy.log(stream).folder)
        copy_begun(log.folder, copy.log(stream).folder)
        if former.exists():
            copy_file(former, copy.former_cursors / former.name)
        return snapshot(log, written=has_writer(layout))


@contextmanager
def _links(layout: Layout) -> Iterator[Path]:
    """A folder for hard links, on the disk of the state; folders of killed backups are removed."""
    folder = layout.work(f"backup-{os.getpid()}")
    for left in folder.parent.glob("backup-*"):
        if left == folder or started_at(int(left.name.rpartition("-")[2])) is None:
            shutil.rmtree(left, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _removed_on_failure(folder: Path) -> Iterator[None]:
    """Remove an incomplete copy, so that the next attempt can use the folder."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _make(layout: Layout, target: Path) -> None:
    """Create the folder, readable by its owner only: it contains users and digests of tokens."""
    if target.resolve().is_relative_to(layout.state.resolve()):
        raise Conflict(f"the backup folder {target} is inside the state folder {layout.state}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Conflict(
            f"{target} is not empty, and a backup requires an empty folder",
            hint="give a folder that does not exist yet.",
        )
    target.mkdir(parents=True, exist_ok=True)
    target.chmod(0o700)


def _check(result: VerifyResult, target: Path) -> None:
    if result.damages:
        damage = result.damages[0]
        raise Unavailable(
            f"the copy in {target} is damaged: {damage.problem}",
            detail=damage.path,
            hint="check the project itself with `headrace verify`; then try again.",
        )


def _checksums(target: Path) -> dict[str, CopiedFile]:
    paths = sorted(path for path in target.rglob("*") if path.is_file())
    return {
        str(path.relative_to(target)): CopiedFile(path.stat().st_size, digest_of(path))
        for path in paths
    }


def _write_manifest(manifest: Manifest, target: Path) -> None:
    draft = target / f"{MANIFEST}.new"
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    sync(draft)
    draft.replace(target / MANIFEST)
    sync(target)


def restore(layout: Layout, source: Path) -> Manifest:
    """Make a backup the state of a project that has no state."""
    _check_store(layout)
    manifest = _read(source)
    lock = RunLock(layout)
    lock.acquire()
    try:
        _check_free(layout)
        fresh = layout.state.with_name(f"{layout.state.name}.restoring")
        shutil.rmtree(fresh, ignore_errors=True)  # of a restore that was killed
        with _removed_on_failure(fresh):
            for name, file in manifest.files.items():
                _copy_checked(source / name, fresh / name, file)
            _renew_pane_ids(Layout(fresh).store.path)
            fresh.chmod(0o700)
            _put_in_place(fresh, layout.state)
        sync(layout.state.parent)
    finally:
        lock.release()
    return manifest


def _renew_pane_ids(store: Path) -> None:
    """Give the panes that sinks deliver from now on new ids. The copied log may contain panes that
    were delivered after the store was copied; the same panes are computed again with other rows,
    and would be conflicts under the same ids.
    """
    if store.exists():
        with edit_file(store) as db:
            renew_incarnation(db)


def _put_in_place(fresh: Path, state: Path) -> None:
    for name in _TRANSIENT:
        _remove(state / name)
    try:
        fresh.replace(state)  # fails if the folder is not empty
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        raise Unavailable(
            f"{state} cannot be replaced, because it is a mount point",
            detail="nothing was restored.",
            hint="mount the volume one folder higher, or unmount it, restore, and copy the state "
            "into it.",
        ) from error


def _read(source: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode((source / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise BadBackup(
            f"{source} is not a complete backup: it has no {MANIFEST}",
            detail="the manifest is written after all files were copied and verified.",
            hint="make another one with `headrace backup`, or use an older one.",
        ) from error
    except (OSError, msgspec.DecodeError) as error:
        raise BadBackup(f"{source / MANIFEST} cannot be read: {error}") from error
    if manifest.format != FORMAT:
        raise BadBackup(
            f"{source} has backup format {manifest.format}, but this version reads {FORMAT}",
            hint=f"restore it with Headrace {manifest.headrace}.",
        )
    for name in manifest.files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise BadBackup(f"{source / MANIFEST} names a file outside the backup: {name}")
    return manifest


def _check_free(layout: Layout) -> None:
    names = [p.name for p in sorted(layout.state.iterdir()) if p.name not in _TRANSIENT]
    if names:
        raise Conflict(
            f"the project already has state in {layout.state}: {', '.join(names)}",
            detail="a backup replaces the whole state and is not merged with an existing one.",
            hint="move that folder away first.",
        )


def _copy_checked(source: Path, target: Path, file: CopiedFile) -> None:
    try:
        digest = copy_file(source, target)
    except FileNotFoundError as error:
        raise BadBackup(
            f"the backup is not complete: {source} is missing",
            detail="nothing was restored.",
            hint="put the file back, or use another backup.",
        ) from error
    if digest != file.sha256:
        raise BadBackup(
            f"the backup is damaged: the checksum of {source} does not match",
            detail="nothing was restored.",
            hint="use another backup.",
        )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
