"""Rules and watches of a project are changed one after the other, because a
watch of a new shape replaces the added rules with those that it has read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.define.definitions import WatchDefinition
from headrace.define.project import Project
from headrace.run.added_definitions import added_rules
from headrace.run.offline import Offline
from headrace.run.rule_service import AddedRules
from headrace.serving.rules import keep_rules
from tests.serving.rule_bench import SELECT
from tests.serving.watch_bench import watch

from .stopped import make_stopped


class SlowToBuild(Offline):
    """As a running project does, deploys one at a time, and keeps rules when they are built."""

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self.building, self.built = threading.Event(), threading.Event()
        self._deploying = threading.Lock()

    def redeploy(
        self, added: AddedRules, who: str, watches: tuple[WatchDefinition, ...] = ()
    ) -> None:
        self.become_writer()
        with self._deploying:
            if not watches:
                self.building.set()
                assert self.built.wait(10)
            with self.store.write() as db:
                keep_rules(db, {name: rule.text for name, rule in added.items()}, who, 1)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[SlowToBuild]:
    made = SlowToBuild(make_stopped(tmp_path / "project"))
    yield made
    made.close()


def test_a_watch_that_is_added_during_the_build_of_a_rule_does_not_remove_it(
    service: SlowToBuild,
) -> None:
    rule = f"CREATE RULE other AS {SELECT}"
    first = threading.Thread(target=service.rule_service.add, args=(rule, "ann"))
    first.start()
    assert service.building.wait(10)
    text = watch("w", 40, "AFTER 1 MATCH")
    second = threading.Thread(target=service.watch_service.add, args=(text, "bob"))
    second.start()
    second.join(0.3)  # long enough to read the rules, if it did not wait
    service.built.set()
    for thread in (first, second):
        thread.join(10)
    assert list(added_rules(service.store)) == ["other"]
    assert service.watch_service.watch("w").state == "active"
