"""A project's folder as one body, and back: a gzipped tar of plain files and folders.

What comes in is read block by block, by this file alone: nothing but the plain headers of POSIX is
known, so there are no links, no devices, no sparse files and no extensions. A name is words between
slashes. Nothing is written before all of it was read and found right, and then only new files below
the folder that is given. tests/server/test_package.py tries each attack.
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
    """The visible files of a folder, without its output folder. The same files give the same bytes,
    whenever they are packed, so that a command can be sent again.
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
                raise BadRequest(f"{path} is no plain file, and only those can be submitted")
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
    for name, content in _entries(_unzipped(body, limits.unpacked_bytes_max)):
        places = list(_places(name))
        if not taken.isdisjoint(places):
            raise BadRequest(f"the project has '{name}' twice", hint="case makes no difference.")
        taken.add(places[0])
        files[name] = content
        if len(files) > limits.files_max:
            raise too_large(f"{limits.files_max} files", "files_max")
    folders = {place for name in files for place in list(_places(name))[1:]}
    if both := taken & folders:
        raise BadRequest(f"the project has '{min(both)}' as a file and as a folder")
    if "headrace.toml" not in files:
        raise BadRequest(
            "the project has no headrace.toml", hint="pack what is in its folder, not the folder."
        )
    return files


def _unzipped(body: bytes, limit: int) -> bytes:
    try:
        return gunzip(body, limit)
    except LimitReached as error:
        raise too_large(f"{limit} bytes", "unpacked_bytes_max") from error


def too_large(limit: str, setting: str) -> LimitReached:
    return LimitReached(
        f"the project has more than {limit}", hint=f"see submit.{setting} in server.toml."
    )


def _places(name: str) -> Iterator[str]:
    """A file's own place and that of each folder above it, whatever their case."""
    parts = name.lower().split("/")
    return ("/".join(parts[:upper]) for upper in range(len(parts), 0, -1))


def _entries(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The plain files of a tar; whatever else is in it is refused."""
    place = 0
    while place + _BLOCK <= len(data) and any(data[place : place + _BLOCK]):
        entry = _header(data[place : place + _BLOCK])
        place += _BLOCK
        if entry.type == _FOLDER:
            if entry.name.strip("./"):
                _checked(entry.name.rstrip("/"))
            continue
        if entry.type not in _FILES:
            raise BadRequest(
                f"'{entry.name[:100]}' is no plain file, and only those can be submitted",
                hint="pack with `tar --format=ustar`, without links.",
            )
        if not 0 <= entry.size <= len(data) - place:
            raise BadRequest("the tar is cut off, or a size in it is wrong")
        yield _checked(entry.name), data[place : place + entry.size]
        place += -(-entry.size // _BLOCK) * _BLOCK


def _header(block: bytes) -> tarfile.TarInfo:
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is no valid tar: {error}") from error


def _checked(name: str) -> str:
    parts = name.removeprefix("./").split("/")
    if len(parts) > _DEPTH_MAX or not all(_PART.fullmatch(part) for part in parts):
        raise BadRequest(
            f"'{name[:100]}' is no name for a project's file",
            hint="visible names of letters, digits, space and . _ + -, between slashes.",
        )
    return "/".join(parts)


def write_files(files: Files, folder: Path) -> None:
    """Write a project into a new folder, durably and never to be changed."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        path.chmod(0o400)
