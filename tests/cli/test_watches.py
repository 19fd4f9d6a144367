"""What `headrace watch` prints."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.cli import watches as pages
from headrace.core.errors import BadRequest
from headrace.run.watch_service import LocalWatchService
from tests.run.answering import Answering
from tests.run.test_watch_service import ENDLESS, WatchDeployer
from tests.serving.bench import Click
from tests.serving.watch_bench import WatchBench, watch


@dataclass
class Service(Answering):
    watch_service: LocalWatchService


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    bench = WatchBench(tmp_path / "serving.db", said=watch("said", 10, "AFTER 1 MATCH"))
    bench.build()
    bench.send(Click("/a", "ann", 5, 99))
    bench.look()
    book = LocalWatchService(bench.project, bench.store, WatchDeployer(bench), threading.Lock())

    @contextmanager
    def asked(_: Any) -> Iterator[Service]:
        yield Service(book)

    monkeypatch.setattr(pages, "open_service", asked)
    yield tmp_path
    bench.close()


def said(report: Any, capsys: pytest.CaptureFixture[str]) -> str:
    assert report.print(False) == 0
    return capsys.readouterr().out


def test_watches_are_listed_added_shown_and_removed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    listed = said(pages.list_watches(folder, None), capsys)
    assert "said" in listed
    assert "1 of 1" in listed
    assert "it had 1 match" in listed
    (folder / "more.sql").write_text(watch("more", 50, ENDLESS))
    assert "more: active" in said(pages.add(folder, folder / "more.sql"), capsys)
    shown = said(pages.show_watch(folder, "more"), capsys)
    assert "CREATE WATCH more AS" in shown
    assert "added at run time" in shown
    assert "said" not in said(pages.list_watches(folder, "active"), capsys)
    assert "more: removed" in said(pages.remove(folder, "more"), capsys)
    with pytest.raises(BadRequest) as wrong:
        pages.list_watches(folder, "late")
    assert wrong.value.message == "the state of a watch must be active or ended, not 'late'"
