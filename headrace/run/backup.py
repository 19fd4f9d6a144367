"""A backup: a copy of all that a project keeps, as it was at one moment, made while it runs.

The store is copied first, then a version of the master is chosen, whose files are held by links,
then the ends of the logs, and with them, in one step, the progress of imports. The logs are copied
at once, before retention removes what was chosen, and the masters after them, which take long. So
nothing in the copy is ahead of its log, and no file of an import is taken again or passed over.
What lies between store and log is counted after a restore as after a restart. The copy is read
back, and only then gets its manifest: a folder without one is no backup. A restore is all or
nothing: one rename.
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

from headrace.core.errors import BadBackup, Conflict, NotFound, Unavailable
from headrace.core.files import copy_file, digest_of, sync
from headrace.core.time import Clock, iso, now_us
from headrace.core.version import __version__
from headrace.define.layout import Layout
from headrace.ingest.file_cursors import pause_imports
from headrace.log.opening import copy_log, snapshot
from headrace.master.copy import copy_master, link_files
from headrace.master.version import newest_version
from headrace.run.lock import RunLock, started_at
from headrace.run.parts import is_written, topics_of
from headrace.run.verify import Verified, verify
from headrace.serving.sinks import draw_begun
from headrace.serving.sqlite_files import copy_database, edit

MANIFEST, FORMAT = "manifest.json", 1
PATIENCE_S = 60.0
# What is made anew when it is missing; a restore may be done over it. The lock is the last to go:
# no run begins in a state that is about to be replaced.
_PASSING = (
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
    """What a backup consists of; it is written last."""

    format: int
    headrace: str
    project: str
    made_at: str
    files: dict[str, CopiedFile]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files.values())


def backup(layout: Layout, project: str, target: Path, clock: Clock = now_us) -> Manifest:
    """Copy all that is kept into a new folder, and read the copy back."""
    topics = topics_of(layout)
    if not topics:
        raise NotFound("the project has never run, so there is nothing to back up")
    _make(layout, target)
    made_at = iso(clock())
    with _removed_on_failure(target):
        _copy(layout, topics, Layout(target))
        _check(verify(Layout(target)), target)
        return _described(Manifest(FORMAT, __version__, project, made_at, _listed(target)), target)


def _copy(layout: Layout, topics: Mapping[str, int], copy: Layout) -> None:
    for source, goal in ((layout.store, copy.store), (layout.access, copy.access)):
        if source.exists():
            copy_database(source, goal)
    found = {name: newest_version(layout.master(name), n) for name, n in topics.items()}
    versions = {name: version for name, version in found.items() if version is not None}
    with _links(layout) as links:
        for name, version in versions.items():
            link_files(version, links / name)
        with pause_imports(layout.ingest, PATIENCE_S):
            logs = {name: snapshot(layout.log(name), written=is_written(layout)) for name in topics}
            for file in sorted(layout.ingest.glob("*.json")):
                copy_file(file, copy.ingest / file.name)
        for name, log in logs.items():
            copy_log(log, copy.log(name))
        for name, version in versions.items():
            copy_master(version, copy.master(name), links / name)


@contextmanager
def _links(layout: Layout) -> Iterator[Path]:
    """A folder for links, on the disk of the state; those of backups that were killed go."""
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
    """Half of a copy helps nobody, and is in the way of the next."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _make(layout: Layout, target: Path) -> None:
    """The folder, for its owner alone: users and their tokens' digests are in it."""
    if target.resolve().is_relative_to(layout.state.resolve()):
        raise Conflict(f"{target} lies in the state that is to be backed up")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Conflict(
            f"{target} is not empty, and a backup is not mixed with anything",
            hint="give a folder that does not exist yet.",
        )
    target.mkdir(parents=True, exist_ok=True)
    target.chmod(0o700)


def _check(read: Verified, target: Path) -> None:
    if read.damages:
        damage = read.damages[0]
        raise Unavailable(
            f"the copy in {target} is not what was to be copied: {damage.problem}",
            detail=damage.path,
            hint="`headrace verify` says whether the project itself is sound; then try again.",
        )


def _listed(target: Path) -> dict[str, CopiedFile]:
    paths = sorted(path for path in target.rglob("*") if path.is_file())
    return {
        str(path.relative_to(target)): CopiedFile(path.stat().st_size, digest_of(path))
        for path in paths
    }


def _described(manifest: Manifest, target: Path) -> Manifest:
    draft = target / f"{MANIFEST}.new"
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    sync(draft)
    draft.replace(target / MANIFEST)
    sync(target)
    return manifest


def restore(layout: Layout, source: Path) -> Manifest:
    """Make a backup the state of a project that has none."""
    manifest = _read(source)
    lock = RunLock(layout)
    lock.take()
    try:
        _check_free(layout)
        fresh = layout.state.with_name(f"{layout.state.name}.restoring")
        shutil.rmtree(fresh, ignore_errors=True)  # of a restore that was killed
        with _removed_on_failure(fresh):
            for name, file in manifest.files.items():
                _copy_checked(source / name, fresh / name, file)
            _tell_sinks_apart(Layout(fresh).store)
            fresh.chmod(0o700)
            _put_in_place(fresh, layout.state)
        sync(layout.state.parent)
    finally:
        lock.release()
    return manifest


def _tell_sinks_apart(store: Path) -> None:
    """What the project decided after the copy of its store is in the copy of its log: panes that
    are decided again have other rows, and would be conflicts under the same ids.
    """
    if store.exists():
        with edit(store) as db:
            draw_begun(db)


def _put_in_place(fresh: Path, state: Path) -> None:
    for name in _PASSING:
        _remove(state / name)
    try:
        fresh.replace(state)  # over a folder that is empty now, or not at all
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
            f"{source} is not a whole backup: it has no {MANIFEST}",
            detail="it is written when everything else was copied and read back.",
            hint="make another one with `headrace backup`, or take an older one.",
        ) from error
    except (OSError, msgspec.DecodeError) as error:
        raise BadBackup(f"{source / MANIFEST} cannot be read: {error}") from error
    if manifest.format != FORMAT:
        raise BadBackup(
            f"{source} has format {manifest.format}, and this Headrace reads format {FORMAT}",
            hint=f"restore it with Headrace {manifest.headrace}.",
        )
    for name in manifest.files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise BadBackup(f"{source / MANIFEST} names a file outside the backup: {name}")
    return manifest


def _check_free(layout: Layout) -> None:
    kept = [p.name for p in sorted(layout.state.iterdir()) if p.name not in _PASSING]
    if kept:
        raise Conflict(
            f"the project has a state already, in {layout.state}: {', '.join(kept)}",
            detail="a backup is restored as a whole, and not into what is there.",
            hint="move that folder away first.",
        )


def _copy_checked(source: Path, target: Path, file: CopiedFile) -> None:
    try:
        digest = copy_file(source, target)
    except FileNotFoundError as error:
        raise BadBackup(
            f"the backup is not whole: {source} is missing",
            detail="nothing was restored.",
            hint="bring the file back, or take another backup.",
        ) from error
    if digest != file.sha256:
        raise BadBackup(
            f"the backup is damaged: {source} has other bytes than were written",
            detail="nothing was restored.",
            hint="take another backup.",
        )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
