"""Rules of a stopped project, and how a running one goes on when a redeploy fails; no Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.core.errors import AlreadyRunning, BadDefinition, NotReady, UnknownName
from headrace.define.layout import Layout
from headrace.define.project import Project, load_project
from headrace.run.added_definitions import effective_project
from headrace.run.deployment import Deployment
from headrace.run.instance import Instance
from headrace.run.lock import RunLock
from headrace.run.offline import Offline

from .stopped import make_stopped
from .test_instance import Idle

RULE = "CREATE RULE slow AS SELECT page, ms FROM clicks WHERE ms > 50"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    def compile_in_spark(project: Project) -> None:
        from headrace.run.compiling import check_without_spark

        check_without_spark(project)

    monkeypatch.setattr("headrace.run.compiling.compile_in_spark", compile_in_spark)
    return make_stopped(tmp_path / "project")


def offline(project: Project, do: Any) -> Any:
    service = Offline(project)
    try:
        return do(service)
    finally:
        service.close()


def test_rule_that_is_added_is_a_part_of_the_project_until_it_is_removed(project: Project) -> None:
    offline(project, lambda s: s.rule_service.add(RULE, "ann"))
    assert list(effective_project(project).rules) == ["slow"]
    assert offline(project, lambda s: list(s.project.rules)) == ["slow"]
    offline(project, lambda s: s.rule_service.switch("slow", "disabled", "bob"))
    (status,) = offline(project, lambda s: s.status().rules)
    assert (status.state, status.version, status.kept) == ("disabled", 2, True)
    offline(project, lambda s: s.rule_service.remove("slow", "cid"))
    assert offline(project, lambda s: list(s.project.rules)) == []
    history = offline(project, lambda s: s.rule_service.history("slow"))
    assert [version.changed_by for version in history] == ["cid", "bob", "ann"]


def test_rule_that_cannot_be_compiled_is_not_kept(project: Project) -> None:
    with pytest.raises(UnknownName, match="rule 'slow' reads 'clickz', which is not defined"):
        offline(project, lambda s: s.rule_service.add(RULE.replace("clicks", "clickz"), "ann"))
    assert offline(project, lambda s: s.rule_service.rules()) == []


def test_rule_that_is_also_in_the_files_is_refused_at_the_start(project: Project) -> None:
    offline(project, lambda s: s.rule_service.add(RULE, "ann"))
    (project.folder / "more.sql").write_text(RULE)
    with pytest.raises(BadDefinition) as refused:
        offline(load_project(project.folder), lambda s: s)
    assert refused.value.detail == "the definition in the files is at more.sql:1."
    (project.folder / "more.sql").unlink()
    offline(load_project(project.folder), lambda s: s.rule_service.remove("slow", "ann"))


def test_rules_of_a_running_project_are_not_changed_from_beside_it(project: Project) -> None:
    lock = RunLock(Layout.of(project))
    lock.acquire()
    try:
        with pytest.raises(AlreadyRunning):
            offline(project, lambda s: s.rule_service.add(RULE, "ann"))
    finally:
        lock.release()


def test_rules_are_not_changed_before_the_project_runs(project: Project) -> None:
    instance = Instance(project, lambda kind, fields: None)
    try:
        instance.open()
        with pytest.raises(NotReady, match="the project is still starting"):
            instance.rule_service.add(RULE, "ann")
    finally:
        instance.close()


def test_what_ran_before_runs_again_when_a_redeploy_fails(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = Instance(project, lambda kind, fields: None)
    done: list[Any] = []
    try:
        instance.open()
        instance.state = "running"
        before = instance.deployed()
        monkeypatch.setattr(
            "headrace.run.instance.compile_recorded", lambda session, project: before
        )

        def redeploy(context: Any, project: Project, *_: object) -> Any:
            done.append(sorted(project.rules))
            if project.rules:
                raise OSError("no room")
            return running

        running = SimpleNamespace(
            plan=before, redeploy=redeploy, stop=lambda: None, schedule=Idle()
        )
        instance.deployment = cast(Deployment, running)
        with pytest.raises(OSError, match="no room"):
            instance.rule_service.add(RULE, "ann")
        assert done == [["slow"], []]
        assert instance.added == frozenset()
        monkeypatch.undo()
    finally:
        instance.close()
