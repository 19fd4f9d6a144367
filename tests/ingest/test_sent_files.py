"""A file that was sent is known by its content, in the folder of its log."""

from __future__ import annotations

import stat
from pathlib import Path

from headrace.core.address import LogAddress
from headrace.ingest.sent_files import SentFile


def test_a_file_is_known_by_its_content_and_its_stream(tmp_path: Path) -> None:
    log, other = (LogAddress.of_files(tmp_path / "log" / name) for name in ("clicks", "beats"))
    for name, text in (("a", b"1"), ("copy", b"1"), ("longer", b"12")):
        (tmp_path / name).write_bytes(text)

    def sent(name: str, of: LogAddress = log) -> SentFile:
        with (tmp_path / name).open("rb") as file:
            found = SentFile.of(of, file)
            assert file.tell() == 0
        return found

    assert sent("a").at_us is None
    sent("a").remember()
    sent("a").remember()
    assert sent("copy").at_us is not None
    assert sent("longer").at_us is sent("a", other).at_us is None
    assert stat.S_IMODE(sent("a").path.stat().st_mode) == 0o600
