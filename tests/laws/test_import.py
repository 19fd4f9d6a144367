"""The log after an import is the log after the connector of files has taken the same files: the
records of each key in the same partition and order, with the same statuses, and the same dead
letters. Parts are cut anywhere.
"""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.problems import Problems
from headrace.core.time import now_us
from headrace.ingest.files import FileConnector
from tests import chance
from tests.ingest.bulk import import_into
from tests.ingest.conftest import Bench

LIMIT = 80
LINES = st.one_of(
    st.builds(
        '{{"event_id":"{}","user":"{}","ms":{}}}'.format,
        st.integers(0, 9), st.sampled_from("abcde"), st.integers(0, 2),
    ).map(str.encode),
    st.tuples(st.integers(0, 3), st.integers(0, 9)).map(b'{"event_id":%d,"user":%d}'.__mod__),
    st.sampled_from([
        b"", b"  \t", b"\r", b"{half", b'{"user":"a"}', b'{"event_id":"x"}', b"[1]", b"null",
        b'{"user":"\xff\xfe","event_id":"u"}', b'{"user":null,"event_id":true}', b"\xef\xbb\xbf{}",
        b'{"event_id":"\\ud800","user":"b"}', b'"', b"x" * LIMIT, b"y" * (LIMIT + 1), b"z" * 300,
    ]),
)  # fmt: skip
ROWS = st.sampled_from([
    b"user,event_id,ms", b"a,1,2", b"b,1,2", b"a,1,3", b'"a, b",2,', b'"two\nlines",3,4', b"", b"a",
    b'"never closed,4,5', b"c,5," + b"6" * LIMIT,
])  # fmt: skip
ENDS = st.sampled_from([b"\n", b"\r\n"])


@st.composite
def texts(draw: st.DrawFn, lines: st.SearchStrategy[bytes]) -> bytes:
    """Lines with their ends, the last perhaps without one."""
    body = b"".join(draw(st.lists(st.builds(bytes.__add__, lines, ENDS), max_size=30)))
    start = draw(st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf", b"[", b"\n\n"]))
    return start + (body if draw(st.booleans()) else body.removesuffix(b"\n").removesuffix(b"\r"))


def packed(body: bytes, cut: float) -> bytes:
    """A packed file, perhaps cut off."""
    whole = gzip.compress(body, mtime=0)
    return whole[: max(1, int(len(whole) * cut))]


FILES = st.one_of(
    texts(LINES).map(lambda body: (".ndjson", body)),
    texts(LINES).map(lambda body: (".ndjson", body)),
    texts(ROWS).map(lambda body: (".csv", body)),
    st.builds(packed, texts(LINES), st.sampled_from([1.0, 1.0, 0.9, 0.5])).map(
        lambda body: (".ndjson.gz", body)
    ),
    st.builds(packed, texts(ROWS), st.just(1.0)).map(lambda body: (".csv.gz", body)),
)


def logged(bench: Bench, keyed: bool) -> tuple[Any, ...]:
    """What must be equal. A record that was not read whole has no key and may be anywhere."""
    found = bench.logged()
    whole = [one for one in found if one[2] < 3]
    unread = Counter((record, status) for _, record, status in found if status >= 3)
    if not keyed:
        return Counter((record, status) for _, record, status in whole), unread
    return [[one for one in whole if one[0] == n] for n in range(3)], unread


def connected(folder: Path, files: Sequence[Path], **said: Any) -> Bench:
    """The files, as the connector takes them."""
    bench = Bench(folder)
    said |= {"source": "files", "options": {"path": "inbox/*"}}
    intake = bench.intake(partitions=3, changes={"event_bytes_max": LIMIT}, **said)
    problems = Problems("source")
    connector = FileConnector(
        intake.definition, intake, files[0].parents[1], problems, clock=now_us
    )
    for _ in range(2):  # a file is taken when it was still between two scans
        connector.scan(threading.Event())
    return bench


@pytest.mark.parametrize("said", [
    {"key": "user", "id": "event_id"}, {"key": "user"}, {"id": "event_id"}, {},
])  # fmt: skip
@given(drawn=st.lists(FILES, min_size=1, max_size=4), part_bytes=st.integers(1, 600))
@settings(max_examples=chance.examples(25, 1_000))
def test_an_import_leaves_the_log_that_the_connector_leaves(
    tmp_path_factory: pytest.TempPathFactory,
    said: dict[str, Any],
    drawn: list[tuple[str, bytes]],
    part_bytes: int,
) -> None:
    folder = tmp_path_factory.mktemp("import")
    (folder / "inbox").mkdir()
    # Files of the same bytes are one file to an import: each has a number.
    files = [folder / "inbox" / f"{n}{ending}" for n, (ending, _) in enumerate(drawn)]
    bodies = {path: body for path, (_, body) in zip(files, drawn, strict=True)}
    files = [path for n, path in enumerate(files) if bodies[path] not in
             [bodies[before] for before in files[:n]]]  # fmt: skip
    for path in files:
        path.write_bytes(bodies[path])
    expected = connected(folder / "one", files, **said)
    found = Bench(folder / "other")
    intake = found.intake(partitions=3, changes={"event_bytes_max": LIMIT}, **said)
    receipts = import_into(intake, files, part_bytes=part_bytes)
    keyed = "key" in said
    assert logged(found, keyed) == logged(expected, keyed)
    accepted = sum(one.accepted for one in receipts)
    assert accepted == len(found.records()) == intake.counters.accepted
    assert import_into(intake, files, part_bytes=part_bytes) == []
    expected.close()
    found.close()
