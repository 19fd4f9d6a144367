"""A file of lines: torn, replaced, and of another writer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.core.errors import Unavailable
from headrace.destination.file import LinesWriter

from .messages import NOTICE, SAID


def test_file_that_was_torn_is_mended_before_the_next_line(tmp_path: Path) -> None:
    file = tmp_path / "out" / "alerts.ndjson"
    LinesWriter(file).deliver([NOTICE])
    file.write_bytes(file.read_bytes() + b'{"key": "to')
    LinesWriter(file).deliver([NOTICE])
    assert [json.loads(line) for line in file.read_bytes().splitlines()] == [SAID, SAID]


def test_file_that_was_torn_by_a_failure_is_mended_by_the_same_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out" / "alerts.ndjson"
    writer = LinesWriter(file)
    writer.deliver([NOTICE])

    def torn(descriptor: int) -> None:
        file.write_bytes(file.read_bytes()[:-5])
        raise OSError("the disk has a defect")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", torn)
        with pytest.raises(OSError, match="the disk has a defect"):
            writer.deliver([NOTICE])
    writer.deliver([NOTICE])
    assert [json.loads(line) for line in file.read_bytes().splitlines()] == [SAID, SAID]


def test_file_that_was_replaced_by_a_link_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text("def f(): pass")
    file = tmp_path / "out" / "alerts.ndjson"
    file.parent.mkdir()
    file.symlink_to(tmp_path / "functions.py")
    with pytest.raises(OSError, match="symbolic links"):
        LinesWriter(file).deliver([NOTICE])
    assert (tmp_path / "functions.py").read_text() == "def f(): pass"


def test_torn_line_is_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"sequence": 1}\n{"sequence": 2}\n{"seque')
    assert LinesWriter(file).newest() == 2
    assert file.read_bytes() == b'{"sequence": 1}\n{"sequence": 2}\n'
    file.write_bytes(b'{"seque')
    assert LinesWriter(file).newest() == 0
    long = b'{"sequence": 9, "row": "%s"}\n' % (b"x" * 200_000)
    file.write_bytes(b'{"sequence": 8}\n' + long)
    assert LinesWriter(file).newest() == 9


def test_file_that_ends_with_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"hello\n")
    with pytest.raises(Unavailable) as refused:
        LinesWriter(file).newest()
    assert "the last line of x.jsonl is not a pane" in refused.value.message
