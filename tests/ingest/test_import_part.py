"""A part is read as it was written, and not if it was damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.core.errors import BadRequest, NotFound
from headrace.ingest.file_cursors import FileCursor
from headrace.ingest.hashing import hash_records
from headrace.ingest.import_part import CursorMove, ImportPart, PartBlock, read_part, write_part
from headrace.log.block import PackedRecords

RECORDS = [b"one", b"two\nlines", b"", b"three"]


def part(hashed: bool = True) -> ImportPart:
    hashes = hash_records(["a", None, "b", "c"], RECORDS, "k" * 16) if hashed else None
    places = ([0, 2], [1, 3])
    blocks = [
        PartBlock(
            partition,
            PackedRecords.of([RECORDS[place] for place in own], imported=True),
            np.array(own, np.uint32),
            bytes(2),
        )
        for partition, own in enumerate(places)
    ]
    moves = {"a.ndjson": CursorMove(None, FileCursor(1, 2, 3, 4, taken=3))}
    return ImportPart(moves, 4, blocks, hashes)


@pytest.mark.parametrize("hashed", [True, False])
def test_a_part_is_read_as_it_was_written(tmp_path: Path, hashed: bool) -> None:
    write_part(tmp_path / "0.part", part(hashed))
    found, expected = read_part(tmp_path / "0.part"), part(hashed)
    assert (found.files, found.size, found.count) == (expected.files, 4, 4)
    for one, other in zip(found.blocks, expected.blocks, strict=True):
        assert (one.partition, one.marks, one.packed.body) == (
            other.partition, other.marks, other.packed.body,
        )  # fmt: skip
        assert one.places.tolist() == other.places.tolist()
        assert one.packed.crcs.tolist() == other.packed.crcs.tolist()
        assert (one.packed.framed, one.packed.imported) == (other.packed.framed, True)
    assert (found.hashes is None) == (not hashed)
    if found.hashes and expected.hashes:
        assert found.hashes.ids.tolist() == expected.hashes.ids.tolist()
        assert list(found.hashes.places) == [0, 2, 3]


def test_a_part_without_a_block_speaks_of_the_other_ids_only() -> None:
    rest = part().without({0})
    assert [block.partition for block in rest.blocks] == [1]
    assert rest.hashes is not None
    assert (list(rest.hashes.places), len(rest.hashes.ids), rest.hashes.size) == ([3], 1, 4)


def test_what_is_no_whole_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"there is no part '0\.part' of an import"):
        read_part(tmp_path / "0.part")
    write_part(tmp_path / "0.part", part())
    whole = (tmp_path / "0.part").read_bytes()
    for cut in (0, 3, 20, len(whole) // 2, len(whole) - 1):
        (tmp_path / "0.part").write_bytes(whole[:cut])
        with pytest.raises(BadRequest, match=r"the part 0\.part of an import is damaged"):
            read_part(tmp_path / "0.part")
