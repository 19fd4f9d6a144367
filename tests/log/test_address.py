"""An address is printed, read and pickled without loss, and says what it cannot be."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from headrace.core.address import LogAddress
from headrace.core.errors import NotFound, Unsupported
from headrace.log.opening import find_reader, open_reader, open_writer


def test_an_address_survives_print_and_pickle(tmp_path: Path) -> None:
    address = LogAddress.of_files(tmp_path / "a:b")
    assert LogAddress.parse(str(address)) == address == pickle.loads(pickle.dumps(address))
    assert address.folder == tmp_path / "a:b"


def test_a_kind_that_is_not_there_is_refused() -> None:
    with pytest.raises(Unsupported) as caught:
        open_reader(LogAddress("tape", "3"))
    assert (
        str(caught.value)
        == "Unsupported: the log kind 'tape' is not supported\n  hint: use 'file'."
    )


def test_a_log_that_was_never_written_is_not_found(tmp_path: Path) -> None:
    address = LogAddress.of_files(tmp_path / "clicks")
    assert find_reader(address) is None
    with pytest.raises(NotFound, match="there is no log at"):
        open_reader(address)
    open_writer(address, 1, segment_bytes_max=1 << 20).close()
    assert find_reader(address) is not None
