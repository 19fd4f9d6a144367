"""One Spark session per process, in a JVM that ends with the process.

Spark's settings, in increasing precedence: our defaults, the user's spark-defaults.conf, `[spark]`
in headrace.toml, and the settings in `FIXED_CONF`, on which the results of views depend. With a
local master every port is on loopback. Nothing is printed: warnings go to `work/spark.log`.
The JVM reads from a pipe that only this process holds, so even kill -9 of this process ends it.
tests/spark/test_session.py checks all of this.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headrace.core.errors import BadSetting, EngineFailed, HeadraceError, Unavailable
from headrace.define.settings import SparkSettings
from headrace.spark.class_archive import archive_options
from headrace.spark.java import Java, find_java

# The results of views depend on these, so they cannot be changed.
FIXED_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "false",
    # The last of duplicate names is used, as in the decoder of events.
    "spark.sql.variant.allowDuplicateKeys": "true",
}
# A JVM that is out of memory hangs; one that exits can be replaced.
EXIT_ON_OOM, _OUT_OF_MEMORY = "-XX:+ExitOnOutOfMemoryError", 3
_NICENESS = 5
DEATH_SECONDS_MAX = 10.0  # from a lost connection to the exit of the process
_MASTER_SECONDS_MAX = 5.0
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.adaptive.enabled": "false",  # re-planning costs a small aggregate more than it saves
    # An epoch is cached and read a few times: compressing it costs more than it saves.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.python.worker.reuse": "true",
    # Workers are shared by tasks with the same environment, and this option would be a part of it
    # in SQL only.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # The master's files have page checksums, which Spark does not verify by default.
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    # On a busy machine a Python worker may take long to authenticate.
    "spark.python.authenticate.socketTimeout": "120s",
}
_LOG4J = """\
status = off
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}}{{UTC}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def start_session(settings: SparkSettings, *, app_name: str, work: Path) -> SparkSession:
    """Start Spark; `work` is the folder of its log, warehouse and scratch files."""
    if SparkContext._active_spark_context is not None:
        raise EngineFailed("this process already has a Spark session", hint="stop it first.")
    work = work.resolve()
    conf = session_conf(settings, work, user_conf())
    _await_master(conf["spark.master"])
    _prepare(work, conf["spark.master"])
    gateway = _launch(conf | {"spark.app.name": app_name}, find_java(), work)
    interrupt = signal.getsignal(signal.SIGINT)
    _disable_query_loggers()
    try:
        context = SparkContext(
            conf=_spark_conf(conf | {"spark.app.name": app_name}), gateway=gateway
        )
        session = SparkSession(context)
        session.range(1)  # Creates the session's state, which fails on a wrong spark.sql setting.
    except (Py4JError, PySparkException, ValueError) as error:
        _end(gateway)
        raise _start_error(error, work) from error
    finally:
        _restore_sigint(interrupt)
    return session


def stop_session(session: SparkSession) -> None:
    """Stop Spark and end its JVM, so that the same process may start another."""
    gateway = SparkContext._gateway
    # The JVM may have ended already.
    with contextlib.suppress(Py4JError, PySparkException, OSError):
        session.stop()
    _end(gateway)


def _lower_priority(process: Any) -> None:
    """Give Spark a lower priority than this process, which serves queries and accepts events. The
    processes that Spark starts inherit it.
    """
    if process is not None:
        priority = os.getpriority(os.PRIO_PROCESS, 0) + _NICENESS
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{process.pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(thread), priority)


def check_alive(suspects: Sequence[str] = (), wait_s: float = 0.0) -> None:
    """EngineFailed if Spark's JVM has ended, as it does when it runs out of memory, or ends within
    `wait_s`. `suspects` are the steps in progress.
    """
    process = SparkContext._gateway.proc if SparkContext._gateway is not None else None
    code = _exit_code(process, wait_s) if process is not None else None
    if code is not None:
        doing = f"in progress: {', '.join(suspects)}; " if suspects else ""
        raise EngineFailed(
            _exit_message(code),
            detail=f"{doing}acknowledged events are in the log, and the next start resumes from "
            "there.",
            hint="raise spark.memory, or remove the view or rule that needs so much memory; "
            "`headrace rule remove` works while the project is stopped.",
        )


def _exit_code(process: Any, wait_s: float) -> int | None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return int(process.wait(wait_s))
    return None


def _exit_message(code: int) -> str:
    if code == _OUT_OF_MEMORY:
        return "Spark ran out of memory, and its process exited"
    if code < 0:
        return f"the Spark process was killed by signal {-code}"
    return f"the Spark process exited with code {code}"


_NETWORK_ERRORS = (Py4JNetworkError, ConnectionError, EOFError)


def connection_lost(error: BaseException) -> bool:
    """Whether a call failed because Spark's JVM may have ended while it ran."""
    chain = error
    while chain is not None:
        # Py4J answers a call whose connection broke with a plain error without a Java exception.
        if type(chain) is Py4JError or isinstance(chain, _NETWORK_ERRORS):
            return True
        chain = chain.__cause__ or chain.__context__  # type: ignore[assignment]
    return False


def local(master: str) -> bool:
    return master.startswith("local")


def session_conf(settings: SparkSettings, work: Path, base: dict[str, str]) -> dict[str, str]:
    """All Spark settings of the session; `base` are those that the user configured in Spark."""
    for key in FIXED_CONF.keys() & settings.conf.keys():
        raise BadSetting(
            f"spark.conf may not set {key}: the results of all views depend on it",
            hint=f"remove it; it is always {FIXED_CONF[key]}.",
        )
    own = _named_settings(settings, defaults=True) | _DEFAULTS
    own |= {"spark.sql.warehouse.dir": str(work / "warehouse")}
    conf = own | base | _named_settings(settings, defaults=False) | settings.conf
    here = local(conf["spark.master"])
    conf = _local_conf(work) | conf if here else conf
    ours = f"{_java_options(work)} {EXIT_ON_OOM}" if here else EXIT_ON_OOM
    theirs = conf.get("spark.driver.extraJavaOptions", "")
    conf["spark.driver.extraJavaOptions"] = f"{ours} {theirs}".strip()
    return conf | FIXED_CONF


def _named_settings(settings: SparkSettings, *, defaults: bool) -> dict[str, str]:
    """The three named settings that have (or do not have) their default value: the user's
    spark-defaults.conf overrides a default, but not an explicit value.
    """
    keys = {
        "master": "spark.master",
        "memory": "spark.driver.memory",
        "shuffle_partitions": "spark.sql.shuffle.partitions",
    }
    values = {f.name: (getattr(settings, f.name), f.default) for f in fields(settings)}
    return {
        spark: str(values[name][0])
        for name, spark in keys.items()
        if (values[name][0] == values[name][1]) == defaults
    }


def _local_conf(work: Path) -> dict[str, str]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.authenticate": "true",  # loopback is shared with every user of the machine
        "spark.local.dir": str(work / "scratch"),
        "spark.python.daemon.module": "headrace.spark.python_daemon",
    }


def _java_options(work: Path) -> str:
    options = [f"-Dlog4j2.configurationFile={work / 'log4j2.properties'}"]
    options += [f"-Djava.io.tmpdir={work / 'scratch'}", "-XX:-UsePerfData"]
    return " ".join(map(shlex.quote, options))


def user_conf() -> dict[str, str]:
    """The user's settings in spark-defaults.conf, or those of spark-submit if it started us."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        gateway = launch_gateway()
        return dict(SparkConf(_jvm=gateway.jvm).getAll())
    home = os.environ.get("SPARK_HOME") or str(Path(sys.modules["pyspark"].__file__ or "").parent)
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")
    path = Path(folder, "spark-defaults.conf")
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    pairs = (re.split(r"\s*[=:\s]\s*", line.strip(), maxsplit=1) for line in lines)
    return {p[0]: p[1].strip() for p in pairs if len(p) == 2 and p[0][:1] not in ("#", "!")}


def _spark_conf(conf: dict[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(conf.items()))


def _prepare(work: Path, master: str) -> None:
    # Scratch files of a killed JVM are of no use.
    shutil.rmtree(work / "scratch", ignore_errors=True)
    (work / "scratch").mkdir(parents=True)
    (work / "log4j2.properties").write_text(_LOG4J.format(log=work / "spark.log"))
    if local(master):
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    else:
        # Other machines may have Python at another path, which the user then configures.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _await_master(master: str) -> None:
    """Unavailable if a standalone master does not respond; Spark would retry for a minute."""
    places = re.findall(r"([^/,:]+):(\d+)", master) if master.startswith("spark://") else []
    for host, port in places:
        with contextlib.suppress(OSError):
            socket.create_connection((host, int(port)), _MASTER_SECONDS_MAX / len(places)).close()
            return
    if places:
        raise Unavailable(
            f"the Spark master {master} does not respond",
            hint="start it, or set spark.master in headrace.toml to one that is running.",
        )


def _launch(conf: dict[str, str], java: Java, work: Path) -> Any:
    """Start the JVM with its output in a file: it prints warnings before logging is set up."""
    os.environ["JAVA_HOME"] = str(java.home)
    if local(conf["spark.master"]):
        options = f"{archive_options(java)} {conf['spark.driver.extraJavaOptions']}".strip()
        conf = conf | {"spark.driver.extraJavaOptions": options}
    with (work / "spark.out").open("wb") as out:
        try:
            gateway = launch_gateway(
                _spark_conf(conf), {"stdout": out, "stderr": subprocess.STDOUT}
            )
        except (PySparkException, Py4JError, OSError) as error:
            raise _start_error(error, work) from error
    _lower_priority(gateway.proc)
    return gateway


def _end(gateway: Any) -> None:
    process = gateway.proc
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    if process is None:  # spark-submit started the JVM
        return
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _disable_query_loggers() -> None:
    # PySpark logs each error of a query as JSON, besides raising it.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _restore_sigint(interrupt: Any) -> None:
    # PySpark installs its own SIGINT handler.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)


def _start_error(error: Exception, work: Path) -> HeadraceError:
    if isinstance(error, Py4JJavaError):
        reason = str(error.java_exception).splitlines()[0]
    else:
        out = work / "spark.out"
        lines = out.read_text("utf-8", "replace").splitlines() if out.is_file() else []
        reason = next((x for x in lines if re.search("Error|Exception|Invalid", x)), str(error))
    return EngineFailed(
        "Spark could not start", detail=reason, hint=f"its log is {work / 'spark.log'}."
    )
