"""The status of a stream names the keys for which the search for a pattern was given up."""

from __future__ import annotations

from pathlib import Path

from serving.bench import Bench, plan_of
from serving.test_set_aside import SQL, give_up

from headrace.define.layout import Layout
from headrace.define.project import load_project
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.run.observatory.observed_project import RuntimeInfo
from headrace.run.observatory.samples import Samples
from headrace.run.observatory.topology import topology_of
from headrace.run.offline import Offline

from .stopped import SETTINGS


def test_the_problem_names_the_pattern_and_the_key(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text(SETTINGS)
    (tmp_path / "bench.sql").write_text(SQL)
    project = load_project(tmp_path)
    layout = Layout.of(project)
    EmbeddedWriter.open(layout.log("clicks").folder, 2, segment_bytes_max=1 << 20).close()
    bench = Bench(layout.store.path, plan_of(SQL), SQL)
    bench.send()
    bench.build()
    give_up(bench, "ann", "bob")
    bench.close()
    service = Offline(project)
    status = service.status()
    (stream,) = status.streams
    service.runtime_info = lambda: RuntimeInfo(running=True)  # type: ignore[method-assign]
    nodes = topology_of(service, Samples()).nodes
    health = {node.name: (node.health, node.reason) for node in nodes}
    service.close()
    assert health["risen"] == ("warn", stream.problem)
    assert [(one.about, one.level) for one in status.problems] == [("view:risen", "warn")]
    assert status.problems[0].message == stream.problem
    assert stream.problem == (
        "pattern matching for 'risen' was abandoned for key "
        '{"user":"ann"} and 1 more at 1970-01-01T00:00:00.000005Z: it exceeded the limit of '
        "200,000 steps (pattern.steps_max); events are still stored, but later matches are not "
        "detected"
    )
