"""The ids of one stream: those in memory, the index of all others, and the thread between them.

When half of what memory may hold is ready for the index, a thread writes it there; ingest does not
wait for it. If that fails, the ids stay in memory, which then grows, and the next ones try again.
tests/ingest/test_stream_ids.py lets it fail.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import structlog

from headrace.define.definitions import StreamDefinition
from headrace.ingest.dedup import RecentIds
from headrace.ingest.fields import FieldReader, Value
from headrace.ingest.hashing import RecordHashes, hash_records
from headrace.ingest.id_index import IdIndex
from headrace.ingest.load_ids import History, load_ids
from headrace.log.protocol import LogWriter

_log = structlog.get_logger(__name__)


class StreamIds:
    """All ids of a stream, if it declares one."""

    def __init__(
        self,
        definition: StreamDefinition,
        topic: LogWriter,
        fields: FieldReader,
        ids_max: int,
        history: History,
    ) -> None:
        self._name, self._most = definition.name, max(1, ids_max // 2)
        self._thread: threading.Thread | None = None
        self._memory: RecentIds | None = None
        if definition.id is not None:
            index = IdIndex(topic.folder / "ids", definition.id, topic.end())
            self._memory = RecentIds(index, ids_max)
            load_ids(self._memory, topic.address, fields, history, self._most)

    @property
    def memory(self) -> RecentIds:
        assert self._memory is not None, "a stream without an id has no memory of ids"
        return self._memory

    def hashed(self, ids: Sequence[Value], records: Sequence[bytes]) -> RecordHashes:
        return hash_records(ids, records, self.memory.index.key)

    def flush(self, lock: threading.Lock) -> None:
        """Start to write what is ready, if there is enough and no thread writes."""
        if self._memory is None or self._memory.ready < self._most:
            return
        with lock:
            if self._thread is None:
                self._thread = self._started(lock)

    def _started(self, lock: threading.Lock) -> threading.Thread | None:
        """The thread that writes, which waits for the lock; None if the system has none to give."""
        thread = threading.Thread(
            target=self._put, args=(lock,), name=f"ids-{self._name}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            _log.warning("ids were not written", stream=self._name, reason=str(error))
            return None
        return thread

    def _put(self, lock: threading.Lock) -> None:
        memory = self.memory
        with lock:
            ready = memory.next_batch()
        try:
            memory.index.add(ready.ids, ready.bodies, ready.position)
        except OSError as error:
            _log.warning("ids were not written", stream=self._name, reason=str(error))
        else:
            with lock:
                memory.mark_indexed(ready)
            self._merge()
        finally:
            self._thread = None

    def _merge(self) -> None:
        try:
            self.memory.index.merge()
        except OSError as error:
            _log.warning("ids were not merged", stream=self._name, reason=str(error))

    def close(self) -> None:
        if thread := self._thread:
            thread.join()
