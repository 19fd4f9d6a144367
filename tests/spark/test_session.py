"""The session: who decides a setting, what it prints (nothing), and when its JVM ends (with us)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import BadSetting, EngineFailed, Unavailable
from headrace.define.settings import SparkSettings
from headrace.spark import class_archive
from headrace.spark.java import find_java
from headrace.spark.session import EXIT_ON_OOM, FIXED_CONF, session_conf, start_session, user_conf

pytestmark = pytest.mark.process

PROGRAM = """
import sys
from pathlib import Path
from headrace.define.settings import SparkSettings
from headrace.spark.session import start_session, stop_session
spark = start_session(SparkSettings(), app_name="t", work=Path(sys.argv[1]))
spark.range(3).createOrReplaceTempView("t")
try:
    spark.sql("SELECT nothing FROM t")
except Exception:
    pass
print(spark.sql("SELECT sum(id) FROM t").collect()[0][0], spark.conf.get("spark.app.note", ""))
print(spark.sparkContext._gateway.proc.pid, flush=True)
sys.stdin.read()
"""


def launch(work: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(work)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
    )


def listening(pid: int) -> set[str]:
    """The addresses on which a process takes connections, as /proc writes them."""
    links = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(os.readlink(fd))
    tables = (Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6"))
    rows = [row.split() for table in tables for row in table.splitlines()]
    return {r[1].split(":")[0] for r in rows if r[3] == "0A" and f"socket:[{r[9]}]" in links}


def test_session_prints_nothing_stays_on_loopback_and_dies_with_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.app.note  from the file\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # A broken archive of classes is ignored without a word too.
    class_archive.archive_path(find_java()).write_bytes(b"not an archive" * 1000)
    process = launch(tmp_path / "a work")
    assert process.stdout is not None
    assert process.stdout.readline() == "3 from the file\n"
    java = int(process.stdout.readline())
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert listening(java)
    assert listening(java) <= loopback
    process.kill()
    assert process.communicate() == ("", "")
    end = time.monotonic() + 10
    while Path(f"/proc/{java}").exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert not Path(f"/proc/{java}").exists()
    assert "WARN" in (tmp_path / "a work" / "spark.log").read_text()


def test_archive_is_used_only_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = find_java()
    assert class_archive.archive_options(java) == ""
    class_archive.archive_path(java).write_bytes(b"x")
    assert str(tmp_path) in class_archive.archive_options(java)
    assert class_archive.make_class_archive() == class_archive.archive_path(java)


@pytest.mark.process
def test_an_archive_that_takes_too_long_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(class_archive, "SECONDS_MAX", 1)
    command = ["sleep", "1000.5"]
    program = f"import subprocess; subprocess.run({command})"
    monkeypatch.setattr(class_archive, "_PROGRAM", program)
    with pytest.raises(EngineFailed) as caught:
        class_archive.make_class_archive()
    assert caught.value.detail == "it took longer than 1 s."
    assert not list(class_archive.archive_path(find_java()).parent.iterdir())
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert "\0".join([*command, ""]).encode() not in running


def test_user_file_wins_over_our_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "# a comment",
        "spark.ui.enabled true",
        "spark.driver.memory=7g",
        "spark.master: yarn",
        "",
    ]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    conf = session_conf(SparkSettings(), tmp_path, user_conf())
    assert conf["spark.ui.enabled"] == "true"
    assert conf["spark.driver.memory"] == "7g"
    assert conf["spark.master"] == "yarn"
    assert "spark.driver.host" not in conf  # executors elsewhere must be able to reach the driver
    assert conf["spark.driver.extraJavaOptions"] == EXIT_ON_OOM


def test_stated_setting_wins_over_the_user_file(tmp_path: Path) -> None:
    base = {"spark.driver.memory": "7g", "spark.ui.enabled": "true"}
    settings = SparkSettings(memory="3g", conf={"spark.ui.enabled": "false"})
    conf = session_conf(settings, tmp_path, base)
    assert (conf["spark.driver.memory"], conf["spark.ui.enabled"]) == ("3g", "false")


def test_java_options_of_the_user_follow_ours(tmp_path: Path) -> None:
    conf = session_conf(SparkSettings(), tmp_path, {"spark.driver.extraJavaOptions": "-Da=b"})
    assert conf["spark.driver.extraJavaOptions"].startswith("-Dlog4j2.configurationFile=")
    assert conf["spark.driver.extraJavaOptions"].endswith(f" {EXIT_ON_OOM} -Da=b")


@pytest.mark.parametrize("key", FIXED_CONF)
def test_settings_of_meaning_cannot_be_changed(tmp_path: Path, key: str) -> None:
    assert session_conf(SparkSettings(), tmp_path, {key: "x"})[key] == FIXED_CONF[key]
    with pytest.raises(BadSetting) as caught:
        session_conf(SparkSettings(conf={key: "x"}), tmp_path, {})
    assert caught.value.message == (
        f"spark.conf may not set {key}: the results of all views depend on it"
    )


def test_running_session_has_the_settings_of_meaning(spark: Any) -> None:
    assert {key: spark.conf.get(key) for key in FIXED_CONF} == FIXED_CONF


@pytest.mark.usefixtures("spark")
def test_second_session_in_one_process_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match="already has a Spark session"):
        start_session(SparkSettings(), app_name="t", work=tmp_path)


def test_master_that_does_not_answer_is_said_soon(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from headrace.define.settings import SparkSettings;"
        "from headrace.spark.session import start_session;"
        "start_session(SparkSettings(master=sys.argv[1], conf={'spark.x': 'y'}), app_name='t',"
        " work=Path(sys.argv[2]))"
    )
    began = time.monotonic()
    command = [sys.executable, "-c", program, "spark://127.0.0.1:9", str(tmp_path)]
    env = os.environ | {"PYTHONPATH": os.getcwd()}
    answer = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert "Unavailable: the Spark master spark://127.0.0.1:9 does not respond" in answer.stderr
    assert time.monotonic() - began < 10
    assert Unavailable.exit_code == 5


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (SparkSettings(memory="lots"), "Invalid maximum heap size: -Xmxlots"),
        (SparkSettings(master="nowhere"), "Master must either be yarn or start with"),
    ],
)
def test_start_that_fails_says_why(tmp_path: Path, settings: SparkSettings, reason: str) -> None:
    program = (
        "import sys; from pathlib import Path; from headrace.define.settings import SparkSettings;"
        "from headrace.spark.session import start_session; from headrace.core.errors import *\n"
        "settings = SparkSettings(sys.argv[1], sys.argv[2])\n"
        "try: start_session(settings, app_name='t', work=Path('w'))\n"
        "except EngineFailed as error: print(error)"
    )
    command = [sys.executable, "-c", program, settings.master, settings.memory]
    env = os.environ | {"PYTHONPATH": os.getcwd()}
    answer = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert answer.stdout.startswith("EngineFailed: Spark could not start\n")
    assert reason in answer.stdout, answer.stdout


def test_sparks_work_waits_for_those_who_answer(spark: Any) -> None:
    jvm = spark.sparkContext._gateway.proc.pid
    own = os.getpriority(os.PRIO_PROCESS, 0)
    threads = [int(name) for name in os.listdir(f"/proc/{jvm}/task")]
    found = {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}
    assert found == {own + 5}
