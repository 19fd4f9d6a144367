"""An import into a project that runs goes through its process, which writes the log: at any time
after its start has begun, and not into a stream that takes files itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.cli.import_files import ImportOptions, import_files
from headrace.core.errors import Conflict
from headrace.define.project import load_project
from headrace.log.embedded.reader import EmbeddedReader
from headrace.run.instance import Instance

pytestmark = pytest.mark.process

LINES = [b'{"n": %d, "id": "n%d"}\n' % (n, n % 30) for n in range(60)]


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "headrace.toml").write_text('name = "history"\n')
    (folder / "project.sql").write_text(
        "CREATE STREAM numbers (n INT, id STRING) WITH (id = 'id', partitions = 2);\n"
        "CREATE STREAM inbox (n INT) WITH (source = 'files', path = 'inbox/*');\n"
    )
    (folder / "a.ndjson").write_bytes(b"".join(LINES[:40]))
    (folder / "b.ndjson").write_bytes(b"".join(LINES[40:]))
    made = Instance(load_project(folder), lambda kind, fields: None)
    made.open()
    yield made
    made.close()


def test_files_are_imported_into_a_running_project(instance: Instance) -> None:
    instance.serve(0)
    folder = instance.project.folder
    files = [folder / "a.ndjson", folder / "b.ndjson"]
    options = ImportOptions(quiet=True, part_bytes=200)
    found = import_files(folder, "numbers", files, options).document
    assert (found["accepted"], found["duplicates"], found["conflicts"]) == (60, 0, 30)
    reader = EmbeddedReader(instance.layout.log("numbers").folder)
    statuses: Counter[int] = Counter()
    for partition in range(2):
        for segment in reader.parts(partition):
            for block in reader.blocks(partition, segment.interval):
                statuses.update(block.statuses.tolist())
    assert statuses == {0: 30, 2: 30}
    assert instance.events_in() == 60
    assert import_files(folder, "numbers", files, options).document["skipped"] == [
        "a.ndjson", "b.ndjson",
    ]  # fmt: skip


def test_a_stream_that_takes_files_itself_is_left_alone(instance: Instance) -> None:
    instance.serve(0)
    folder = instance.project.folder
    with pytest.raises(Conflict, match="stream 'inbox' takes files itself while the project is"):
        import_files(folder, "inbox", [folder / "a.ndjson"], ImportOptions(quiet=True))
    assert instance.events_in() == 0
