"""A project comes out of its package as it went in, and an attack writes nothing."""

from __future__ import annotations

import gzip
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.core.errors import BadRequest, HeadraceError, LimitReached
from headrace.server.package import pack, unpack, write_files
from headrace.server.settings import SubmitSettings

LIMITS = SubmitSettings()


def tarred(*entries: tuple[str, bytes], format: int = tarfile.USTAR_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=format) as tar:
        for name, data in (("headrace.toml", b""), *entries):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(made.getvalue())


def special(kind: bytes, name: str = "evil", target: str = "/etc/passwd") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        tar.addfile(info)
    return gzip.compress(made.getvalue())


def refusal(body: bytes, limits: SubmitSettings = LIMITS) -> HeadraceError:
    with pytest.raises(HeadraceError) as raised:
        unpack(body, limits)
    return raised.value


def test_a_folder_comes_out_as_it_went_in_without_what_is_hidden(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    for name in ("headrace.toml", "a.sql", "lookups/x.csv", ".headrace/log", "__pycache__/f.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    files = unpack(pack(folder), LIMITS)
    assert files == {n: n.encode() for n in ("headrace.toml", "a.sql", "lookups/x.csv")}
    write_files(files, tmp_path / "version")
    assert pack(tmp_path / "version") == pack(folder)
    assert (tmp_path / "version/a.sql").stat().st_mode & 0o777 == 0o400


def test_a_link_is_not_packed(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").symlink_to("/etc/passwd")
    with pytest.raises(BadRequest, match="is not a plain file"):
        pack(tmp_path)


def test_what_tar_makes_of_the_folder_itself_is_understood() -> None:
    assert set(unpack(tarred(("./lookups/a b.csv", b"x")), LIMITS)) == {
        "headrace.toml",
        "lookups/a b.csv",
    }
    plain = gzip.decompress(tarred())
    folder = tarfile.TarInfo("./")
    folder.type = tarfile.DIRTYPE
    body = gzip.compress(folder.tobuf(tarfile.USTAR_FORMAT) + plain)
    assert set(unpack(body, LIMITS)) == {"headrace.toml"}


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd", "../up.sql", "a/../../up.sql", "a//b", "a/./b", ".hidden", "a/.git/config",
        "-rf", "a\\b", "a\nb", "C:x", "a/b/c/d/e/f/g/h/i", "~", "$HOME/x", "a/ b",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    error = refusal(tarred((name, b"x")))
    assert error.condition == "BadRequest"
    assert "is not a valid file name for a project" in error.message


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE,
        tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE,
    ],
)  # fmt: skip
def test_links_devices_and_extensions_are_refused(kind: bytes) -> None:
    error = refusal(special(kind))
    assert error.message == "'evil' is not a plain file; only plain files can be submitted"
    assert error.hint == "pack with `tar --format=ustar`, without links."


def test_a_folder_that_leads_elsewhere_is_refused() -> None:
    assert "is not a valid file name" in refusal(special(tarfile.DIRTYPE, "../up")).message


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([("a.sql", b""), ("A.SQL", b"")], "duplicate file 'A.SQL'"),
        ([("a", b""), ("a/b", b"")], "duplicate file 'a/b'"),
        ([("a/b", b""), ("a", b"")], "'a' is both a file and a folder"),
    ],
)
def test_a_name_is_taken_once(entries: list[tuple[str, bytes]], message: str) -> None:
    assert refusal(tarred(*entries)).message == message


def test_sizes_and_numbers_have_limits() -> None:
    bomb = gzip.compress(bytes(1 << 20))
    error = refusal(bomb, replace(LIMITS, unpacked_bytes_max=1 << 16))
    assert isinstance(error, LimitReached)
    assert error.message == "the project has more than 65536 bytes"
    assert error.hint == "see submit.unpacked_bytes_max in server.toml."
    many = tarred(*((f"f{n}", b"") for n in range(10)))
    assert refusal(many, replace(LIMITS, files_max=10)).message == (
        "the project has more than 10 files"
    )


def test_a_size_that_lies_is_refused() -> None:
    whole = gzip.decompress(tarred(("a.sql", b"x" * 2000)))
    cut = gzip.compress(whole[:2048])
    assert refusal(cut).message == "the tar is truncated, or a size in it is not valid"
    info = tarfile.TarInfo("headrace.toml")
    info.size = -512
    negative = info.tobuf(tarfile.GNU_FORMAT)
    assert refusal(gzip.compress(negative)).condition == "BadRequest"


@pytest.mark.parametrize(
    "body", [b"", b"no gzip", gzip.compress(b"x" * 600)], ids=["nothing", "text", "short"]
)
def test_what_is_no_package_is_refused(body: bytes) -> None:
    assert isinstance(refusal(body), BadRequest)


def test_a_package_without_a_project_is_refused() -> None:
    assert refusal(gzip.compress(bytes(1024))).message == "the project has no headrace.toml"
