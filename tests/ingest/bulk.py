"""Files imported into an intake, as `headrace import` does it, and the process that does so alone:
`python -m tests.ingest.bulk FOLDER ID FILE…` has the topic in a folder and the name of the id.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from headrace.core.files import make_folder
from headrace.core.origin import Origin
from headrace.core.schema import Schema
from headrace.define.definitions import StreamDefinition
from headrace.define.settings import LogSettings, Settings
from headrace.ingest.id_index import hash_key
from headrace.ingest.import_plan import ImportFile, plan_files, tasks_of
from headrace.ingest.importer import Importer, import_folder
from headrace.ingest.intake import Intake, Receipt
from headrace.ingest.packers import packed_parts
from headrace.ingest.packing import PackSpec
from headrace.ingest.records import file_kind
from headrace.log.embedded.writer import EmbeddedWriter


def import_into(
    intake: Intake,
    paths: Iterable[Path],
    *,
    part_bytes: int = 1 << 20,
    processes: int = 1,
    again: bool = False,
) -> list[Receipt]:
    """Import files under their paths; the receipts of their parts."""
    importer, definition = Importer(intake), intake.definition
    importer.recover()
    make_folder(folder := import_folder(intake.folder))
    for left in folder.glob("*.part"):
        left.unlink()
    spec = PackSpec(
        definition,
        len(intake.end().offsets),
        intake.settings.log.event_bytes_max,
        folder,
        hash_key(intake.folder / "ids") if definition.id else None,
        part_bytes,
    )
    files = [ImportFile(str(path), path, file_kind(path.name, definition.format)) for path in paths]
    plans = plan_files(files, intake.address, again=again)
    parts = packed_parts(spec, tasks_of(plans, part_bytes), processes)
    return [importer.take(part.name) for part in parts]


def main(folder: str, id: str, *paths: str) -> None:
    topic = EmbeddedWriter.open(Path(folder), 2, segment_bytes_max=1 << 20)
    definition = StreamDefinition(
        "clicks", Schema(()), Origin("shop.sql", 1), key="user", id=id or None
    )
    settings = Settings("shop", log=LogSettings(free_bytes_min=0))
    intake = Intake(definition, topic, settings=settings)
    import_into(intake, map(Path, paths), part_bytes=1_000)
    topic.close()
    intake.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
