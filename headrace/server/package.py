"""A project's folder as a request body, and back: a gzipped tar of plain files and folders.

The tar is parsed by this file alone: only plain POSIX headers are supported, so there are no links,
no devices, no sparse files and no extensions. Nothing is written before the whole body is
validated, and then only new files below the given folder. tests/server/test_package.py tries each
attack.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from headrace.api.body import gunzip
from headrace.core.errors import BadRequest, LimitReached
from headrace.server.settings import SubmitSettings

MEDIA = "application/gzip"
_BLOCK = tarfile.BLOCKSIZE
_PART = re.compile(r"\w[\w .+-]{0,99}")
_DEPTH_MAX = 8
_FILES, _FOLDER = (tarfile.REGTYPE, tarfile.AREGTYPE), tarfile.DIRTYPE
Files = dict[str, bytes]


def pack(folder: Path, output: str = "") -> bytes:
    """The visible files of a folder, without its output folder. The same files always give the same
    bytes, so that a command can be retried.
    """
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path in _visible(folder):
            if output and path.is_relative_to(folder / output):
                continue
            if path.is_symlink() or not path.is_file():
                raise BadRequest(f"{path} is not a plain file; only plain files can be submitted")
            data = path.read_bytes()
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def _visible(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _visible(path)
        else:
            yield path


def unpack(body: bytes, limits: SubmitSettings) -> Files:
    """The files in a body, by name; nothing is written."""
    files: Files = {}
    taken: set[str] = set()
    for name, content in _entries(_unzip(body, limits.unpacked_bytes_max)):
        places = list(_places(name))
        if not taken.isdisjoint(places):
            raise BadRequest(f"duplicate file '{name}'", hint="names are case-insensitive.")
        taken.add(places[0])
        files[name] = content
        if len(files) > limits.files_max:
            raise too_large(f"{limits.files_max} files", "files_max")
    folders = {place for name in files for place in list(_places(name))[1:]}
    if both := taken & folders:
        raise BadRequest(f"'{min(both)}' is both a file and a folder")
    if "headrace.toml" not in files:
        raise BadRequest(
            "the project has no headrace.toml",
            hint="pack the content of its folder, not the folder.",
        )
    return files


def _unzip(body: bytes, limit: int) -> bytes:
    try:
        return gunzip(body, limit)
    except LimitReached as error:
        raise too_large(f"{limit} bytes", "unpacked_bytes_max") from error


def too_large(limit: str, setting: str) -> LimitReached:
    return LimitReached(
        f"the project has more than {limit}", hint=f"see submit.{setting} in server.toml."
    )


def _places(name: str) -> Iterator[str]:
    """The path of a file and of each folder above it, in lower case."""
    parts = name.lower().split("/")
    return ("/".join(parts[:upper]) for upper in range(len(parts), 0, -1))


def _entries(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The plain files of a tar; other entries are refused."""
    place = 0
    while place + _BLOCK <= len(data) and any(data[place : place + _BLOCK]):
        entry = _header(data[place : place + _BLOCK])
        place += _BLOCK
        if entry.type == _FOLDER:
            if entry.name.strip("./"):
                _check_path(entry.name.rstrip("/"))
            continue
        if entry.type not in _FILES:
            raise BadRequest(
                f"'{entry.name[:100]}' is not a plain file; only plain files can be submitted",
                hint="pack with `tar --format=ustar`, without links.",
            )
        if not 0 <= entry.size <= len(data) - place:
            raise BadRequest("the tar is truncated, or a size in it is not valid")
        yield _check_path(entry.name), data[place : place + entry.size]
        place += -(-entry.size // _BLOCK) * _BLOCK


def _header(block: bytes) -> tarfile.TarInfo:
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError) as error:
        raise BadRequest(
            f"the submitted project is not a valid tar: {error}",
            hint="use `headrace submit`, or pack it with `tar --format=ustar`, uncompressed.",
        ) from error


def _check_path(name: str) -> str:
    parts = name.removeprefix("./").split("/")
    if len(parts) > _DEPTH_MAX or not all(_PART.fullmatch(part) for part in parts):
        raise BadRequest(
            f"'{name[:100]}' is not a valid file name for a project",
            hint="use letters, digits, space and . _ + -, separated by slashes; no hidden files.",
        )
    return "/".join(parts)


def write_files(files: Files, folder: Path) -> None:
    """Write a project into a new folder, durably and read-only."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        path.chmod(0o400)
