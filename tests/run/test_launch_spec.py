"""What a job's process is told goes before what its project says."""

from __future__ import annotations

from pathlib import Path

from headrace.define.layout import Layout
from headrace.run.launch_spec import LaunchSpec, ensure_key


def test_an_order_sets_state_place_and_address(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text(
        'name = "shop"\n[http]\nhost = "0.0.0.0"\nport = 80\n[spark]\nmemory = "4g"\n'
    )
    state = tmp_path / "elsewhere"
    project = LaunchSpec(str(tmp_path), str(state), 2, "local[3]").project()
    assert project.state == state
    assert (project.settings.spark.master, project.settings.spark.memory) == ("local[3]", "4g")
    assert (project.settings.http.host, project.settings.http.port) == ("127.0.0.1", 0)
    assert (
        LaunchSpec(str(tmp_path), str(state), memory="1g").project().settings.spark.memory == "1g"
    )


def test_an_order_is_read_as_it_was_written() -> None:
    spec = LaunchSpec("versions/1", "state 'x'", 3, "local[2]", "1g", served=True)
    assert LaunchSpec.read(spec.text()) == spec


def test_a_job_that_is_served_has_its_servers_key(tmp_path: Path) -> None:
    key = ensure_key(Layout(tmp_path))
    assert LaunchSpec("versions/1", str(tmp_path), served=True).key() == key
    assert LaunchSpec("versions/1", str(tmp_path)).key() is None
