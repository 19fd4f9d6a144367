"""A copy has the bytes and the mode of the original, and its digest is told."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from headrace.core.files import copy_file, digest_of


@pytest.mark.parametrize("length", [None, 0, 5, 3_000_000, 9_000_000])
def test_a_file_or_its_first_bytes_are_copied(tmp_path: Path, length: int | None) -> None:
    source, target = tmp_path / "source", tmp_path / "new" / "target"
    source.write_bytes(bytes(range(256)) * 20_000)
    source.chmod(0o640)
    digest = copy_file(source, target, length)
    assert target.read_bytes() == source.read_bytes()[:length]
    assert digest == digest_of(target) == hashlib.sha256(target.read_bytes()).hexdigest()
    assert target.stat().st_mode & 0o777 == 0o640


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"new")
    (tmp_path / "target").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        copy_file(tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"old"
